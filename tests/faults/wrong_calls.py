"""Wrong calls of the whole public interface: valid calls with one or two arguments replaced.

Every call has to end in one of two ways: it is right, or it is refused in words, by an exception
that npformer raises on purpose, whose message names what was wrong. `wrong_calls` counts how many
end otherwise::

    raw      an error of NumPy's or Python's own, a warning, or a bare assertion
    silent   a result, although the value makes no sense, or not the result that it should have been
    hang     neither a result nor an error within `LONGEST` seconds
"""

import dataclasses
import inspect
import linecache
import re
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import npformer
from npformer.core import Layer
from tests.faults.valid_calls import CALLS, Target
from tests.faults.wrong_values import ARRAYS, SAME, VALUES, same_values

LONGEST = 5.0
PACKAGE = str(Path(npformer.__file__).parent)

ON_PURPOSE = (
    ValueError,
    TypeError,
    KeyError,
    OSError,
    ArithmeticError,
    MemoryError,
    npformer.BackendUnavailableError,
    npformer.GradcheckError,
    npformer.OptimcheckError,
    npformer.PromiseError,
)
"""What npformer raises, and its subclasses."""

OF_PYTHON = re.compile(
    r"[\w>]\(\) (missing|got an unexpected|got multiple|got some|takes) |"
    r"^Can't instantiate abstract class"
)
"""What Python says of arguments that are missing or unknown; it names function and argument."""

RAW = re.compile(
    r"'\w+' object|object is not|unsupported operand|not subscriptable|could not broadcast|ufunc|"
    r"\bnp\.(float|int|bool|str)|"
    r"cannot be interpreted|only length-1|only integer|invalid literal|list index|not iterable|"
    r"must be real number|array is too big|dimensions? (exceeded|mismatch)|could not be broadcast|"
    r"object cannot|has no attribute|has no len|Unable to allocate|truth value of an array"
)
"""What only Python and NumPy say."""


class WrongCall(NamedTuple):
    """A call, and what is wrong with it."""

    target: Target
    replaced: tuple[tuple[str, str], ...] = ()  # (argument, name of the value)
    without: str = ""  # an argument that is left out
    extra: str = ""  # one that does not exist

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.replaced]
        words += [f"without {self.without}"] * bool(self.without)
        words += [f"{self.extra}=1"] * bool(self.extra)
        return f"{self.target.name}({', '.join(words)})"


class Outcome(NamedTuple):
    """How a call ended."""

    kind: str  # "right", "words", "raw", "silent" or "hang"
    words: str  # of the error, or of what came back


# Calls --------------------------------------------------------------------------------------------
def single_replacements(target: Target) -> Iterator[WrongCall]:
    """Yield all calls of a function in which one thing is wrong."""
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in target.parameters.values())
    for name, valid in target.arguments().items():
        for value in values_for(valid):
            yield WrongCall(target, ((name, value),))
        if name in target.parameters and target.parameters[name].default is inspect._empty:
            yield WrongCall(target, without=name)
        if not any_keyword:
            yield WrongCall(target, extra=f"{name}s")


def values_for(valid: Any) -> list[str]:
    """Return the names of the values that can stand in place of a valid one."""
    values = [*VALUES, *same_values(valid)]
    if isinstance(valid, np.ndarray):
        for name, change in ARRAYS.items():
            try:
                changed = change(valid)
            except (ValueError, TypeError, IndexError):  # np.AxisError is a ValueError
                continue
            if not _equal(changed, valid):
                values.append(name)
    return values


def _equal(one: Any, other: np.ndarray) -> bool:
    return (
        isinstance(one, np.ndarray)
        and type(one) is type(other)
        and (one.dtype, one.dtype.byteorder) == (other.dtype, other.dtype.byteorder)
        and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    )


