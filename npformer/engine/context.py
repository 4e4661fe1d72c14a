"""The engine's `Context`, with memory to lend and threads that share a kernel's call."""

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
    """A `Context` with a workspace and threads; it takes the arguments of `Context`, too.

    Without a workspace, results are new arrays. `threads` is the number of threads that may share a
    kernel's call on the CPU. With `backward_once`, a backward pass may drop each block's caches as
    soon as it has used them, so that their memory serves the blocks below.
    """

    workspace: Workspace | None = None
    threads: int = 1
    backward_once: bool = False

    def __init__(
        self,
        *arguments: Any,
        workspace: Workspace | None = None,
        threads: int = 1,
        backward_once: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        _set_field(self, "workspace", workspace)
        _set_field(self, "threads", threads)
        _set_field(self, "backward_once", backward_once)
        if workspace is not None:
            _set_field(self, "empty", workspace.empty)  # saves a call: kernels ask often

    def empty(self, shape: tuple[int, ...], reference: Array, dtype: Any = None) -> Array:
        """Return an uninitialised array, as `Workspace.empty` does, but without a workspace."""
        dtype = reference.dtype if dtype is None else dtype
        return array_module(reference).empty(shape, dtype=dtype)

    def map_slices(self, compute: Callable[[slice], Result], n: int) -> list[Result]:
        """Divide range(n) into a slice for each thread, and return ``compute(slice)`` of each.

        The results are in order. The slices must not depend on each other.
        """
        if self.threads == 1:
            return [compute(slice(0, n))]
        return side_by_side(compute, slices(n, self.threads))


def engine_context(context: Context) -> EngineContext:
    """Return the context itself, or an engine's context, without a workspace, for a plain one."""
    if isinstance(context, EngineContext):
        return context
    copy = EngineContext()
    generator = context.generator
    for name, value in vars(context).items():
        _set_field(copy, name, value)
    _set_field(copy, "_given", generator)  # both contexts draw from the same generator
    return copy
