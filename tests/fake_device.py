"""A strict fake device: NumPy behind a wrapper that does what CuPy's arrays do, only more strictly.

It computes on the CPU and raises where a GPU would raise, would be silently wrong, or would do
something slow that nobody asked for. It counts how often the host waits for it::

    npformer.core.arrays.register(fake_device.backend())
    model.to("fake")
    with fake_device.waits(0):
        loss, gradients = team.step(batch, generator=None)

Names and keywords are compared with the CuPy that is installed, which needs no GPU. Without CuPy
that check is left out, and `NOT_CHECKED` says so.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import scipy.fft
import scipy.special

from npformer.core import Backend, Link
from tests.needs import NEEDS

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about CUDA's folder, on machines that have none
        import cupy
        import cupyx.scipy.special as cupy_special
except ImportError as error:
    cupy = cupy_special = None
    NOT_CHECKED = f"{NEEDS['cupy']} (names and keywords are compared with CuPy's; {error})"
else:
    NOT_CHECKED = ""


# What happened ------------------------------------------------------------------------------------
@dataclass
class Counts:
    """What happened inside ``with count()``.

    Attributes
    ----------
    waits : list of str
        What waited for the device, in order.
    uploads : int
        Arrays copied from the host.
    calls : int
        Functions, operators and indexing: on a GPU, about one launch each.
    copies : list of str
        Products for which CuPy copies a factor, or goes through an array of pointers.
    frees : int
        Times that memory which was held for later was given back.
    precisions : list of bool
        What TF32 was switched to, in order.
    """

    waits: list[str] = field(default_factory=list)
    uploads: int = 0
    calls: int = 0
    copies: list[str] = field(default_factory=list)
    frees: int = 0
    precisions: list[bool] = field(default_factory=list)

    @property
    def synchronisations(self) -> int:
        return len(self.waits)


_counting: list[Counts] = []


@contextmanager
def count() -> Iterator[Counts]:
    """Count synchronisations, uploads and calls; blocks may be nested."""
    counts = Counts()
    _counting.append(counts)
    try:
        yield counts
    finally:
        _counting.remove(counts)


@contextmanager
def waits(n: int = 0) -> Iterator[Counts]:
    """Assert that the host waits for the device so many times inside."""
    with count() as counts:
        yield counts
    assert counts.synchronisations == n, counts.waits


def _note(**added: Any) -> None:
    """Add to the numbers, or to the lists, of all `Counts` that are open."""
    for counts in _counting:
        for name, value in added.items():
            setattr(counts, name, getattr(counts, name) + value)


def _note_product(a: FakeArray, b: FakeArray) -> None:
    """Note what `matmul` in cupy/_core/_routines_linalg.pyx does beside multiplying."""
    stacks = max(a.ndim, b.ndim) > 2  # of one matrix by another cuBLAS takes transposed ones
    slow = [x for x in (a, b) if not x.flags.c_contiguous and (stacks or not x.flags.f_contiguous)]
    messages = [f"a factor {x.shape} of {a.shape} @ {b.shape} is copied" for x in slow]
    if stacks and a.shape[:-2] != b.shape[:-2]:
        messages.append(f"{a.shape} @ {b.shape} goes through pointers")
    _note(copies=messages)


_limit: list[int] = []


class FakeOutOfMemoryError(MemoryError):
    """CuPy's error, with its message."""


@contextmanager
def limit(n_bytes: int) -> Iterator[None]:
    """Refuse to make an array of more bytes."""
    _limit.append(n_bytes)
    try:
        yield
    finally:
        _limit.remove(n_bytes)


# What may come in, what goes out ------------------------------------------------------------------
def _refuse_host(x: object) -> None:
    """Refuse what belongs to NumPy: its arrays, and its numbers, which are never just numbers."""
    if isinstance(x, np.ndarray):
        raise TypeError(f"Unsupported type {type(x)}: upload host arrays with asarray")
    if isinstance(x, np.generic):
        raise TypeError(
            f"a NumPy scalar, {x!r}, beside a device array: it has a dtype and float32 becomes "
            "float64; use a Python number"
        )


