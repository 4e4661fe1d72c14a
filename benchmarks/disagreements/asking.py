"""Ask each library in an environment for it alone, which uv makes from the head of its script."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.disagreements.question import Part, Question

LIBRARIES = Path(__file__).parent / "libraries"

INSTALL_UV = (
    "uv is not on PATH; expected it, because each library is asked in an environment of its own. "
    "Install it with `python -m pip install uv`"
)

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""All libraries run on one thread of the CPU, so that their sums have one order."""


def script_of(library: str) -> Path:
    """Return the script of a library."""
    return LIBRARIES / f"{library}_calls.py"


def library_names() -> list[str]:
    """Return the names of all libraries that have a script."""
    return sorted(path.stem.removesuffix("_calls") for path in LIBRARIES.glob("*_calls.py"))


def packages(library: str) -> list[str]:
    """Return what a script's environment holds: the library first, as ``name==version``."""
    text = script_of(library).read_text("utf-8")
    (block,) = re.findall(r"^# /// script\n(.*?)^# ///$", text, flags=re.MULTILINE | re.DOTALL)
    head = tomllib.loads(re.sub(r"^# ?", "", block, flags=re.MULTILINE))
    return list(head["dependencies"])


def call_names(library: str) -> set[str]:
    """Return the names of the calls that a script defines."""
    return set(source_of_calls(library))


@cache
def source_of_calls(library: str) -> dict[str, str]:
    """Return the source of each call of a script, below that of the functions that it uses."""
    sources = {}
    for text in _script_texts(script_of(library)):
        functions = {
            node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)
        }
        for name, node in functions.items():
            if any(isinstance(it, ast.Name) and it.id == "call" for it in node.decorator_list):
                helpers = [it for it in _helpers(node, functions) if it != "run"]
                sources[name] = "\n\n".join(_source(text, functions[it]) for it in (*helpers, name))
    return sources


def _script_texts(script: Path) -> list[str]:
    """Return the text of a script, and those of the modules beside it that it imports."""
    texts = [script.read_text("utf-8")]
    for name in re.findall(r"^import (\w+)", texts[0], flags=re.MULTILINE):
        module = LIBRARIES / f"{name}.py"
        if module.exists():  # it defines calls, too
            texts.append(module.read_text("utf-8"))
    return texts


def _helpers(node: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> list[str]:
    """Return the names of the script's functions that a function uses, those used first."""
    own_names = {node.name, *(argument.arg for argument in node.args.args)}
    helpers: list[str] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in functions and inner.id not in own_names:
            for name in (*_helpers(functions[inner.id], functions), inner.id):
                if name not in helpers:
                    helpers.append(name)
    return helpers


def _source(text: str, node: ast.FunctionDef) -> str:
    """Return a function without its decorators."""
    return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])


def questions_of(parts: list[Part]) -> dict[str, Question]:
    """Return all questions by what identifies them: part and name."""
    questions = {}
    for part in parts:
        for question in part.questions:
            questions[f"{part.name}/{question.name}"] = question
        for k, question in enumerate(part.random):
            questions[f"{part.name}/random/{k}"] = question
    return questions


def ask_library(library: str, questions: dict[str, Question]) -> dict[str, Any]:
    """Return a library's answers to the questions that its script has calls for.

    Raises
    ------
    RuntimeError
        If uv is missing, or the script ends with an error.
    """
    if shutil.which("uv") is None:
        raise RuntimeError(INSTALL_UV)
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "questions.json"
        answered = Path(folder) / "answers.json"
        asked.write_text(json.dumps([_as_json(key, it) for key, it in questions.items()]))
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        command = f"uv run --quiet --no-project --python {python} --script".split()
        process = subprocess.run(
            [*command, str(script_of(library)), str(asked), str(answered)],
            env=os.environ | ENVIRONMENT,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        if process.returncode or not answered.exists():
            raise RuntimeError(f"{library}'s script failed:\n{process.stderr[-3000:]}")
        answers: dict[str, Any] = json.loads(answered.read_text())
    return answers


def _as_json(key: str, question: Question) -> dict[str, Any]:
    """Return a question as `libraries/calls.py` reads it."""
    gradients = [name[1:] for name in question.answers if name.startswith("d")]
    return {
        "id": key,
        "random": "/random/" in key,
        "call": question.call,
        "dtype": question.dtype,
        "settings": question.settings,
        "arrays": {name: _array_as_json(value) for name, value in question.arrays.items()},
        "gradients": gradients if question.dy is not None else [],
        "dy": None if question.dy is None else _array_as_json(question.dy),
    }


def _array_as_json(array: np.ndarray) -> dict[str, Any]:
    kind = {"f": "float64", "i": "int64", "b": "bool", "U": "str"}[array.dtype.kind]
    return {"kind": kind, "shape": list(array.shape), "values": array.ravel().tolist()}
