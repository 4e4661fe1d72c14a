"""NumPy or CuPy: the one place that knows which library an array belongs to.

Everything above this file is written once. A function asks the arrays that it was given for
their module and goes on::

    xp = array_module(x)
    y = xp.exp(x)

What the two libraries spell differently (erf, the FFT, adding at repeated indices, moving an
array between host and device) is a function here. CuPy is imported when it is first asked for,
and never before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of any backend. NumPy's and CuPy's arrays share no base class, so this is a name for
the reader; what a function expects stands in its docstring and is checked when it is called."""

Module: TypeAlias = Any
"""The namespace of a backend: ``numpy``, ``cupy``, or anything that spells the same functions."""


class BackendUnavailableError(RuntimeError):
    """The backend that was asked for cannot run on this machine."""


class BatchTooLargeError(MemoryError):
    """The memory of the device, or of the host, is not enough for a batch of this size.

    Attributes
    ----------
    batch_size : int
        What was tried.
    """

    def __init__(self, message: str, batch_size: int) -> None:
        super().__init__(message)
        self.batch_size = batch_size

    def __reduce__(self) -> Any:  # it may come from a worker process
        return type(self), (str(self), self.batch_size), self.__dict__


class Feed(Protocol):
    """Brings batches to a device while it computes.

    What a call returns is for work that is launched before the next call: its memory is used again.
    """

    def __call__(self, *arrays: np.ndarray | None) -> tuple[Array, ...]:
        """Return NumPy arrays on the device, None as it is; the host does not wait for the copy."""

    def close(self) -> None:
        """Wait until nothing is under way: the memory may then be used for something else."""


def _nothing() -> None:
    """Do nothing, where a library has nothing to do."""


@dataclass(frozen=True)
class Backend:
    """What npformer needs to know of an array library.

    Attributes
    ----------
    name : str
        The word a user writes: ``"numpy"``, ``"cupy"``.
    module : module
        The namespace with NumPy's function names.
    array_type : type
        The class of its arrays.
    upload : callable
        NumPy array -> array of this backend.
    download : callable
        Array of this backend -> NumPy array. The one way back to the host.
    erf : callable
        The error function, elementwise.
    fft : callable
        Returns the module with ``fft2``, ``rfft`` and ``fft`` for these arrays.
    add_at : callable
        ``add_at(target, indices, values)``: ``target[indices] += values``, adding once for every
        time that an index occurs.
    device : callable
        Where the arrays live, in words.
    details : callable
        Lines about the device, ``[(what, found), ...]``, for `npformer doctor`.
    feed : callable or None
        Returns a `Feed`; None where host arrays need no way to go.
    free_memory : callable
        Gives memory that is held for later use back to the system.
    set_tf32 : callable or None
        ``set_tf32(on)`` rounds the factors of float32 products to TF32 from now on, or no longer;
        None where there is no TF32. Raises ValueError if the device has none.
    """

    name: str
    module: Module
    array_type: type
    upload: Callable[[Any], Array]
    download: Callable[[Array], np.ndarray]
    erf: Callable[[Array], Array]
    fft: Callable[[], Module]
    add_at: Callable[[Array, Array, Array], None]
    device: Callable[[], str]
    details: Callable[[], list[tuple[str, str]]] = list
    feed: Callable[[], Feed] | None = None
    free_memory: Callable[[], None] = _nothing
    set_tf32: Callable[[bool], None] | None = None


def _numpy_erf(x: Array) -> Array:
    from scipy.special import erf  # here, not above: importing it costs more than NumPy itself

    return erf(x)


def _numpy_fft() -> Module:
    import scipy.fft  # three times as fast as numpy.fft on two axes, and float32 stays float32

    return scipy.fft


def _numpy_add_at(target: Array, indices: Array, values: Array) -> None:
    np.add.at(target, indices, values)


def cores() -> int:
    """Return how many cores this thread may use: in a container fewer than the machine has."""
    import os

    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _numpy_device() -> str:
    return f"CPU ({cores()} cores), NumPy {np.__version__}"


NUMPY = Backend(
    name="numpy",
    module=np,
    array_type=np.ndarray,
    upload=np.asarray,
    download=lambda x: x,
    erf=_numpy_erf,
    fft=_numpy_fft,
    add_at=_numpy_add_at,
    device=_numpy_device,
)

