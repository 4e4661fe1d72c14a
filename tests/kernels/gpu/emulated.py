"""CuPy without a GPU: the strict fake device, with a `RawModule` that runs CUDA sources as C++.

    backend = emulated.backend()      # of the name "cupy"
    npformer.core.arrays.register(backend)
    model.to("cupy")                  # its kernels are those of npformer/engine/gpu

Sources are compiled with g++ against `emulation.h`. A launch is refused where its arguments are not
what the kernel declares, which CUDA would not notice. Around all memory that a kernel gets there
are margins: what is written there is an error, and what is read from there is NaN.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Backend
from tests import fake_device
from tests.fake_device import FakeArray, FakeModule

MISSING = "" if shutil.which("g++") else "g++ is not installed, which runs CUDA sources as C++ here"

FLAGS = ("-std=c++17", "-O1", "-g0", "-w", "-fPIC", "-shared", "-ffp-contract=off")
HEADER = Path(__file__).with_name("emulation.h")
NAMES = re.compile(r'extern "C" __global__ void (\w+)\(')
MARGIN = 64
"""Bytes around an array, as 0xff: NaN as floats, and nothing that is a bool."""

POINTEES = {"float": "f", "double": "d", "bool": "?", "index": "lq"}
"""NumPy's codes of dtypes by the types that kernels declare; complex numbers count as floats."""


class LaunchError(Exception):
    """A launch that would go wrong on a GPU, or has gone wrong here."""


_watching: list[list[str]] = []
_order = 0


@contextmanager
def launches() -> Iterator[list[str]]:
    """Note the names of the kernels that run, in order."""
    names: list[str] = []
    _watching.append(names)
    try:
        yield names
    finally:
        _watching.remove(names)


@contextmanager
def use_order(order: int) -> Iterator[None]:
    """Let threads take turns in another order: 0 as numbered, 1 reversed, others at random."""
    global _order
    before, _order = _order, order
    try:
        yield
    finally:
        _order = before


# The compiler -------------------------------------------------------------------------------------
_folder = tempfile.TemporaryDirectory(prefix="npformer-emulated-")
FOLDER = Path(os.environ.setdefault("NPFORMER_EMULATED", _folder.name))
"""Of compiled sources, which child processes find."""
_libraries: dict[str, ctypes.CDLL] = {}


def compile_library(code: str) -> ctypes.CDLL:
    """Compile a CUDA source as C++, once in a process."""
    key = hashlib.sha256(code.encode()).hexdigest()[:16]
    if key in _libraries:
        return _libraries[key]
    source, library = (FOLDER / f"{key}.{ending}" for ending in ("cpp", "so"))
    if library.exists():
        _libraries[key] = ctypes.CDLL(str(library))
        return _libraries[key]
    entries = "\n".join(
        f'extern "C" const char* launch_{name}(unsigned b, unsigned t, void** a) '
        f"{{ return emulation::launch({name}, b, t, a); }}\n"
        f'extern "C" const char* signature_{name}() {{ return emulation::signature({name}); }}'
        for name in NAMES.findall(code)
    )
    source.write_text(f'#include "{header()}"\n{code}\n{entries}\n', "utf-8")
    compile_to(library, str(source))
    _libraries[key] = ctypes.CDLL(str(library))
    return _libraries[key]


def header() -> Path:
    """Return a copy of the header, beside which g++ finds it compiled: a third of all its work."""
    copy = FOLDER / HEADER.name
    if not (compiled_header := copy.with_name(f"{copy.name}.gch")).exists():
        temporary_copy = copy.with_suffix(f".{os.getpid()}")
        temporary_copy.write_bytes(HEADER.read_bytes())
        temporary_copy.replace(copy)
        compile_to(compiled_header, "-x", "c++-header", str(copy))
    return copy


def compile_to(file: Path, *source: str) -> None:
    new = file.with_suffix(f".{os.getpid()}")  # another process sees all of it, or nothing
    compilation = subprocess.run(
        ["g++", *FLAGS, *source, "-o", str(new)], capture_output=True, text=True
    )
    if compilation.returncode:
        raise LaunchError(f"g++ refuses the source:\n{compilation.stderr[:4000]}")
    new.replace(file)


# Launches -----------------------------------------------------------------------------------------
class RawModule:
    """What `cupy.RawModule` is, as far as kernels use it."""

    def __init__(self, *, code: str) -> None:
        self._code = code

    def get_function(self, name: str) -> RawFunction:
        return RawFunction(compile_library(self._code), name)


