"""What npformer writes for CuPy exists in the CuPy that is installed, keywords included.

The fake device checks everything above core/cupy/backend.py and core/cupy/pinned_feed.py,
whose calls of CUDA never run without a GPU.
"""

import ast
import importlib
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npformer.core.cupy import backend as cupy_backend
from npformer.core.cupy import pinned_feed
from tests import fake_device

pytestmark = pytest.mark.skipif(bool(fake_device.NOT_CHECKED), reason=fake_device.NOT_CHECKED)

SOURCES = [Path(m.__file__).read_text(encoding="utf-8") for m in (cupy_backend, pinned_feed)]
NODES = [node for source in SOURCES for node in ast.walk(ast.parse(source))]


def dotted_name(node: ast.AST) -> str | None:
    """Return ``a.b.c`` of an expression that is nothing else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted_name(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None


def names() -> set[str]:
    """Return the longest dotted names that begin with CuPy's modules, `self._cupy` included."""
    all_names = set()
    for node in NODES:
        name = (dotted_name(node) or "").removeprefix("self._")
        if name.startswith(("cupy.", "cupyx.")):
            all_names.add(name)
    longest = {n for n in all_names if not any(other.startswith(f"{n}.") for other in all_names)}
    return longest - {"cupy.cuda.cublas"}  # its import loads a library that may not be here


def look_up(name: str) -> Any:
    module, *path = name.split(".")
    value = importlib.import_module(module)
    for attribute in path:
        try:
            value = getattr(value, attribute)
        except AttributeError:
            value = importlib.import_module(f"{value.__name__}.{attribute}")
    return value


OF_CUBLAS = ("CUBLAS_TF32_TENSOR_OP_MATH", "CUBLAS_DEFAULT_MATH", "setMathMode")


def test_there_are_names_to_check() -> None:
    assert {"cupy.asarray", "cupy.cuda.Stream", "cupyx.empty_pinned"} <= names()


@pytest.mark.parametrize("name", sorted(names()))
def test_a_name_exists(name) -> None:
    look_up(name)


@pytest.mark.parametrize("name", OF_CUBLAS)
def test_a_name_of_cublas_is_in_its_module(name) -> None:
    """Importing it would load libcublas, which is not where there is no GPU."""
    assert name in SOURCES[0]
    spec = importlib.util.find_spec("cupy_backends.cuda.libs")
    assert spec is not None
    (folder,) = spec.submodule_search_locations or ()
    (library,) = Path(folder).glob("cublas*")
    assert name.encode() in library.read_bytes()


def test_the_two_ways_to_tf32_are_still_there() -> None:
    linalg = importlib.import_module("cupy._core._routines_linalg")
    kinds = linalg.COMPUTE_TYPE_DEFAULT, linalg.COMPUTE_TYPE_TF32
    assert kinds[0] != kinds[1]
    before = linalg.get_compute_type("float32")
    linalg.set_compute_type("float32", linalg.COMPUTE_TYPE_DEFAULT)
    assert linalg.get_compute_type("float32") == linalg.COMPUTE_TYPE_DEFAULT
    linalg.set_compute_type("float32", before)


def calls() -> Iterator[tuple[str, list[str]]]:
    """Yield names that are called, and the keywords they are called with."""
    for node in NODES:
        if isinstance(node, ast.Call) and node.keywords:
            name = (dotted_name(node.func) or "").removeprefix("self._")
            if name.startswith(("cupy.", "cupyx.")) and "cublas" not in name:
                yield name, [k.arg or "" for k in node.keywords]


@pytest.mark.parametrize(("name", "keywords"), list(calls()), ids=lambda x: str(x))
def test_a_keyword_exists(name, keywords) -> None:
    function = look_up(name)
    try:
        known = set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        known = {word for word in keywords if f"{word} (" in (function.__doc__ or "")}
    assert set(keywords) <= known


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        ("cupy.cuda.Stream", "record", "event"),
        ("cupy.cuda.Stream", "wait_event", "event"),
        ("cupy.cuda.Stream", "synchronize", ""),
        ("cupy.cuda.Event", "synchronize", ""),
        ("cupy.ndarray", "set", "stream"),
        ("cupy.ndarray", "view", ""),
        ("cupy.cuda.Device", "mem_info", ""),
        ("cupy.cuda.MemoryPool", "free_all_blocks", ""),
        ("cupy.cuda.PinnedMemoryPool", "free_all_blocks", ""),
    ],
)
def test_a_method_exists(kind, name, word) -> None:
    assert word in (getattr(look_up(kind), name).__doc__ or "")


def test_cupys_error_of_memory_is_pythons() -> None:
    """`guard_computation` catches MemoryError and hands on its words."""
    error = look_up("cupy.cuda.memory.OutOfMemoryError")
    assert issubclass(error, MemoryError)
    assert "allocating 4,096 bytes" in str(error(4096, 0, 0))
