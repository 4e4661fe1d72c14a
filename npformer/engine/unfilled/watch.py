"""Which layer runs, and what its backward pass will read.

The interpreter reports each call and each return. So the passes run as they are written, and what
they keep has the names that it has in their code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, Self

from npformer.core import Layer
from npformer.engine.twin_classes import Saved
from npformer.engine.unfilled.arrays import lease_of
from npformer.engine.unfilled.ledger import Ledger, Use
from npformer.engine.unfilled.workspace import UnfilledWorkspace
from npformer.models.losses import Loss

PASSES = ("forward", "backward")


class Watch:
    """Follows the passes of a model's layers in this thread."""

    def __init__(self, model: Layer) -> None:
        self.names = {id(layer.__dict__): name for name, layer in model.layers()}
        self.model = model
        self.calls: list[tuple[str, str, FrameType]] = []
        self.uses: list[Use] = []
        self._ledger: Ledger | None = None
        self._workspace: UnfilledWorkspace | None = None
        self._is_open = False

    def __enter__(self) -> Self:
        self._previous = sys.getprofile()
        if self._previous is None:  # a profiler would lose what it measures
            sys.setprofile(self._follow)
        return self

    def __exit__(self, *error: object) -> None:
        if self._previous is None:
            sys.setprofile(None)

    def begin(self, ledger: Ledger, workspace: UnfilledWorkspace | None) -> None:
        """Follow the pass of one worker from now on."""
        self._ledger, self._workspace, self._is_open = ledger, workspace, True

    def place(self) -> tuple[str, str]:
        """Return the pass and the layer that run now."""
        return self.calls[-1][:2] if self.calls else ("", "")

    def _follow(self, frame: FrameType, event: str, result: Any) -> None:
        if event == "call":
            self._enter_call(frame)
        elif event == "return":
            if self.calls and type(result) is tuple and len(result) == 2:
                self._name_cache(frame, result[1])
            if self.calls and self.calls[-1][2] is frame:
                self.calls.pop()

    def _enter_call(self, frame: FrameType) -> None:
        function = frame.f_code.co_name
        if function == "linear_cross_entropy":
            self._record_uses()
        if function not in PASSES or "self" not in frame.f_code.co_varnames[:1]:
            return
        owner = frame.f_locals.get("self")
        if isinstance(owner, Loss):
            self._record_uses()
            return
        attributes = getattr(owner, "__dict__", None)
        name = self.names.get(id(attributes))
        if name is not None:
            self.calls.append((function, name, frame))

    def _record_uses(self) -> None:
        """Record what there is between the forward pass of a worker and its backward pass."""
        if not self._is_open or self._ledger is None:
            return
        self._is_open = False
        lent: list[Use] = []
        of_blocks: set[int] = set()
        if self._workspace is not None:
            lent = self._workspace.live_uses()
            of_blocks = set(map(id, self._workspace.all_uses()))
        others = [use for key, use in self._ledger.uses.items() if key not in of_blocks]
        self.uses += [replace(use) for use in (*lent, *others)]

    def _name_cache(self, frame: FrameType, cache: Any) -> None:
        """Give what a cache holds the names that the function has for it."""
        if self.calls[-1][0] != "forward":
            return
        arrays = list(arrays_in(cache))
        if not arrays:
            return
        local_names = {
            id(lease_of(value)): name
            for name, value in frame.f_locals.items()
            if hasattr(value, "__array_interface__")
        }
        for attribute, array in arrays:
            use = use_of_array(array)
            if use is not None and not use.keeper:
                use.keeper = self.calls[-1][1] or "model"
                use.name = local_names.get(id(lease_of(array)), attribute)
                use.function = frame.f_code.co_name


def arrays_in(cache: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays in a cache, each with the name of the attribute that holds it, if any."""
    if hasattr(cache, "__array_interface__"):
        yield name, cache
    elif isinstance(cache, (tuple, list)):
        for item in cache:
            yield from arrays_in(item, name)
    elif type(cache) is Saved:
        yield from arrays_in(cache.cache, name)
    elif type(cache).__module__.startswith("npformer.engine.cpu"):
        for attribute, value in vars(cache).items():
            yield from arrays_in(value, attribute)


def use_of_array(array: Any) -> Use | None:
    """Return the record of an array's memory; None for what is not counted."""
    lease = lease_of(array)
    block = getattr(lease, "_block", None)
    return getattr(lease if block is None else block, "use", None)