class RawFunction:
    """A kernel, to be called with grid, block and arguments."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self._name, self._library = name, library
        self._launch = getattr(library, f"launch_{name}")
        self._launch.restype = ctypes.c_char_p
        self._launch.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p]
        signature = getattr(library, f"signature_{name}")
        signature.restype = ctypes.c_char_p
        self._declared = signature().decode().split()

    def __call__(self, grid: tuple[int], block: tuple[int], args: tuple[Any, ...]) -> None:
        if len(args) != len(self._declared):
            raise LaunchError(
                f"{self._name} takes {len(self._declared)} arguments, got {len(args)}"
            )
        arrays = [a._host for a in args if isinstance(a, FakeArray)]
        for array in arrays:
            if not array.flags.c_contiguous:
                raise LaunchError(f"{self._name} got an array with strides {array.strides}")
        memory = Memory(arrays)
        values: list[Any] = []
        constant_arrays = []
        for i, (declared, argument) in enumerate(zip(self._declared, args, strict=True)):
            values.append(self._value(i, declared, argument, memory))
            if declared.startswith("array_in") and isinstance(argument, FakeArray):
                constant_arrays.append((i, argument._host, argument._host.copy()))
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values)
        )
        written = {
            _address(a._host)
            for a, declared in zip(args, self._declared, strict=True)
            if isinstance(a, FakeArray) and declared.startswith("array:")
        }
        for watching in _watching:
            watching.append(self._name)
        fake_device._note(calls=1)
        self._library.set_order(_order)
        problem = self._launch(*grid, *block, pointers).decode()
        if problem:
            raise LaunchError(f"{self._name}: {problem}")
        if not memory.margins_are_intact():
            raise LaunchError(f"{self._name} wrote outside of its arrays")
        memory.copy_back()
        for i, array, before in constant_arrays:
            if _address(array) not in written and array.tobytes() != before.tobytes():
                raise LaunchError(f"{self._name} changed argument {i}, which it declares const")

    def _value(self, i: int, declared: str, argument: Any, memory: Memory) -> Any:
        """Return what CuPy would hand over, after a look at what the kernel declares."""
        kind, _, pointee = declared.partition(":")
        what = f"argument {i} of {self._name}, {declared}, got"
        if kind in ("array", "array_in"):
            if type(argument) is int and argument == 0:
                return ctypes.c_void_p(0)
            if not isinstance(argument, FakeArray):
                raise LaunchError(f"{what} {argument!r}")
            host = argument._host
            if {"F": "f", "D": "d"}.get(host.dtype.char, host.dtype.char) not in POINTEES[pointee]:
                raise LaunchError(f"{what} an array of {host.dtype}")
            return ctypes.c_void_p(memory.address(host))
        if kind == "index":
            if type(argument) is not int:
                raise LaunchError(f"{what} {argument!r}")
            return ctypes.c_longlong(argument)
        expected = np.float32 if pointee == "float" else np.float64
        if kind != "number" or type(argument) is not expected:
            raise LaunchError(f"{what} {argument!r}, a {type(argument).__name__}")
        return (ctypes.c_float if pointee == "float" else ctypes.c_double)(argument)


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


class Memory:
    """The arrays of a launch with margins around them; arrays that overlap share a place."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._places: list[tuple[int, int, np.ndarray, list[np.ndarray]]] = []
        spans = [(_address(a), _address(a) + a.nbytes, a) for a in arrays]
        spans.sort(key=lambda span: span[:2])
        groups: list[tuple[int, int, list[np.ndarray]]] = []
        for start, stop, array in spans:
            if groups and start < groups[-1][1]:
                first, last, overlapping = groups[-1]
                groups[-1] = first, max(last, stop), [*overlapping, array]
            else:
                groups.append((start, stop, [array]))
        for start, stop, members in groups:
            place = np.full(stop - start + 2 * MARGIN + 64, 0xFF, dtype=np.uint8)
            # Aligned as the array was, up to a line: kernels may rely on it.
            shift = (start - _address(place) - MARGIN) % 64
            place = place[shift : shift + stop - start + 2 * MARGIN]
            for array in members:
                at = _address(array) - start + MARGIN
                place[at : at + array.nbytes] = array.reshape(-1).view(np.uint8)
            self._places.append((start, stop, place, members))

    def address(self, array: np.ndarray) -> int:
        for start, stop, place, _ in self._places:
            if start <= _address(array) and _address(array) + array.nbytes <= stop:
                return _address(place) + MARGIN + _address(array) - start
        raise AssertionError("an array without a place")

    def margins_are_intact(self) -> bool:
        places = [place for _, _, place, _ in self._places]
        return all((edge == 0xFF).all() for p in places for edge in (p[:MARGIN], p[-MARGIN:]))

    def copy_back(self) -> None:
        for start, _, place, members in self._places:
            for array in members:
                at = _address(array) - start + MARGIN
                array.reshape(-1).view(np.uint8)[...] = place[at : at + array.nbytes]


# The module ---------------------------------------------------------------------------------------
class EmulatedModule(FakeModule):
    """CuPy's namespace on the fake device, with kernels, and with NaN where nothing was written."""

    RawModule = RawModule

    def empty(self, shape: Any, dtype: Any = float) -> FakeArray:
        fake_device._note(calls=1)
        host = np.empty(shape, dtype=dtype)
        host.reshape(-1).view(np.uint8)[...] = 0xFF
        return FakeArray(host)


module = EmulatedModule(np, fake_device.cupy, "cupy")


def backend() -> Backend:
    """Return the emulated CuPy as a backend of the name "cupy"."""
    return replace(fake_device.backend(), name="cupy", module=module)