def _host(x: Any) -> Any:
    """Open the wrapper, also inside lists and tuples; refuse what is not on the device."""
    if isinstance(x, FakeArray):
        return x._host
    if isinstance(x, list | tuple):
        return type(x)(_host(item) for item in x)
    _refuse_host(x)
    return x


def _device(x: Any) -> Any:
    """Wrap a result: nothing that a device computes comes back as a number of the host."""
    if isinstance(x, np.ndarray | np.generic | bool):
        if _limit and np.asarray(x).nbytes > min(_limit):
            raise FakeOutOfMemoryError(
                f"Out of memory allocating {np.asarray(x).nbytes:,} bytes (allocated so far: "
                f"{0:,} bytes)."
            )
        return FakeArray(np.asarray(x))
    if isinstance(x, list | tuple):
        return type(x)(_device(item) for item in x)
    return x  # shapes, dtypes


def _flat(arguments: tuple[Any, ...]) -> Iterator[FakeArray]:
    for x in arguments:
        if isinstance(x, FakeArray):
            yield x
        elif isinstance(x, list | tuple):
            yield from _flat(tuple(x))


def _keep_precision(name: str, arguments: tuple[Any, ...], result: Any = None) -> None:
    """Refuse float32 and float64 side by side, and float32 that comes out as float64."""
    floats = {x.dtype.name for x in _flat(arguments) if x.dtype.kind == "f"}
    results = result if isinstance(result, tuple) else (result,)
    grown = {x.dtype.name for x in results if isinstance(x, FakeArray)} & {"float64"}
    if floats == {"float32", "float64"} or (floats == {"float32"} and grown):
        dtypes = ", ".join(x.dtype.name for x in _flat(arguments))
        raise TypeError(f"{name} of {dtypes}: float32 becomes float64; cast it where it is meant")


# CuPy's own word on names and keywords ------------------------------------------------------------
@functools.cache
def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _check_keywords(name: str, cupys: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse an argument that CuPy's function of this name does not take."""
    if cupys is None:
        return
    if isinstance(cupys, cupy.ufunc):
        unknown = set(kwargs) - {"out", "dtype", "casting"}
        if unknown:
            raise TypeError(f"cupy.{name} takes no argument {', '.join(sorted(unknown))}")
        return
    signature = _signature(cupys)
    if signature is not None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"cupy.{name}: {error}; CuPy has {name}{signature}") from error


@functools.cache
def _method_arguments(name: str) -> frozenset[str] | None:
    """Return the arguments of a method of cupy.ndarray, which only its docstring lists."""
    if cupy is None:
        return None
    written = re.match(r"[\w.]+\((.*?)\)", getattr(cupy.ndarray, name).__doc__ or "")
    if written is None:
        return None
    words = [argument.partition("=")[0].split() for argument in written[1].split(",")]
    return frozenset(argument[-1].lstrip("*") for argument in words if argument)


# The module ---------------------------------------------------------------------------------------
WAITING_FUNCTIONS = ("nonzero", "flatnonzero", "argwhere", "unique")
"""Their results' shapes depend on values: the device is asked before anything can go on."""


class FakeModule:
    """A namespace with NumPy's functions under the names that CuPy has, for `FakeArray`."""

    def __init__(self, numpys: ModuleType, cupys: ModuleType | None, name: str) -> None:
        self._numpys, self._cupys, self._name = numpys, cupys, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._cupys is not None and not hasattr(self._cupys, name):
            raise AttributeError(f"{self._name} has no {name!r}; NumPy has")
        if name == "random":
            raise AttributeError("cupy.random lacks 27 methods: draw on the host and upload")
        ours = getattr(self._numpys, name)
        theirs = None if self._cupys is None else getattr(self._cupys, name)
        if isinstance(ours, ModuleType):
            return FakeModule(ours, theirs, f"{self._name}.{name}")
        if name == "ndarray":
            return FakeArray
        if name == "asarray":
            return asarray
        if not callable(ours) or isinstance(ours, type):
            return ours  # pi, inf, newaxis, float32
        return _function(name, ours, theirs)


