"""Teams whose memory stays with the model, for the next call to use again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from npformer.core import Layer
from npformer.engine.kept import kept_of
from npformer.engine.workers import Team
from npformer.losses import Loss


@contextmanager
def team_of(
    model: Layer,
    workers: int | str,
    micro_batch: int | None = None,
    loss: Loss | None = None,
) -> Iterator[Team]:
    """Lend a team whose memory stays with the model.

    Parameters
    ----------
    model : Layer
    workers, micro_batch, loss
        As in `Team`.
    """
    shelf = kept_of(model).workspaces
    try:
        workspaces = shelf.pop()
    except IndexError:  # the first call, or another thread is in one
        workspaces = []
    with Team(model, workers, micro_batch, workspaces, loss=loss) as team:
        yield team
    shelf.append(workspaces)
