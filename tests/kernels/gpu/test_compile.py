"""CUDA's own compiler takes every kernel, for every GPU that is meant, without a GPU.

The wheel nvidia-cuda-nvrtc holds the compiler that CuPy calls; it needs no driver. It also says
what a kernel will use of a GPU, and which numbers it computes with.
"""

import ctypes
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from npformer.engine.gpu.source import FOLDER, REAL, Source

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""A100, H100 and H200, B200."""

SOURCES = sorted(path.stem for path in FOLDER.glob("*.cu"))


def find_compiler() -> Path | None:
    """Return the library in the wheel, which lies in the namespace package `nvidia`."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else spec.submodule_search_locations or []
    libraries = [path for folder in folders for path in Path(folder).rglob("libnvrtc.so.*")]
    return next((path for path in libraries if "builtins" not in path.name), None)


COMPILER = find_compiler()

pytestmark = pytest.mark.skipif(
    COMPILER is None,
    reason='no CUDA compiler: python -m pip install "npformer[cuda-compile]" brings it, '
    "and needs no GPU",
)


@cache
def nvrtc() -> ctypes.CDLL:
    assert COMPILER is not None
    return ctypes.CDLL(str(COMPILER))


@cache
def compile_source(code: str, architecture: str) -> tuple[str, str]:
    """Return what the compiler says and the PTX; if it refuses, raise ValueError in its words."""
    program = ctypes.c_void_p()

    def check(status: int) -> None:
        assert status == 0, f"NVRTC's status {status}"

    def text(what: str) -> str:
        size = ctypes.c_size_t()
        check(getattr(nvrtc(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        check(getattr(nvrtc(), f"nvrtcGet{what}")(program, buffer))
        return buffer.value.decode()

    create = nvrtc().nvrtcCreateProgram
    check(create(ctypes.byref(program), code.encode(), b"kernels.cu", 0, None, None))
    try:
        # As CuPy does, from version 14 on; and the assembler is to say what it used.
        options = [f"--gpu-architecture={architecture}", "-std=c++17", "--ptxas-options=-v"]
        c_options = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = nvrtc().nvrtcCompileProgram(program, len(options), c_options)
        log = text("ProgramLog")
        if status:
            raise ValueError(log)
        return log, text("PTX")
    finally:
        check(nvrtc().nvrtcDestroyProgram(ctypes.byref(program)))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("char", REAL)
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_compiles_and_stays_in_registers(name, char, architecture) -> None:
    code = Source(name).text(char)
    log, ptx = compile_source(code, architecture)
    assert "warning" not in log.lower(), log
    kernels = re.findall(r'extern "C" __global__ void (\w+)\(', code)
    assert kernels, "a source without a kernel"
    assert all(f".entry {kernel}(" in ptx for kernel in kernels)
    functions = re.findall(r"Function properties for (\w+)", log)
    assert re.findall(r"(\d+) bytes spill stores", log) == ["0"] * len(functions), log
    register_counts = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    assert len(functions) >= len(kernels) <= len(register_counts)
    assert max(register_counts) * 1024 <= 65536, "a block of the largest size does not fit"
    if char == "f":
        # One literal such as 0.5 makes an expression double, which most GPUs compute far slower.
        assert ".f64" not in ptx


@pytest.mark.parametrize(
    "broken",
    [
        ("sum += x", "sum += y"),
        ("index_t n =", "index_t rows ="),
        ("__device__ real block_sum", "__device__ block_sum"),
        ("extern", "external"),
    ],
)
def test_a_broken_source_is_refused(broken) -> None:
    code = Source("sums").text("f")
    assert broken[0] in code
    with pytest.raises(ValueError, match="error"):
        compile_source(code.replace(*broken), "sm_90")


def test_a_double_among_floats_is_found() -> None:
    code = Source("sums").text("f").replace("sum += x[row * width]", "sum += 0.1 * x[row * width]")
    _, ptx = compile_source(code, "sm_90")
    assert ".f64" in ptx
