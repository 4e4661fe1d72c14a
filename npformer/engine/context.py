"""The engine's own kind of `Context`: memory to write into, and threads to share a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from npformer.core import Array, Context, array_module
from npformer.engine.threads import side_by_side, slices
from npformer.engine.workspace import Workspace

Result = TypeVar("Result")


@dataclass(frozen=True, init=False)
class EngineContext(Context):
    """A `Context` that lends memory and threads.

    Parameters
    ----------
    *arguments, **options
        As `Context` takes them.
    workspace : Workspace, optional
        Lends the memory that results are written into; None allocates new arrays.
    threads : int
        How many threads a kernel on the CPU may share its work out to: see `in_parts`.
    """

    workspace: Workspace | None
    threads: int

    def __init__(
        self,
        *arguments: Any,
        workspace: Workspace | None = None,
        threads: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.__dict__.update(workspace=workspace, threads=threads)
        if workspace is not None:
            self.__dict__["empty"] = workspace.empty  # asked for at every turn

    def empty(self, shape: tuple[int, ...], near: Array, dtype: Any = None) -> Array:
        """Return an array to write into, not initialised: from the workspace if there is one.

        Parameters
        ----------
        shape : tuple of int
        near : array
            Gives the backend, and the dtype if that is not given.
        dtype : dtype, optional
        """
        if self.workspace is not None:
            return self.workspace.empty(shape, near, dtype)
        return array_module(near).empty(shape, dtype=near.dtype if dtype is None else dtype)

    def in_parts(self, compute: Callable[[slice], Result], n: int) -> list[Result]:
        """Return what ``compute(part)`` returns for slices that are range(n) together, in order.

        Parameters
        ----------
        compute : callable
            Called side by side in threads, a slice in each, if this call has several; else here,
            for all at once. Parts may not depend on each other.
        n : int
            Rows, heads, columns: whatever the work can be parted by.
        """
        if self.threads == 1:
            return [compute(slice(0, n))]
        parts = slices(n, self.threads)
        return [compute(parts[0])] if len(parts) == 1 else side_by_side(compute, parts)


def adopted(context: Context) -> EngineContext:
    """Return a context as the engine's: a plain one gets new memory for each result."""
    if isinstance(context, EngineContext):
        return context
    return EngineContext(
        context.training,
        context.generator,
        types=context.types,
        keep=context.keep,
        padding=context.padding,
    )
