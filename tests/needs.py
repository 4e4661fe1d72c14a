"""What a test says that is skipped because a library is missing: how to install it."""

GROUPS = {
    "--group dev": ("complexipy", "coverage", "grimp"),
    '".[test]"': ("hypothesis", "nbformat", "sklearn", "tokenizers"),
    '".[parity]"': ("sentencepiece", "torch", "transformers"),
    '".[docs]"': (
        "furo",
        "myst_parser",
        "sphinx",
        "sphinx_copybutton",
        "sphinx_gallery",
        "ziamath",
    ),
    '".[play]"': ("starlette", "uvicorn"),
    '".[plot]"': ("matplotlib",),
    '".[onnx]"': ("onnx",),
    '".[browser]"': ("playwright",),
    '".[cuda13]"': ("cupy", "cupyx"),
    "onnxruntime": ("onnxruntime",),
    "pandas": ("pandas",),
    "polars": ("polars",),
    "pyarrow": ("pyarrow",),
    "sympy": ("sympy",),
    "autograd": ("autograd",),
    "equinox": ("equinox",),
    "jax": ("jax",),
    '"mlx[cpu]"': ("mlx",),
    "tinygrad": ("tinygrad",),
}
"""Libraries by what `python -m pip install` takes to install them."""

NEEDS = {
    library: f"needs {library}: python -m pip install {command}"
    for command, libraries in GROUPS.items()
    for library in libraries
}
"""The reason for `pytest.importorskip`, by library."""
