"""What others keep with an object while it lives, out of sight of its attributes, copies and files.

It is stored on the object, so both are freed together, even if each refers to the other: a weak
dictionary would hold such an object for ever.
"""

from typing import Any


class Attachable:
    """An object that something may be kept with."""

    __slots__ = ("_attachment",)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        if not isinstance(state, tuple):
            return state
        attributes, slots = state
        slots.pop("_attachment", None)
        return (attributes, slots) if slots else attributes


ATTACHMENT: Any = vars(Attachable)["_attachment"]
"""The slot, which bypasses any ``__getattr__`` or ``__setattr__`` of a subclass."""


def attachment(holder: Attachable) -> Any:
    """Return what is kept with an object; None if nothing is."""
    try:
        return ATTACHMENT.__get__(holder)
    except AttributeError:
        return None
