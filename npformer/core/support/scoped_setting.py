"""A setting with a default for the process, and with other values in ``with`` statements.

A switch that restores what it found restores the wrong value when two threads enter and leave it
in the order A in, B in, A out, B out. Here a ``with`` statement changes only its own context, a
`contextvars.Context`, which the package's own threads share with their caller.
"""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class _Default(NamedTuple, Generic[Value]):
    """A default, and the switch that set it: a weak reference, as it may still be entered."""

    value: Value
    switch: weakref.ref[Switch[Value]]


class ScopedSetting(Generic[Value]):
    """A setting.

    Parameters
    ----------
    name : str
    default : object
        Its value until a `Switch` is made.
    """

    def __init__(self, name: str, default: Value) -> None:
        self.entered: ContextVar[tuple[Switch[Value], ...]] = ContextVar(name, default=())
        self._first_default = default
        self._defaults: list[_Default[Value]] = []  # the last one counts
        self._lock = threading.RLock()

    def value(self) -> Value:
        """Return the value in this context."""
        entered = self.entered.get()
        if entered:
            return entered[-1].value
        defaults = self._defaults
        return defaults[-1].value if defaults else self._first_default

    def set_default(self, switch: Switch[Value]) -> None:
        """Make a switch's value the default, until the switch is entered."""
        with self._lock:
            lasting = [default for default in self._defaults if default.switch() is None]
            replaced = lasting[:-1]  # a later default, which nobody can take back, hides them
            remaining = [default for default in self._defaults if default not in replaced]
            self._defaults = [*remaining, _Default(switch.value, weakref.ref(switch))]

    def take_back_default(self, switch: Switch[Value]) -> None:
        """Forget that a switch has set a default."""
        with self._lock:
            self._defaults = [
                default for default in self._defaults if default.switch() is not switch
            ]


class Switch(Generic[Value]):
    """Sets the default of a setting; in a ``with`` statement, the value in its context instead.

    Notes
    -----
    A context has the switches that were entered, and the last one counts. To leave one removes it
    from any position, because generators may leave theirs in any order.
    """

    def __init__(self, setting: ScopedSetting[Value], value: Value) -> None:
        self.value = value
        self._setting = setting
        setting.set_default(self)

    def __enter__(self) -> None:
        entered = self._setting.entered
        entered.set((*entered.get(), self))
        self._setting.take_back_default(self)

    def __exit__(self, *exception: object) -> None:
        switches = list(self._setting.entered.get())
        for place in reversed(range(len(switches))):
            if switches[place] is self:
                del switches[place]
                break
        self._setting.entered.set(tuple(switches))
