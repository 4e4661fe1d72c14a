"""Imports go down only, and what runs on any device asks no library by name.

import-linter checks the rooms, circles inside them, and libraries that differentiate by themselves
(`lint-imports`, with the contracts in pyproject.toml). Here are the folders inside of rooms.
"""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import npformer
from benchmarks.shape import run_by

ROOT = Path(npformer.__file__).parent

FLOORS = [
    "core/support",
    "core",
    "functional",
    "layers",
    "mixers",
    "models",
    "optim",
    "loop",
    "proof",
    "data",
    "engine",
    "training/distributed",
    "training/storage",
    "training/generation",
    "training/inspection",
    "models/trainable",
    "training",
    "interop",
    "tasks/wide",
    "tasks/reports",
    "tasks/estimators",
    "tasks/sources",
    "tasks/sklearn",
    "learn/museum",
    "learn/exercises",
    "learn/play",
    "cli",
    "",
]
"""From the ground up, in the order of reading: a file imports from floors below its own.

The last one has the names of the package, and what `python -m npformer` runs.
"""

READ = ("functional", "layers", "mixers", "models", "core/padding.py", "core/context.py")
"""What people read: the mathematics, and nothing of what makes it fast. It runs on any backend:
`array_module` says which library an array belongs to."""

OF_THE_ENGINE = re.compile(
    r"kernels?\b|workspace|thread|(?<![a-z])fused|of_input|engine|twin|\bfast\b|use_kernels",
    re.IGNORECASE,
)
"""Words that only the engine has a use for; whole words where others have them inside."""

ABOUT_SIZES = re.compile(r"kernel size")
"""Of a convolution, wherever it is mentioned. In the convolution's own files a kernel is a size."""

CONVOLUTIONS = "/causal_convolution.py", "/long_convolution.py", "/state_space.py"
"""Files about kernels, by which a convolution weighs; they have no other."""

ABOUT_MEMORY = re.compile(r"^    memory : .*\n(?: {8}.*\n)+", re.MULTILINE)
"""What attention's docstrings say of their setting: it is about the engine in part."""

FILES = sorted(ROOT.rglob("*.py"))
FLOOR_OF = {floor: height for height, floor in enumerate(FLOORS)}


def name_of(file):
    return file.relative_to(ROOT).as_posix()


@cache
def tree_of(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def offenders(files, find):
    """Return what a rule finds in files, by their names, where it finds anything."""
    return {name_of(file): places for file in files if (places := find(file))}


def floor_of(path):
    """Return the floor of a path below the package: ``layers/linear`` -> ``layers``."""
    return max((f for f in FLOORS if f"{path}/".startswith(f"{f}/") or not f), key=len)


@cache
def imports_of(file):
    """Return the dotted names that a file imports, also inside functions."""
    names = set()
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names}
    return names


def floors_imported_by(file):
    """Return which floors of npformer a file imports."""
    dotted = (name.removeprefix("npformer.") for name in imports_of(file) if "npformer." in name)
    return {floor_of(name.replace(".", "/")) for name in dotted}


def libraries_imported_by(file):
    return {name.partition(".")[0] for name in imports_of(file)}


def floors_above(file):
    """Return the floors that a file imports from, and that lie above its own."""
    height = FLOOR_OF[floor_of(name_of(file).removesuffix(".py"))]
    return {floor for floor in floors_imported_by(file) if FLOOR_OF[floor] > height}


def relative_imports(file):
    return {name for name in imports_of(file) if name.startswith(".")}


def test_imports_go_down_only():
    assert offenders(FILES, floors_above) == {}


def test_imports_are_absolute():
    assert offenders(FILES, relative_imports) == {}


def test_cupy_is_imported_in_one_place():
    with_cupy = offenders(FILES, lambda file: libraries_imported_by(file) & {"cupy", "cupyx"})
    assert set(with_cupy) == {"core/cupy/backend.py"}


def device_neutral_files():
    names = [*files_to_read(), ROOT / "models" / "trainable" / "text_encoder.py"]
    names += [ROOT / "tasks" / "wide" / f"{name}.py" for name in ("bag", "layer", "loss", "model")]
    # What they count, labels, lengths and positions, is on the host.
    on_the_host = {
        "models/losses.py",
        "models/batch.py",
        "layers/state.py",
        "mixers/window_state.py",
    }
    return [file for file in names if name_of(file) not in on_the_host]


def test_device_neutral_files_name_no_array_library():
    libraries = {"numpy", "scipy", "cupy"}

    def named(file):
        identifiers = {node.id for node in ast.walk(tree_of(file)) if isinstance(node, ast.Name)}
        return libraries_imported_by(file) & libraries | identifiers & ({"np", "cp"} | libraries)

    assert offenders(device_neutral_files(), named) == {}


