"""The engine's `Context`, which also has memory to lend and threads to share a kernel's call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from npformer.core import Array, Context, array_module
from npformer.engine.threads import side_by_side, slices
from npformer.engine.workspace import Workspace

Result = TypeVar("Result")

_set_field = object.__setattr__
"""Sets a field of a context, which is frozen for everybody else."""


@dataclass(frozen=True, init=False)
class EngineContext(Context):
    """A `Context` with a workspace and threads; the other arguments are those of `Context`.

    Without a workspace, results are new arrays. `threads` is the number of threads that may share a
    kernel's call on the CPU.
    """

    workspace: Workspace | None = None
    threads: int = 1

    def __init__(
        self, *arguments: Any, workspace: Workspace | None = None, threads: int = 1, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        _set_field(self, "workspace", workspace)
        _set_field(self, "threads", threads)
        if workspace is not None:
            _set_field(self, "empty", workspace.empty)  # saves a call: kernels ask often

    def empty(self, shape: tuple[int, ...], reference: Array, dtype: Any = None) -> Array:
        """Return an uninitialised array, as `Workspace.empty` does, but without a workspace."""
        dtype = reference.dtype if dtype is None else dtype
        return array_module(reference).empty(shape, dtype=dtype)

    def in_parts(self, compute: Callable[[slice], Result], n: int) -> list[Result]:
        """Return ``compute(part)`` for slices that together are range(n), in order.

        Each slice is computed in a separate thread. Slices must not depend on each other.
        """
        if self.threads == 1:
            return [compute(slice(0, n))]
        return side_by_side(compute, slices(n, self.threads))


def as_engine_context(context: Context) -> EngineContext:
    """Return an engine's context as it is; from a plain one, make one without a workspace."""
    if isinstance(context, EngineContext):
        return context
    of_engine = EngineContext()
    generator = context.generator
    for name, value in vars(context).items():
        _set_field(of_engine, name, value)
    _set_field(of_engine, "_given", generator)  # one for both
    return of_engine
