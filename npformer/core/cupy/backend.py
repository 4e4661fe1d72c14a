"""The backend of CuPy, which is imported only here, when it is first asked for."""

import os
from typing import Any

from npformer.core.backend import Backend, BackendUnavailableError, Link, Module
from npformer.core.cupy.pinned_feed import PinnedFeed

LOCAL_RANKS = (
    "MPI_LOCALRANKID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
)
"""Variables that launchers set: the number of a rank among those on its machine."""


def load_cupy() -> Backend:
    """Return the backend; BackendUnavailableError says which part of CUDA or CuPy is missing.

    Of several ranks on a machine, each takes its own GPU if there are enough.
    """
    install = (
        'python -m pip install "npformer[cuda13]"  (or "npformer[cuda12]" for a CUDA 12 driver)'
    )
    try:
        import cupy
        import cupyx.scipy.special
    except ImportError as error:
        raise BackendUnavailableError(
            f"backend 'cupy' needs CuPy, which cannot be imported here ({error}); "
            f"install it with  {install}"
        ) from error
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
        problem = "" if devices else "finds no device"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        problem = f"CUDA reports: {error}"
    if problem:
        raise BackendUnavailableError(
            f"backend 'cupy' needs an NVIDIA GPU and its driver; CuPy {cupy.__version__} is "
            f"installed and {problem}. Check that `nvidia-smi` lists a device, "
            "or stay on backend 'numpy'"
        )
    _choose_device(cupy, devices)  # before anything is allocated there
    try:  # CuPy loads the libraries and headers of CUDA only now
        square = cupy.ones((2, 2), dtype="float32")
        cupy.tanh(square @ square)
        cupy.fft.fft(square)
    except MemoryError:
        raise
    except Exception as error:  # the errors of NVRTC have no other common class
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise BackendUnavailableError(
            f"backend 'cupy' needs CUDA's libraries; CuPy {cupy.__version__} finds the GPU and "
            f"reports: {reason}. They come with  {install}"
        ) from error

    def free_memory() -> None:
        cupy.fft.config.get_plan_cache().clear()
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    return Backend(
        name="cupy",
        module=cupy,
        array_type=cupy.ndarray,
        upload=cupy.asarray,
        download=cupy.asnumpy,
        erfcx=cupyx.scipy.special.erfcx,
        fft=lambda: cupy.fft,
        add_at=cupy.add.at,
        device=lambda: f"{_properties(cupy)['name'].decode()}, CuPy {cupy.__version__}",
        number=lambda: int(cupy.cuda.Device().id),
        details=lambda: _details(cupy),
        feed=lambda: PinnedFeed(cupy, cupyx.empty_pinned),
        free_memory=free_memory,
        link=lambda: _link(cupy),
        set_tf32=lambda on: _set_tf32(cupy, on),
    )


def _choose_device(cupy: Module, devices: int) -> None:
    """Use the visible GPU with this rank's number, unless one has been chosen.

    A launcher may also show each rank its own GPU, by CUDA_VISIBLE_DEVICES: it is then number 0.
    """
    number = next((os.environ[name] for name in LOCAL_RANKS if name in os.environ), "")
    if number.isdigit() and int(number) % devices and cupy.cuda.Device().id == 0:
        cupy.cuda.Device(int(number) % devices).use()


def _link(cupy: Module) -> Link:
    from cupy.cuda import nccl

    return Link(
        nccl=nccl,
        stream=lambda: cupy.cuda.get_current_stream().ptr,
        device=lambda: cupy.cuda.Device().pci_bus_id,
    )


def _properties(cupy: Module) -> dict[str, Any]:
    properties: dict[str, Any] = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return properties


def _details(cupy: Module) -> list[tuple[str, str]]:
    def version(number: int) -> str:
        return f"{number // 1000}.{number % 1000 // 10}"  # CUDA writes 13.0 as 13000

    properties = _properties(cupy)
    free, total = cupy.cuda.Device().mem_info
    number, n = cupy.cuda.Device().id, cupy.cuda.runtime.getDeviceCount()
    which = f"number {number} of {n}, counted from 0" if n > 1 else "1 in all"
    return [
        ("GPU", f"{properties['name'].decode()}, {which}"),
        ("capability", f"{properties['major']}.{properties['minor']}"),
        ("memory", f"{free / 2**30:.1f} GiB free of {total / 2**30:.1f} GiB"),
        ("driver", f"for CUDA {version(cupy.cuda.runtime.driverGetVersion())}"),
        ("CUDA", f"{version(cupy.cuda.get_local_runtime_version())}, the runtime's"),
        ("cupy", str(cupy.__version__)),
    ]


def _set_tf32(cupy: Module, on: bool) -> None:
    """Switch TF32 on or off for all products of float32 arrays.

    CuPy 14 calls cuBLAS in two ways (cupy/_core/_routines_linalg.pyx). A product of two matrices
    takes the compute type of `get_compute_type`, which CUPY_TF32=1 in the environment sets too.
    `matmul` of more axes follows the math mode of the handle, which belongs to the thread and the
    device that call this.
    """
    from cupy._core import _routines_linalg as linalg

    properties = _properties(cupy)
    if on and properties["major"] < 8:
        raise ValueError(
            f"precision is 'tf32' and {properties['name'].decode()} has compute capability "
            f"{properties['major']}.{properties['minor']}; expected 8.0 or later, which has TF32. "
            "Use precision='float32'"
        )
    cublas = cupy.cuda.cublas
    kind = linalg.COMPUTE_TYPE_TF32 if on else linalg.COMPUTE_TYPE_DEFAULT
    mode = cublas.CUBLAS_TF32_TENSOR_OP_MATH if on else cublas.CUBLAS_DEFAULT_MATH
    linalg.set_compute_type("float32", kind)
    cublas.setMathMode(cupy.cuda.get_cublas_handle(), mode)