_NUMPY_TYPES = (np.ndarray, np.generic)

_backends: dict[str, Backend] = {"numpy": NUMPY}


def _load_cupy() -> Backend:
    install = (
        'install it with  python -m pip install "npformer[cuda13]"  '
        '(or "npformer[cuda12]" for a CUDA 12 driver)'
    )
    try:
        import cupy
        import cupyx.scipy.special
    except ImportError as error:
        raise BackendUnavailableError(
            f"backend 'cupy' needs CuPy, which cannot be imported here ({error}); {install}"
        ) from error
    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendUnavailableError(
            f"backend 'cupy' needs an NVIDIA GPU and its driver; CuPy {cupy.__version__} is "
            f"installed but CUDA reports: {error}. Check that `nvidia-smi` lists a device, "
            "or stay on backend 'numpy'"
        ) from error
    if found == 0:
        raise BackendUnavailableError(
            f"backend 'cupy' needs an NVIDIA GPU; CuPy {cupy.__version__} is installed and finds "
            "no device. Check that `nvidia-smi` lists one, or stay on backend 'numpy'"
        )
    try:  # CuPy looks for CUDA's libraries and headers when they are needed, not before
        square = cupy.ones((2, 2), dtype="float32")
        cupy.tanh(square @ square)
        cupy.fft.fft(square)
    except MemoryError:
        raise
    except Exception as error:  # NVRTC's errors have no other class in common
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise BackendUnavailableError(
            f"backend 'cupy' needs CUDA's libraries; CuPy {cupy.__version__} finds the GPU and "
            f"reports: {said}. They come with  python -m pip install "
            '"npformer[cuda13]"  (or "npformer[cuda12]" for a CUDA 12 driver)'
        ) from error

    def device() -> str:
        return f"{_cupy_properties(cupy)['name'].decode()}, CuPy {cupy.__version__}"

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
        erf=cupyx.scipy.special.erf,
        fft=lambda: cupy.fft,
        add_at=cupy.add.at,
        device=device,
        details=lambda: _cupy_details(cupy),
        feed=lambda: PinnedFeed(cupy, cupyx.empty_pinned),
        free_memory=free_memory,
        set_tf32=lambda on: _cupy_set_tf32(cupy, on),
    )


def _cupy_properties(cupy: Module) -> dict[str, Any]:
    found: dict[str, Any] = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return found


def _cupy_details(cupy: Module) -> list[tuple[str, str]]:
    def version(number: int) -> str:
        return f"{number // 1000}.{number % 1000 // 10}"  # CUDA's way to write 13.0 is 13000

    properties = _cupy_properties(cupy)
    free, total = cupy.cuda.Device().mem_info
    return [
        ("GPU", f"{properties['name'].decode()}, {cupy.cuda.runtime.getDeviceCount()} in all"),
        ("capability", f"{properties['major']}.{properties['minor']}"),
        ("memory", f"{free / 2**30:.1f} GiB free of {total / 2**30:.1f} GiB"),
        ("driver", f"for CUDA {version(cupy.cuda.runtime.driverGetVersion())}"),
        ("CUDA", f"{version(cupy.cuda.get_local_runtime_version())}, the runtime's"),
        ("cupy", str(cupy.__version__)),
    ]


def _cupy_set_tf32(cupy: Module, on: bool) -> None:
    """Switch TF32 on or off for all products of float32 arrays.

    CuPy 14 has two ways to cuBLAS, in cupy/_core/_routines_linalg.pyx. A product of two matrices
    goes through `tensordot_core_v11`, which names a compute type in every call: `get_compute_type`
    says which. `matmul` of more axes calls gemmStridedBatchedEx or sgemmBatched, which leave that
    to the math mode of the handle. So both are set. CUPY_TF32=1 in the environment reaches the
    first way only. A handle belongs to one thread and one device: those that call this.
    """
    from cupy._core import _routines_linalg as linalg

    properties = _cupy_properties(cupy)
    if on and properties["major"] < 8:
        raise ValueError(
            f"precision is 'tf32' and {properties['name'].decode()} has compute capability "
            f"{properties['major']}.{properties['minor']}; expected 8.0 or later, which have TF32. "
            "Use precision='float32'"
        )
    cublas = cupy.cuda.cublas
    kind = linalg.COMPUTE_TYPE_TF32 if on else linalg.COMPUTE_TYPE_DEFAULT
    mode = cublas.CUBLAS_TF32_TENSOR_OP_MATH if on else cublas.CUBLAS_DEFAULT_MATH
    linalg.set_compute_type("float32", kind)
    cublas.setMathMode(cupy.cuda.get_cublas_handle(), mode)