def _function(name: str, ours: Callable[..., Any], theirs: Any) -> Callable[..., Any]:
    @functools.wraps(ours)
    def call(*args: Any, **kwargs: Any) -> Any:
        _check_keywords(name, theirs, args, kwargs)
        inputs = [_host(x) for x in args]
        options = {key: _host(value) for key, value in kwargs.items()}
        if name in WAITING_FUNCTIONS or (name == "where" and len(args) == 1):
            _note(waits=[name])
        out = kwargs.get("out")
        if name == "matmul":
            _note_product(*args[:2])
            if out is not None:
                _check_matmul_out(args, out)
        _note(calls=1)
        result = _device(ours(*inputs, **options))
        if "dtype" not in kwargs:
            _keep_precision(name, (*args, *kwargs.values()), result)
        return result if out is None else out

    return call


def _check_matmul_out(operands: tuple[Any, ...], out: FakeArray) -> None:
    if not out.flags.c_contiguous:
        raise ValueError("matmul(out=) is not C-contiguous")
    if any(x.dtype != out.dtype for x in _flat(operands)):
        raise TypeError(f"matmul(out=) has dtype {out.dtype}, not that of its operands")


def asarray(x: Any, dtype: Any = None) -> FakeArray:
    """Bring `x` to the fake device, as nothing else does."""
    if isinstance(x, FakeArray):
        return x if dtype is None else x.astype(dtype, copy=False)
    host = np.array(x, dtype=dtype)  # a copy: the device does not see what the host writes later
    if host.dtype.kind not in "biufc":
        raise ValueError(f"Unsupported dtype {host.dtype}")
    _note(uploads=1)
    return FakeArray(host)


def download(x: FakeArray) -> np.ndarray:
    """Return a NumPy array; waits for the device."""
    return x.get()


def add_at(target: FakeArray, indices: FakeArray, values: FakeArray) -> None:
    """``target[indices] += values``, once for every time that an index occurs."""
    _note(calls=1)
    _keep_precision("add.at", (target, values))
    _call_in_range(np.add.at, _host(target), _host(indices), _host(values))


class FakeFeed:
    """Brings batches to the device, and takes each one away when the next one comes."""

    def __init__(self) -> None:
        self._last: list[FakeArray] = []
        self.closed = False

    def __call__(self, *arrays: np.ndarray | None) -> tuple[FakeArray | None, ...]:
        assert not self.closed
        for x in self._last:  # on a GPU they would hold another batch now
            x._host[...] = np.ones((), x.dtype) if x.dtype.kind == "b" else 99
        fed = tuple(None if x is None else asarray(x) for x in arrays)
        self._last = [x for x in fed if x is not None]
        return fed

    def close(self) -> None:
        self.closed = True


def free_memory() -> None:
    """Count that memory was given back."""
    _note(frees=1)


def set_tf32(on: bool) -> None:
    """Note the precision of products; the fake device computes them as before."""
    _note(precisions=[on])


