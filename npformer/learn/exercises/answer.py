"""A reader's file: run in a separate namespace, with every error explained."""

import contextlib
import io
import linecache
import sys
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from npformer.core import a_type

MODULE = "npformer_exercise"  # the name under which a reader's file runs

LONGEST_PRINT = 2000  # characters of what a reader's file prints that are passed on
MOST_LINES = 20  # of them
LONGEST_ERROR = 300  # characters of an error's message that are passed on

OURS = tuple(f"npformer.{floor}." for floor in ("functional", "layers", "mixers", "optim"))
"""Where npformer's own versions of the functions are that readers write."""


class NotBegun(Exception):
    """A blank has not been filled in; the message says where."""


class Stuck(Exception):
    """A reader's file is wrong, or cannot be marked; each argument is a sentence that says why."""


class PrintBuffer(io.StringIO):
    """Keeps the beginning of what is written to it, and counts the rest."""

    written = 0

    def write(self, text: str) -> int:
        """Write, unless there is enough already."""
        self.written += len(text)
        if self.written <= 2 * LONGEST_PRINT:
            super().write(text[:LONGEST_PRINT])
        return len(text)


class Answer:
    """A reader's file.

    Parameters
    ----------
    text : str
        Its source. For a notebook, the code cells one after another.
    path : str
        What it is called in tracebacks.
    places : list of str, optional
        What to call each line: "cell 3, line 2". By default "line 12".
    """

    def __init__(self, text: str, path: str, places: list[str] | None = None) -> None:
        self.text, self.path, self.places = text, path, places
        self.printed = PrintBuffer()
        self.listening = True  # whether to keep what the file prints and calls
        self.patience = 100_000  # events to look at, to count calls
        self.calls: Counter[str] = Counter()  # of the file's functions, and of others by the file
        self.state = "right"  # the verdict, if nothing is wrong
        self.notes: list[str] = []  # what to say beside it, or of a part that is right so far
        self.differences = ""  # a sentence on why it seems to measure slopes
        module = types.ModuleType(MODULE)
        module.__file__ = path
        self.names = vars(module)
        linecache.cache[path] = len(text), None, io.StringIO(text).readlines(), path
        sys.modules[MODULE] = module

    def run(self) -> None:
        """Run the file, so that its functions can be called."""
        try:
            code = compile(self.text, self.path, "exec")
        except SyntaxError as error:
            number = error.lineno or 0
            where = f"{self.where(number)}, `{self.line(number)}`" if number else "the file"
            raise Stuck(f"Python cannot read {where}: {error.msg}") from None
        except ValueError as error:  # a null byte
            raise Stuck(f"Python cannot read the file: {error}") from None
        self.call(exec, code, self.names)

    def function(self, name: str) -> Any:
        """Return a function or class of the file."""
        if name not in self.names:
            raise Stuck(f"{name} is not defined any more; the check looks for this name")
        value = self.names[name]
        if not callable(value):
            raise Stuck(f"{name} is {a_type(value)}; expected a function or a class")
        return value

    def call(self, function: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        """Call the reader's code, and explain what it raises."""
        out = self.printed if self.listening else PrintBuffer()
        profile = sys.getprofile()
        if self.listening and self.patience > 0:
            sys.setprofile(self._count)
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(out),
                warnings.catch_warnings(action="ignore"),
                np.errstate(all="ignore"),
            ):
                return function(*args, **settings)
        except (Stuck, NotBegun, KeyboardInterrupt):
            raise
        except BaseException as error:  # a reader's file may call sys.exit
            raise self.describe(error) from error
        finally:
            sys.setprofile(profile)

    def _count(self, frame: types.FrameType, event: str, _: Any) -> None:
        """Count a call of one of the file's functions, or of another one by the file."""
        self.patience -= 1
        if self.patience <= 0:  # counting takes time
            sys.setprofile(None)
        caller = frame.f_back
        if event != "call" or caller is None:
            return
        if self.path in (frame.f_code.co_filename, caller.f_code.co_filename):
            self.calls[f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"] += 1

    def names_borrowed(self, given: Iterable[Any]) -> list[str]:
        """Return which functions of npformer the file called, except those it was given."""
        allowed = [f"{getattr(f, '__module__', '')}.{getattr(f, '__name__', '')}" for f in given]
        return sorted(name for name in set(self.calls) - set(allowed) if name.startswith(OURS))

    def n_calls(self, function: str) -> int:
        """Return how often a function of the file was called."""
        return self.calls[f"{MODULE}.{function}"]

    def prints(self) -> str:
        """Return what the file printed, cut if it is long."""
        lines = self.printed.getvalue()[:LONGEST_PRINT].rstrip().splitlines()
        long = self.printed.written > LONGEST_PRINT or len(lines) > MOST_LINES
        rest = [f"... and so on, {self.printed.written} characters"] if long else []
        return "\n".join(lines[:MOST_LINES] + rest)

    def describe(self, error: BaseException) -> Exception:
        """Return an error of the reader's code as a sentence."""
        number = self._number(traceback.extract_tb(error.__traceback__))
        if isinstance(error, NotImplementedError) and number is not None:
            return NotBegun(self.where(number))
        says = str(error)
        if len(says) > LONGEST_ERROR:
            says = f"{says[:LONGEST_ERROR]}... and so on, {len(says)} characters"
        what = f"{type(error).__name__}: {says}" if says else type(error).__name__
        if isinstance(error, SystemExit):
            what = "the file exits Python"
        if number is None:
            return Stuck(f"it failed: {what}")
        return Stuck(f"{self.where(number)} failed, `{self.line(number)}`: {what}")

    def _number(self, frames: traceback.StackSummary) -> int | None:
        """Return the line of the file that is run innermost; None if none is."""
        return next((f.lineno for f in reversed(frames) if f.filename == self.path), None)

    def where(self, number: int) -> str:
        """Return what to call a line."""
        if self.places is None or not 1 <= number <= len(self.places):
            return f"line {number}"
        return self.places[number - 1]

    def line(self, number: int) -> str:
        """Return a line without its indent."""
        return linecache.getline(self.path, number).strip()

    def line_now(self, thread: int) -> str:
        """Return a sentence on the line of the file that a thread is at; "" if in none."""
        number = self._number(traceback.extract_stack(sys._current_frames()[thread]))
        return "" if number is None else f"{self.where(number)}, `{self.line(number)}`"
