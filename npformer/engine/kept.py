"""What the engine keeps beside a model while it lives: its twins, a look at it, and memory.

It goes with the model: whatever in a model leads back to it, the two are let go together.
"""

from __future__ import annotations

from typing import Any

from npformer.core import KEPT, Layer


class Kept:
    """What is kept of one model.

    Attributes
    ----------
    twins : dict
        Its twins: by backend, and whether x is data.
    tree : Tree or None
        The last look at it.
    workspaces : list
        Memory that no call uses at the moment, a list for each call that may come at once.
    """

    __slots__ = ("tree", "twins", "workspaces")

    def __init__(self) -> None:
        self.twins: dict[tuple[str, bool], Any] = {}
        self.tree: Any = None
        self.workspaces: list[Any] = []

    def release(self) -> None:
        """Let go of all that holds layers, for some may have been taken out of the model."""
        self.tree = None
        twins, self.twins = self.twins, {}  # in one step: other threads may be looking
        for _, twin in list(twins.values()):
            twin._twins.release()


def kept_of(model: Layer) -> Kept:
    """Return what is kept of a model: nothing yet, at first.

    Parameters
    ----------
    model : Layer
        A twin keeps things of its own beside what it is made of.
    """
    try:
        found = KEPT.__get__(model)
    except AttributeError:
        found = None
    if type(found) is Kept:
        return found
    if found is not None:  # the twins of a tree, beside one of them
        return found.kept.setdefault(id(model), Kept())  # type: ignore[no-any-return]
    new = Kept()
    KEPT.__set__(model, new)
    return new