class PinnedFeed:
    """Copies batches to a GPU on a stream of its own, through memory that the GPU reads directly.

    The stream that computes waits for a copy, the host does not: while the GPU is busy with one
    batch, the next one arrives. Two batches have memory, in turn. Before a third is copied into the
    first one's place, the copying stream waits for the work that was launched before the second
    came, and the host for the end of the first copy. So the host is never more than some batches
    ahead.

    Parameters
    ----------
    cupy : module
    empty_pinned : callable
        ``cupyx.empty_pinned``: makes NumPy arrays in such memory.
    """

    ALIGNMENT = 256  # bytes, that of CuPy's own allocations

    def __init__(self, cupy: Module, empty_pinned: Callable[..., np.ndarray]) -> None:
        self._cupy = cupy
        self._empty_pinned = empty_pinned
        self._copying = cupy.cuda.Stream(non_blocking=True)
        self._slots = [_Slot(), _Slot()]
        self._launched: Any = None  # marks all work that was launched before the last call

    def __call__(self, *arrays: np.ndarray | None) -> tuple[Array, ...]:
        """Return the arrays on the device.

        Parameters
        ----------
        *arrays : NumPy array or None
        """
        computing = self._cupy.cuda.get_current_stream()
        slot = self._slots[0]
        self._slots.reverse()
        offsets, size = [], 0
        for x in arrays:
            offsets.append(size)
            size += 0 if x is None else -(-x.nbytes // self.ALIGNMENT) * self.ALIGNMENT
        launched = computing.record(self._event())
        if slot.copied is not None:
            slot.copied.synchronize()  # or the host would write into what is still being copied
        if slot.size < size:
            slot.pinned = self._empty_pinned(size, dtype="uint8")
            slot.device = self._cupy.empty(size, dtype="uint8")
            slot.size = size
            self._copying.wait_event(launched)  # the new memory may have been in use till then
        elif self._launched is not None:
            self._copying.wait_event(self._launched)
        self._launched = launched
        for x, offset in zip(arrays, offsets, strict=True):
            if x is not None:
                place = slot.pinned[offset : offset + x.nbytes]
                np.copyto(place.view(x.dtype).reshape(x.shape), x)
        slot.device[:size].set(slot.pinned[:size], stream=self._copying)
        slot.copied = self._copying.record(self._event())
        computing.wait_event(slot.copied)
        return tuple(
            None if x is None else slot.view(offset, x)
            for x, offset in zip(arrays, offsets, strict=True)
        )

    def close(self) -> None:
        """Wait for the last copy."""
        self._copying.synchronize()

    def _event(self) -> Any:
        return self._cupy.cuda.Event(disable_timing=True)


class _Slot:
    """Memory for one batch on both sides, and what marks the end of the last copy."""

    pinned: Any = None
    device: Any = None
    copied: Any = None
    size = 0

    def view(self, offset: int, x: np.ndarray) -> Array:
        """Return the device's copy of `x`."""
        return self.device[offset : offset + x.nbytes].view(x.dtype).reshape(x.shape)


_loaders: dict[str, Callable[[], Backend]] = {"cupy": _load_cupy}


def register(backend: Backend) -> None:
    """Make another array library known, under its name.

    Parameters
    ----------
    backend : Backend
        What npformer needs to know of it. A backend of the same name is replaced.
    """
    _backends[backend.name] = backend


def backends() -> list[str]:
    """Return the names that ``model.to(...)`` and ``--backend`` take."""
    return list(dict.fromkeys([*_backends, *_loaders]))


def get_backend(name: str) -> Backend:
    """Return a backend by its name, importing its library when that is the first use.

    Parameters
    ----------
    name : str
        ``"numpy"`` or ``"cupy"``.

    Raises
    ------
    ValueError
        No backend has this name.
    BackendUnavailableError
        The library or the device is missing; the message says which, and how to get it.
    """
    if name not in _backends:
        if name not in _loaders:
            raise ValueError(f"unknown backend {name!r}; npformer has {', '.join(backends())}")
        register(_loaders[name]())
    return _backends[name]


def is_array(x: object) -> bool:
    """Whether `x` is an array of a backend that is in use."""
    return _find(x) is not None


def draws_on_host(generator: Any) -> bool:
    """Whether a generator of random numbers is NumPy's, and not one of a device."""
    return isinstance(generator, np.random.Generator)


def _find(x: object) -> Backend | None:
    if isinstance(x, _NUMPY_TYPES):  # most calls, so the cheap question first
        return NUMPY
    for backend in _backends.values():
        if isinstance(x, backend.array_type):
            return backend
    # The user imported CuPy and npformer has not seen it yet.
    if type(x).__module__.partition(".")[0] == "cupy":
        return get_backend("cupy")
    return None


def backend_of(**arrays: Array | None) -> Backend:
    """Return the one backend that all these arrays belong to.

    Parameters
    ----------
    **arrays : array or None
        The arrays under the names that the user knows them by. None is passed over.

    Raises
    ------
    TypeError
        One of them is not an array, or they belong to two backends.
    """
    if {type(x) for x in arrays.values() if x is not None} == {np.ndarray}:
        return NUMPY  # most calls, so the cheap question first
    first, owner = "", None
    for name, x in arrays.items():
        if x is None:
            continue
        found = _find(x)
        if found is None:
            raise TypeError(
                f"{name} is a {type(x).__name__}; expected an array. "
                f"Convert it first: numpy.asarray({name}, dtype=...), with dtype 'float32' for "
                "numbers, 'int64' for token ids and labels, 'bool' for a mask"
            )
        if owner is None:
            first, owner = name, found
        elif found is not owner:
            raise TypeError(
                f"{first} is a {owner.name} array and {name} is a {found.name} array; expected "
                f"all on one backend. Move one of them: npformer.asarray({name}, "
                f"backend={owner.name!r}), or the model: model.to({found.name!r})"
            )
    if owner is None:
        raise TypeError(f"{' and '.join(arrays) or 'nothing'} is None; expected an array")
    return owner


def array_module(x: Array) -> Module:
    """Return the namespace, ``numpy`` or ``cupy``, that `x` belongs to."""
    if isinstance(x, np.ndarray):
        return np
    return backend_of(array=x).module


def asarray(x: Any, backend: str = "numpy") -> Array:
    """Return `x` as an array of the backend named.

    Parameters
    ----------
    x : array_like
        A list, a NumPy array or an array of any backend.
    backend : str
        ``"numpy"`` or ``"cupy"``.

    Returns
    -------
    array
        `x` itself when it is already there.
    """
    if type(x) is np.ndarray and backend == "numpy":
        return x
    target = get_backend(backend)
    source = _find(x)
    if source is target:
        return x
    return target.upload(np.asarray(x) if source is None else source.download(x))


def to_numpy(x: Any) -> np.ndarray:
    """Return `x` as a NumPy array; on a GPU this waits for the device.

    Parameters
    ----------
    x : array_like
        A list or an array of any backend.
    """
    source = _find(x)
    return np.asarray(x if source is None else source.download(x))


def like(host: Any, x: Array) -> Array:
    """Return the NumPy array `host` on the backend where `x` lives."""
    return backend_of(x=x).upload(host)


def erf(x: Array) -> Array:
    """Return the error function of `x`, elementwise, in its own dtype."""
    return backend_of(x=x).erf(x)


def fft_module(x: Array) -> Module:
    """Return the FFT namespace for arrays of `x`'s backend."""
    return backend_of(x=x).fft()


def add_at(target: Array, indices: Array, values: Array) -> None:
    """``target[indices] += values``, once for every time that an index occurs."""
    backend_of(target=target, indices=indices, values=values).add_at(target, indices, values)


# Precision, memory --------------------------------------------------------------------------------

PRECISIONS = ("float32", "tf32")


class _Precisions(threading.local):
    """What backends were told in this thread; "float32" where nothing."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}


_precisions = _Precisions()
_asked_last: dict[str, str] = {}  # in whichever thread


def precision(backend: str) -> str:
    """Return how a backend multiplies float32 arrays: "float32", or "tf32" where that was asked.

    Parameters
    ----------
    backend : str
        A name in `backends()`.
    """
    return _precisions.of.get(backend, "float32")


class use_precision(AbstractContextManager[None]):
    """Set how float32 arrays are multiplied on a GPU; in a ``with`` statement, for its body.

    Parameters
    ----------
    precision : {"float32", "tf32"}
        "tf32": the factors of matrix products are rounded to 10 bits behind the point, 3 digits,
        and summed in float32, which tensor cores do several times as fast. Everything else, and
        float64, stays as it is.
    backend : str
        Whose products; TF32 is a format of NVIDIA's GPUs.

    Raises
    ------
    ValueError
        Another precision, or a backend or device that has no TF32.
    BackendUnavailableError
        There is no GPU.

    Notes
    -----
    It is for the thread that sets it: cuBLAS keeps its mode for each, and products of stacks of
    matrices follow that. For products of two matrices CuPy keeps one setting in the whole process:
    where threads ask for different precisions at once, those follow who asked last.

    Examples
    --------
    >>> with npformer.use_precision("tf32"):
    ...     history = npformer.fit(model, (x, y))
    """

    def __init__(self, precision: str, backend: str = "cupy") -> None:
        self._backend = backend
        self._before = _precisions.of.get(backend, "float32")
        self._set(precision)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        self._set(self._before)

    def _set(self, precision: str) -> None:
        backend = self._backend
        if precision not in PRECISIONS:
            raise ValueError(
                f"precision is {precision!r}; expected 'float32' or 'tf32'. npformer has no "
                "float16 and no bfloat16: 'tf32' is the fast way on a GPU, with weights in float32"
            )
        here, anywhere = (asked.get(backend, "float32") for asked in (_precisions.of, _asked_last))
        if here == anywhere == precision:
            return
        set_tf32 = get_backend(backend).set_tf32
        if set_tf32 is None:
            raise ValueError(
                f"precision is 'tf32' and the backend is {backend!r}; expected 'float32', for TF32 "
                "is a format of NVIDIA's GPUs. Move the model there, model.to('cupy'), or leave "
                "the precision as it is"
            )
        set_tf32(precision == "tf32")
        _precisions.of[backend] = _asked_last[backend] = precision


NO_MEMORY = ("ALLOC_FAILED", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")
"""How cuBLAS, cuFFT, CUDA's runtime and its driver say that there is no memory left."""


@contextmanager
def explained_memory_error(backend: str, batch: int, at_once: int | None = None) -> Iterator[None]:
    """Turn running out of memory into an error that says which batch size to try.

    What the failed computation held is let go, and the pool of memory is emptied, so that the
    caller can go on with a smaller batch.

    Parameters
    ----------
    backend : str
        Where it happened.
    batch : int
        Samples of the batch.
    at_once : int, optional
        Samples that were computed at a time, where the caller can choose that apart from the batch.

    Raises
    ------
    BatchTooLargeError
        From MemoryError, as CuPy's OutOfMemoryError is one, or from an error of CUDA's libraries
        that says the same.
    """
    try:
        yield
    except BatchTooLargeError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(word in str(error) for word in NO_MEMORY):
            raise
        from traceback import clear_frames

        # Their variables are the activations; as long as the traceback lives, so would they.
        earlier: BaseException | None = error
        while earlier is not None:
            clear_frames(earlier.__traceback__)
            earlier = earlier.__context__
        get_backend(backend).free_memory()
        tried = min(batch, at_once or batch)
        ways = [f"batch_size={batch // 2}"] if batch > 1 else []
        if at_once is not None and tried > 1:
            ways.append(f"micro_batch={tried // 2}, which makes the same step in smaller parts")
        said = str(error).rstrip(".") or "the system gave no memory"
        several = "s" if tried > 1 else ""
        raise BatchTooLargeError(
            f"out of memory on backend {backend!r} with {tried} sequence{several} at a time "
            f"({said}). Try "
            + (" or ".join(ways) or "shorter sequences or a smaller model")
            + ". What was computed has been let go: this process can go on",
            batch,
        ) from error
