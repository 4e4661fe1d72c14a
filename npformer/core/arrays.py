"""NumPy or CuPy: which library an array belongs to.

Everything above this file is written once. A function asks the arrays that it was given for
their module and goes on::

    xp = array_module(x)
    y = xp.exp(x)

What the two libraries spell differently (erf, the FFT, adding at repeated indices, moving an
array between host and device) is a function here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core.backend import Array, Backend, Module
from npformer.core.cupy_backend import load_cupy


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


_loaders: dict[str, Callable[[], Backend]] = {"cupy": load_cupy}


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
