"""A pair of `npformer.functional` in PyTorch: a block that runs when it is pasted.

The form is that of tests/parity/formulas.py, with the functions and imports that it needs; inputs
are those of the page, and autograd gives the gradients.
"""

import ast
import contextlib
import importlib.util
import io
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from docs.site.pages import names_in

FORMULAS = Path(__file__).resolve().parents[2] / "tests" / "parity" / "formulas.py"
IMPORTS = {
    "math": "import math",
    "np": "import numpy as np",
    "torch": "import torch",
    "F": "from npformer import functional as F",
}


@cache
def forms() -> dict[str, str]:
    """Return the source of each form, and of the functions that forms call, by name."""
    text = FORMULAS.read_text("utf-8")
    sources = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            sources[node.name] = ast.get_source_segment(text, node) or ""
        elif isinstance(node, ast.Dict):  # REFERENCES, whose values stand for others' names
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    sources[key.value] = f"{key.value} = {ast.get_source_segment(text, value)}"
    return sources


def needed(name: str) -> list[str]:
    """Return the form of a name below those that it calls."""
    order: list[str] = []

    def add(form: str) -> None:
        if form in order:
            return
        for other in sorted(names_in(forms()[form]) & {*forms()} - {form}):
            add(other)
        order.append(form)

    add(name)
    return [forms()[form] for form in order]


def written(value: Any) -> str:
    """Return a value as Python that makes it; a generator begins anew."""
    if isinstance(value, np.random.Generator):
        return f"np.random.default_rng({value.bit_generator.seed_seq.entropy})"
    return f"np.array({value.tolist()})" if isinstance(value, np.ndarray) else repr(value)


def block(name: str, inputs: dict[str, Any], options: dict[str, Any], dy: Any) -> str:
    """Return the block: imports, inputs, the form, and the gradients of autograd."""
    lines, gradients = [], []
    for argument, value in inputs.items():
        if np.asarray(value).dtype.kind == "f":
            learned = "dtype=torch.float64, requires_grad=True"
            lines.append(f"{argument} = torch.tensor({np.asarray(value).tolist()}, {learned})")
            gradients.append(f"{argument}.grad")
        else:
            lines.append(f"{argument} = {written(value)}")
    settings = {n: written(value) for n, value in options.items()}
    called = ", ".join([*inputs, *(f"{n}={words}" for n, words in settings.items())])
    lines += ["", "\n\n".join(needed(name)), "", f"result = {name}({called})"]
    lines += [f"result.backward(torch.tensor({np.asarray(dy).tolist()}, dtype=torch.float64))"]
    lines += [f'print(result.detach(), {", ".join(gradients)}, sep="\\n")']
    code = "\n".join(lines)
    names_read = names_in(code)
    return "\n".join(
        [IMPORTS[argument] for argument in IMPORTS if argument in names_read] + ["", code]
    )


def check(code: str, inputs: dict[str, Any], y: Any, ours: Any) -> None:
    """Run the block, if PyTorch is installed, and assert that its numbers are npformer's."""
    if importlib.util.find_spec("torch") is None:
        return
    names: dict[str, Any] = {"__name__": "pasted"}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # an even kernel with "same" costs PyTorch a copy
        exec(compile(code, "in PyTorch", "exec"), names)
    near = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-11)
    near(y, names["result"].detach().numpy())
    floats = [argument for argument, value in inputs.items() if np.asarray(value).dtype.kind == "f"]
    for argument, mine in zip(floats, ours, strict=True):
        near(mine, names[argument].grad.numpy(), err_msg=f"gradient of {argument}")