def draw_calls(n: int, seed: int) -> list[WrongCall]:
    """Draw wrong calls: each function equally often, and in a quarter of them two things wrong."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # some values are files
        singles = {target.name: list(single_replacements(target)) for target in CALLS}
    names = list(singles)
    calls = []
    while len(calls) < n:
        every = singles[names[rng.integers(len(names))]]
        if not every:  # a function without arguments
            continue
        call = every[rng.integers(len(every))]
        if rng.random() < 0.25:
            other = every[rng.integers(len(every))]
            names_of_replaced = {name for name, _ in (*call.replaced, (call.without, ""))}
            if other.replaced and other.replaced[0][0] not in names_of_replaced:
                call = call._replace(replaced=call.replaced + other.replaced)
        calls.append(call)
    return calls


# Outcomes -----------------------------------------------------------------------------------------
FREE = {
    "seed",
    "schedule",
    "dloss",
    "sample_weight",
    "class_weight",
    "stop",
    "prompt",
    "samples",
    "metric",
}
"""Arguments that take values of several kinds: a seed is a number, a generator or None."""


def may_be(value: Any, valid: Any, name: str, target: Target) -> bool:
    """Whether a result is no surprise for a value in place of a valid one: it is of its kind."""
    parameter = target.parameters.get(name)
    if name in FREE or target.name.endswith("RandomScores(x)"):  # which look at its shape alone
        return True
    if value is None:
        optional = parameter is not None and (
            parameter.default is None or "None" in str(parameter.annotation)
        )
        return valid is None or name in ("mask", "kept") or optional
    if isinstance(valid, bool):
        return isinstance(value, bool | np.bool_)
    if isinstance(valid, int):
        return is_real(value) and value == int(value) and (value >= 0 or name == "axis")
    if isinstance(valid, float):
        return is_real(value) and 0.0 <= float(value) < 1e300
    if isinstance(valid, str | Path):
        return isinstance(value, str | Path)
    if isinstance(valid, np.ndarray):
        return isinstance(value, np.ndarray | np.generic) and may_have_dtype(value, valid)
    return valid is None or callable(valid) == callable(value) or isinstance(value, type(valid))


def is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))


def may_have_dtype(value: Any, valid: np.ndarray) -> bool:
    kinds = {"i": "iu", "u": "iu"}.get(valid.dtype.kind, valid.dtype.kind)
    return value.dtype.kind in kinds and (kinds != "f" or value.dtype.itemsize in (4, 8))


def outcome_of(call: WrongCall) -> Outcome:
    """Make a call, and say how it ended."""
    target = call.target
    arguments = call.target.arguments()
    takes = not (call.without or call.extra)
    same = takes_all_as_same(call)
    for name, value in call.replaced:
        valid = arguments[name]
        if value in SAME:
            arguments[name] = SAME[value](valid)
        else:
            arguments[name] = VALUES[value]() if value in VALUES else ARRAYS[value](valid)
            takes = takes and may_be(arguments[name], valid, name, target)
    arguments.pop(call.without, None)
    if call.extra:
        arguments[call.extra] = 1
    expected = None
    if same:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):  # no file is in the way then
            expected = flat(target.run())
    try:
        with warnings.catch_warnings(), time_limit(LONGEST):
            warnings.simplefilter("error")
            # Of matplotlib before 3.10.7, beside a newer pyparsing, when it first draws.
            warnings.filterwarnings("ignore", ".*deprecated - use", module="matplotlib")
            result = target.call(arguments)
    except TooLong:
        return Outcome("hang", f"after {LONGEST:g} s")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        words = f"{type(error).__name__}: {error}"
        kind = "words" if is_deliberate(error) else "raw"
        if same and kind == "words":
            return Outcome("silent", f"it was refused, and is the valid value: {words}")
        return Outcome(kind, words)
    if not takes:
        return Outcome("silent", f"it returned {short(result)}")
    if expected is not None and not all_close(flat(result), expected):
        return Outcome("silent", f"another result than for the valid value: {short(result)}")
    return Outcome("right", short(result))


def takes_all_as_same(call: WrongCall) -> bool:
    """Whether only the writing of values was changed, so that the result must be the same."""
    changed = call.without or call.extra
    return not changed and all(value in SAME for _, value in call.replaced)


class TooLong(BaseException):
    """Not an Exception, so that nothing catches it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong after some seconds, where the system has such an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def is_deliberate(error: BaseException) -> bool:
    """Whether npformer raised an error on purpose, in words of its own."""
    words = str(error)
    if isinstance(error, TypeError) and OF_PYTHON.search(words):
        return True
    if not isinstance(error, ON_PURPOSE) or isinstance(error, Warning) or RAW.search(words):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    if not last.filename.startswith(PACKAGE) or not line.startswith("raise"):
        return False
    cause = error.__cause__
    if cause is not None and str(cause) in words and not is_deliberate(cause):
        return len(words) - len(str(cause)) > 40  # words of its own around those of another
    return len(words) > 20


# Results ------------------------------------------------------------------------------------------
def flat(result: Any) -> list[np.ndarray]:
    """Return the numbers in a result, one array after another."""
    if isinstance(result, np.ndarray | np.generic | int | float) and not isinstance(result, str):
        return [np.asarray(result)]
    if isinstance(result, Layer):
        return [parameter.value for parameter in result.named_parameters().values()]
    if isinstance(result, Mapping):
        return [x for value in result.values() for x in flat(value)]
    if isinstance(result, list | tuple):
        return [x for value in result for x in flat(value)]
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        named = {f.name: getattr(result, f.name, None) for f in dataclasses.fields(result)}
        return [x for name, value in named.items() if name != "seconds" for x in flat(value)]
    return []


def all_close(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return len(ours) == len(theirs) and all(
        a.shape == b.shape
        and (a.dtype == b.dtype or {a.dtype.kind, b.dtype.kind} <= {"i", "u"})
        and (a.dtype.kind not in "fc" or np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True))
        and (a.dtype.kind in "fc" or np.array_equal(a, b))
        for a, b in zip(ours, theirs, strict=True)
    )


def short(result: Any) -> str:
    try:
        words = " ".join(repr(result).split())
    except Exception as error:
        words = f"a {type(result).__name__} whose repr raises {error!r}"
    return words if len(words) <= 80 else f"{words[:77]}..."


# Counts -------------------------------------------------------------------------------------------
def run(calls: list[WrongCall]) -> list[tuple[WrongCall, Outcome]]:
    """Make calls in a folder of their own, because some of them write files."""
    outcomes = []
    for call in calls:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            outcomes.append((call, outcome_of(call)))
    return outcomes


def wrong_calls(n: int, seed: int = 0) -> dict[str, int | float]:
    """Make `n` wrong calls, and count how they ended."""
    began = time.perf_counter()
    counts = Counter(outcome.kind for _, outcome in run(draw_calls(n, seed)))
    return {
        "calls": n,
        "right": counts["right"],
        "words": counts["words"],
        "raw": counts["raw"],
        "silent": counts["silent"],
        "hang": counts["hang"],
        "seconds": time.perf_counter() - began,
    }
