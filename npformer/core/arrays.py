"""NumPy or CuPy: which library an array belongs to.

All other code is written once for both libraries. A function finds the module of its array::

    xp = array_module(x)
    y = xp.exp(x)

Where the two libraries differ, there is a function here: for erfcx, the FFT, adding at repeated
indices, and moving an array between host and device.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from npformer.core.backend import Array, Backend, Module
from npformer.core.cupy.backend import load_cupy
from npformer.core.support.wording import a_type, describe


@cache
def _scipy_special() -> Module:
    import scipy.special  # imported late: it takes longer than NumPy itself

    return scipy.special


@cache
def _numpy_fft() -> Module:
    # Since 1.18, SciPy's transforms have threads of their own, idle here, which it stops and
    # restarts around each fork. Once in thousands of forks it waited forever for one of them.
    os.environ.setdefault("DUCC0_NUM_THREADS", "1")
    import scipy.fft  # three times as fast as numpy.fft on two axes, and it keeps float32

    return scipy.fft


def own_cores() -> set[int]:
    """Return the cores that this thread may use; in a container, fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def cores() -> int:
    """Return how many cores this thread may use, or its share of them if processes share them."""
    return max(1, len(own_cores()) // _sharing)


def share_cores(n: int) -> None:
    """Say how many processes, this one included, share this one's cores from now on."""
    global _sharing
    _sharing = n


_sharing = 1


NUMPY = Backend(
    name="numpy",
    module=np,
    array_type=np.ndarray,
    upload=np.asarray,
    download=lambda x: x,
    erfcx=lambda x: _scipy_special().erfcx(x),
    fft=_numpy_fft,
    add_at=np.add.at,
    device=lambda: f"CPU ({cores()} core{'s' * (cores() != 1)}), NumPy {np.__version__}",
)

_backends: dict[str, Backend] = {"numpy": NUMPY}
_loaders: dict[str, Callable[[], Backend]] = {"cupy": load_cupy}


STAND_INS: dict[type, Backend] = {}
"""Subclasses of NumPy's array that stand for plain ones, and their backend of the same name."""


def register(backend: Backend) -> None:
    """Register an array library under its name, in place of any other of that name."""
    _backends[backend.name] = backend


def register_stand_in(backend: Backend) -> None:
    """Let arrays of a subclass of NumPy's stand for plain ones, also together with them."""
    STAND_INS[backend.array_type] = backend


def is_host_array(x: object) -> bool:
    """Whether `x` is NumPy's own array, or one that stands for it; other subclasses are not."""
    return type(x) is np.ndarray or type(x) in STAND_INS


def backends() -> list[str]:
    """Return the names that ``model.to(...)`` and ``--backend`` take."""
    return list(dict.fromkeys([*_backends, *_loaders]))


def get_backend(name: str) -> Backend:
    """Return a backend by its name; the first time, this imports its library.

    BackendUnavailableError says which library or device is missing, and how to get it.
    """
    if not isinstance(name, str) or name not in _backends:
        if not isinstance(name, str) or name not in _loaders:
            raise ValueError(f"unknown backend {describe(name)}; expected {', '.join(backends())}")
        register(_loaders[name]())
    return _backends[name]


def is_array(x: object) -> bool:
    """Whether `x` is an array of a backend that is in use."""
    return _find(x) is not None


def is_numpy_generator(generator: Any) -> bool:
    """Whether a random generator is NumPy's, instead of one on a device."""
    return isinstance(generator, np.random.Generator)


def _find(x: object) -> Backend | None:
    if isinstance(x, (np.ndarray, np.generic)):  # cheap, and true for most calls
        return STAND_INS.get(type(x), NUMPY)
    for backend in _backends.values():
        if isinstance(x, backend.array_type):
            return backend
    if type(x).__module__.partition(".")[0] == "cupy":  # which npformer has not imported yet
        return get_backend("cupy")
    return None


def backend_of(**arrays: Array) -> Backend:
    """Return the one backend that all these arrays belong to, or raise TypeError.

    The keywords are what the user calls the arrays.
    """
    if {type(x) for x in arrays.values()} == {np.ndarray}:
        return NUMPY  # cheap, and true for most calls
    first, owner = "", None
    for name, x in arrays.items():
        backend = _backend_of_one(name, x)
        if owner is None:
            first, owner = name, backend
        elif backend.name != owner.name:
            raise TypeError(
                f"{first} is a {owner.name} array and {name} is a {backend.name} array; expected "
                f"all on one backend. Move one of them: npformer.asarray({name}, "
                f"backend={owner.name!r}), or the model: model.to({backend.name!r})"
            )
        elif backend is not NUMPY:
            owner = backend
        _refuse_special_array(name, x)
    assert owner is not None, "backend_of was given no array"
    return owner


def _backend_of_one(name: str, x: Any) -> Backend:
    """Return the backend that an array belongs to, or raise TypeError."""
    backend = _find(x)
    if backend is None:
        raise TypeError(
            f"{name} is {a_type(x)}; expected an array. "
            f"Convert it first: numpy.asarray({name}, dtype=...), with dtype 'float32' for "
            "numbers, 'int64' for token ids and labels, 'bool' for a mask"
        )
    return backend


def _refuse_special_array(name: str, x: Any) -> None:
    """Raise TypeError for an array whose operators do something else than a plain array's."""
    if hasattr(x, "filled"):
        raise TypeError(
            f"{name} is a masked array; expected a plain one. Write {name}.filled(0), and pass "
            "mask=~numpy.ma.getmaskarray(...), True = keep, if what it hides is padding"
        )
    if isinstance(x, np.matrix):  # whose rows have two axes
        raise TypeError(f"{name} is a matrix; expected an array: numpy.asarray({name})")


def array_module(x: Array) -> Module:
    """Return the namespace, ``numpy`` or ``cupy``, that `x` belongs to."""
    if isinstance(x, (np.ndarray, np.generic)):  # cheap, and true for most calls
        return np if type(x) not in STAND_INS else STAND_INS[type(x)].module
    return backend_of(array=x).module


def asarray(x: Any, backend: str = "numpy") -> Array:
    """Return `x`, a list or an array of any backend, on the backend ``"numpy"`` or ``"cupy"``.

    An array that is already there is returned as it is.
    """
    if type(x) is np.ndarray and backend == "numpy":
        return x
    target = get_backend(backend)
    source = _find(x)
    if source is not None and source.name == target.name:
        return x
    return target.upload(_list_to_array(x) if source is None else source.download(x))


def to_numpy(x: Any) -> np.ndarray:
    """Return `x`, a list or an array of any backend, as a NumPy array. This waits for a GPU."""
    if type(x) is np.ndarray:
        return x
    return _list_to_array(x) if _find(x) is None else backend_of(x=x).download(x)


def _list_to_array(x: Any) -> np.ndarray:
    """Return numbers in a list, or one number, as a NumPy array."""
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, OverflowError):  # rows of several lengths, for example
        array = None
    if array is None or array.dtype.kind not in "biufc":
        raise TypeError(
            f"x is {describe(x)}; expected an array, a number, or lists of equally many numbers"
        )
    return array


def like(host: Any, x: Array) -> Array:
    """Return the NumPy array `host` on the backend of `x`."""
    return backend_of(x=x).upload(host)


def erfcx(x: Array) -> Array:
    """Return exp(x^2) (1 - erf(x)), elementwise, in the dtype of `x`."""
    return backend_of(x=x).erfcx(x)


def fft_module(x: Array) -> Module:
    """Return the FFT namespace for arrays like `x`."""
    return backend_of(x=x).fft()


def add_at(target: Array, indices: Array, values: Array) -> None:
    """Do ``target[indices] += values``, adding several times where an index is repeated."""
    backend_of(target=target, indices=indices, values=values).add_at(target, indices, values)
