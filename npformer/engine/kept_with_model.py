"""What the engine keeps with a model while the model lives: its twins, a snapshot, and memory."""

from typing import Any

from npformer.core import Layer
from npformer.core.attachment import ATTACHMENT, attachment


class Kept:
    """What is kept with one model."""

    __slots__ = ("snapshot", "twins", "workspaces")

    def __init__(self) -> None:
        self.twins: dict[tuple[str, bool], Any] = {}  # by backend, and by `of_data` of `fast`
        self.snapshot: Any = None  # see `snapshot_of`
        self.workspaces: list[Any] = []  # a list of them for each call that runs at the same time

    def release(self) -> None:
        """Drop everything that refers to layers, which may no longer be in the model."""
        self.snapshot = None
        twins, self.twins = self.twins, {}  # in one step, because other threads may read it
        for _, twin in list(twins.values()):
            twin._twins.release()


def kept_of(model: Layer) -> Kept:
    """Return what is kept with a model; a twin's is in the `Twins` that it belongs to."""
    found = attachment(model)
    if type(found) is Kept:
        return found
    if found is not None:
        return found.kept.setdefault(id(model), Kept())  # type: ignore[no-any-return]
    new = Kept()
    ATTACHMENT.__set__(model, new)
    return new