def test_the_rules_above_look_at_files_at_all():
    assert len(device_neutral_files()) > 20
    assert floors_imported_by(ROOT / "mixers" / "attention.py") >= {"core", "functional", "layers"}
    assert floors_imported_by(ROOT / "training" / "inspection" / "explain.py") >= {"core", "mixers"}
    assert len(files_to_read()) > 40


def files_to_read():
    read = [file for file in FILES if name_of(file).startswith(READ)]
    return [file for file in read if not name_of(file).startswith("models/trainable/")]


def words_of_the_engine(name, text):
    """Return (line, word) for each word that a file to be read should not have.

    Its name allows for some: the convolution's kernel, attention's memory.
    """

    def hidden(match):
        return re.sub(r"[^\n]", " ", match.group())

    text = ABOUT_SIZES.sub(hidden, text)
    text = re.sub(r"\bstate_space_kernel(_backward)?\b", hidden, text)
    if name.endswith("/conv1d.py"):
        text = re.sub(r"\bkernel\b", hidden, text)
    if name.endswith(CONVOLUTIONS):
        text = re.sub(r"d?kernels?\b", hidden, text)
    if name == "mixers/general_attention.py":
        text = ABOUT_MEMORY.sub(hidden, text)
    matches = OF_THE_ENGINE.finditer(text)
    return [(text.count("\n", 0, match.start()) + 1, match.group()) for match in matches]


def test_what_people_read_does_not_speak_of_the_engine():
    later = {"optim", *FLOORS[FLOOR_OF["engine"] :]}
    assert offenders(files_to_read(), lambda file: floors_imported_by(file) & later) == {}
    words = offenders(
        files_to_read(), lambda file: words_of_the_engine(name_of(file), file.read_text("utf-8"))
    )
    assert words == {}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("layers/linear.py", "kernel = 1\nKernels are quick", [(1, "kernel"), (2, "Kernels")]),
        ("layers/linear.py", "x\n# EngineContext", [(2, "Engine")]),
        ("layers/linear.py", "a twin of it, npformer.fast", [(1, "twin"), (1, "fast")]),
        ("layers/linear.py", "in `threads`, fused", [(1, "thread"), (1, "fused")]),
        ("layers/linear.py", "def f(of_input, my_workspace)", [(1, "of_input"), (1, "workspace")]),
        ("layers/linear.py", "anything else is refused, between; breakfast; kernel size 1", []),
        ("layers/conv1d.py", "kernel : int\nkernels", [(2, "kernels")]),
        ("mixers/general_attention.py", "    memory : str\n        Under `fast`.\n", []),
        (
            "mixers/general_attention.py",
            "    causal : bool\n        Under `fast`.\n",
            [(2, "fast")],
        ),
        ("mixers/averaging.py", "    memory : str\n        Under `fast`.\n", [(2, "fast")]),
    ],
)
def test_words_of_the_engine_are_found(name, text, expected):
    assert words_of_the_engine(name, text) == expected


KNOWS_NO_MODEL = list((ROOT / "training").glob("*.py"))
KNOWS_NO_MODEL += [ROOT / "engine" / f"{n}.py" for n in ("team", "snapshot")]
"""Training and workers, which any model may use: they ask it, and know no class of it."""

OF_ONE_MODEL = {
    "vocab_size",
    "n_classes",
    "n_features",
    "embed",
    "pool",
    "pooling",
    "per_token",
    "SequenceClassifier",
    "SequenceModel",
    "InputEmbedding",
    "TextEncoder",
    "Pooling",
}


def test_training_knows_no_class_of_models():
    def named(file):
        nodes = list(ast.walk(tree_of(file)))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        texts = {  # getattr(model, "pool"), too
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        return (names | attributes | texts) & OF_ONE_MODEL

    assert offenders(KNOWS_NO_MODEL, named) == {}


@pytest.mark.parametrize("inputs", ["vectors", "ids"])
def test_a_plain_step_does_not_pass_through_the_engine(inputs):
    config = npformer.EncoderConfig(d_model=32, n_layers=1, n_heads=4, d_ff=64, max_len=8)
    model = npformer.SequenceClassifier(
        config,
        n_classes=10,
        n_features=8 if inputs == "vectors" else None,
        vocab_size=8 if inputs == "ids" else None,
    )
    optimizer = npformer.Adam(model.parameters())
    rng = np.random.default_rng(0)
    ids, y = rng.integers(0, 8, (4, 8)), rng.integers(0, 10, 4)
    x = ids if inputs == "ids" else rng.standard_normal((4, 8, 8), dtype="float32")

    def step():
        with npformer.use_kernels(False):
            _, gradients = model.loss_and_gradients(x, y)
            optimizer.step(gradients)

    step()
    files = run_by(step).files
    assert files >= {"functional/attention.py", "functional/linear.py", "optim/adam.py"}
    assert {name for name in files if name.startswith("engine/")} == set()