def _call_in_range(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except IndexError as error:
        raise IndexError(f"{error}; CuPy would wrap it silently") from error


module = FakeModule(np, cupy, "cupy")
fft = FakeModule(scipy.fft, None if cupy is None else cupy.fft, "cupy.fft")
erfcx = _function("erfcx", scipy.special.erfcx, None if cupy is None else cupy_special.erfcx)


# The array ----------------------------------------------------------------------------------------
_METHODS = (
    "all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot fill flatten "
    "max mean min prod ravel repeat reshape round sort squeeze std sum swapaxes take trace "
    "transpose var view"
)
METHODS = frozenset(_METHODS.split())


class FakeArray:
    """An array on the fake device. It holds a NumPy array and does not show it.

    Parameters
    ----------
    host : numpy.ndarray
        Its entries, taken as they are; `asarray` copies.
    """

    __slots__ = ("_host",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray) -> None:
        self._host = host

    # Known without asking the device

    shape, dtype, ndim, size, nbytes, itemsize, strides, flags = (
        property(operator.attrgetter(f"_host.{name}"))
        for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags")
    )

    def __len__(self) -> int:
        return len(self._host)

    @property
    def data(self) -> Any:
        """Where the array lies: what a library takes that knows no arrays."""
        return SimpleNamespace(ptr=self._host.ctypes.data)

    T, mT, real, imag = (
        property(lambda self, name=name: FakeArray(getattr(self._host, name)))
        for name in ("T", "mT", "real", "imag")
    )

    # Methods: NumPy's, with the arguments that CuPy's have

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"cupy.ndarray has no {name!r}, or the fake device does not")
        return functools.partial(self._method, name)

    def _method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        known = _method_arguments(name)
        unknown = set() if known is None else set(kwargs) - known
        if unknown:
            raise TypeError(f"cupy.ndarray.{name} takes no argument {', '.join(sorted(unknown))}")
        inputs = [_host(x) for x in args]
        options = {key: _host(value) for key, value in kwargs.items()}
        _note(calls=1)
        result = _device(getattr(self._host, name)(*inputs, **options))
        if name != "astype" and "dtype" not in kwargs:
            _keep_precision(name, (self, *args, *kwargs.values()), result)
        return result if kwargs.get("out") is None else kwargs["out"]

    def __copy__(self) -> FakeArray:
        return self.copy()

    def __deepcopy__(self, memo: object) -> FakeArray:
        return self.copy()

    def __reduce__(self) -> Any:
        raise TypeError("a device array in a pickle does not open on a machine without a GPU")

    # Back to the host; `_waiting` makes the others

    def __iter__(self) -> Iterator[FakeArray]:
        _note(waits=["iteration"])
        return (self[i] for i in range(len(self)))

    def __index__(self) -> int:
        raise TypeError("a device array cannot be used as a Python index; CuPy's have no __index__")

    # NumPy is kept out

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
            "a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        for x in inputs:
            _refuse_host(x)  # the array or scalar on the left of an operator
        raise TypeError(f"numpy.{ufunc.__name__} of a device array; use array_module(x)'s")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} of a device array; use array_module(x)'s")

    # Indexing

    def __getitem__(self, index: Any) -> FakeArray:
        index, kinds = _check_index(index)
        _note(calls=1)
        if "b" in kinds:
            _note(waits=["a boolean mask as index"])
        if not kinds:
            return FakeArray(self._host[index])
        return FakeArray(_call_in_range(operator.getitem, self._host, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        index, kinds = _check_index(index)
        if isinstance(value, list | tuple):
            raise TypeError("a list assigned to a device array is an upload; use asarray")
        source = _host(value)
        _keep_precision("assignment", (self, value))
        _note(calls=1)
        if "b" in kinds:
            _note(waits=["a boolean mask as index"])
        elif kinds and isinstance(value, FakeArray):
            places = _call_in_range(
                operator.getitem, np.arange(self.size).reshape(self.shape), index
            )
            if np.unique(places).size < places.size:
                raise ValueError("an index occurs twice: which value stays is undefined on a GPU")
        if kinds:
            _call_in_range(operator.setitem, self._host, index, source)
        else:
            self._host[index] = source


def _check_index(index: Any) -> tuple[tuple[Any, ...], set[str]]:
    """Return a NumPy index that gives views of no axes too, and the kinds of arrays in it."""
    indices = index if isinstance(index, tuple) else (index,)
    opened: list[Any] = []
    kinds = set()
    for index_of_axis in indices:
        if isinstance(index_of_axis, FakeArray):
            if index_of_axis.dtype.kind not in "biu":
                raise IndexError(
                    f"an index of dtype {index_of_axis.dtype}; expected whole numbers or bool"
                )
            kinds.add(index_of_axis.dtype.kind)
            opened.append(index_of_axis._host)
        elif isinstance(index_of_axis, np.ndarray):
            raise TypeError(
                f"Unsupported type {type(index_of_axis)} as index: CuPy would upload it"
            )
        elif isinstance(index_of_axis, list | bool | np.bool_):
            raise TypeError(f"a {type(index_of_axis).__name__} as index: CuPy would upload it")
        else:
            opened.append(index_of_axis)
    if not any(index_of_axis is Ellipsis for index_of_axis in opened):
        opened.append(Ellipsis)
    return tuple(opened), kinds


def _operate(ufunc: np.ufunc, *operands: Any, out: FakeArray | None = None) -> Any:
    for x in operands:
        if not isinstance(x, FakeArray | np.ndarray | np.generic | bool | int | float | complex):
            return NotImplemented
    inputs = [_host(x) for x in operands]
    _note(calls=1)
    if ufunc is np.matmul:
        _note_product(*operands)
    result = _device(ufunc(*inputs, out=None if out is None else out._host))
    _keep_precision(ufunc.__name__, operands, result)
    return result if out is None else out


BINARY = (
    "add=add sub=subtract mul=multiply truediv=true_divide floordiv=floor_divide mod=remainder "
    "pow=power matmul=matmul and=bitwise_and or=bitwise_or xor=bitwise_xor lshift=left_shift "
    "rshift=right_shift"
)
COMPARISONS = "eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal"
UNARY = "neg=negative pos=positive abs=absolute invert=invert"
"""Python's names of operators, and NumPy's of the functions that compute them."""


def _pairs(names: str) -> Iterator[tuple[str, np.ufunc]]:
    for pair in names.split():
        operator_name, _, ufunc = pair.partition("=")
        yield operator_name, getattr(np, ufunc)


def _add_operators() -> None:
    for name, ufunc in _pairs(f"{BINARY} {COMPARISONS}"):
        setattr(FakeArray, f"__{name}__", lambda a, b, f=ufunc: _operate(f, a, b))
    for name, ufunc in _pairs(BINARY):
        setattr(FakeArray, f"__r{name}__", lambda a, b, f=ufunc: _operate(f, b, a))
        if name != "matmul":
            setattr(FakeArray, f"__i{name}__", lambda a, b, f=ufunc: _operate(f, a, b, out=a))
    for name, ufunc in _pairs(UNARY):
        setattr(FakeArray, f"__{name}__", lambda a, f=ufunc: _operate(f, a))


_add_operators()


def _wrap_wait(name: str, compute: Callable[..., Any]) -> None:
    """Add a method that waits for the device and computes something of the host's array."""

    def method(self: FakeArray, *arguments: Any) -> Any:
        _note(waits=[f"{name.strip('_')}()"])
        return compute(self._host, *arguments)

    setattr(FakeArray, name, method)


for _name, _compute in {
    "get": np.copy,
    "item": np.ndarray.item,
    "tolist": np.ndarray.tolist,
    "nonzero": lambda host: _device(host.nonzero()),
    "__bool__": bool,
    "__int__": int,
    "__float__": float,
    "__repr__": lambda host: f"Fake{host!r}",
    "__format__": lambda host, given: format(host if host.ndim else host.item(), given),
}.items():
    _wrap_wait(_name, _compute)


def backend(link: Callable[[], Link] | None = None) -> Backend:
    """Return the fake device as a backend of the name "fake"; `link` joins those of processes."""
    return Backend(
        name="fake",
        module=module,
        array_type=FakeArray,
        upload=asarray,
        download=download,
        erfcx=erfcx,
        fft=lambda: fft,
        add_at=add_at,
        device=lambda: "a strict fake device: the CPU, behind CuPy's rules",
        details=lambda: [("GPU", "a strict fake device"), ("memory", "that of the CPU")],
        feed=FakeFeed,
        link=link,
        free_memory=free_memory,
        set_tf32=set_tf32,
    )
