"""Recorder: makes the layers of a tree record what they are called with, and what they return."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

from npformer.core import Array, Gradients, Layer
from npformer.training.inspection.cached_bytes import cached_bytes
from npformer.training.inspection.calls import BackwardCall, Call, shapes

NOTE = "This was in "


class Recorder:
    """Records the calls of all layers of a tree until `stop`.

    Attributes
    ----------
    calls, backward : list
        In the order in which the calls began. Calls of `forward` during a backward pass, which
        compute something again, are not recorded.
    """

    def __init__(self, observed: Layer) -> None:
        self.calls: list[Call] = []
        self.backward: list[BackwardCall] = []
        self._observed = observed
        self._ended: list[tuple[int, Any]] = []  # (place in `calls`, cache)
        self._going_back = 0  # how many backward passes are running, each inside another
        self._names: dict[Layer, list[str]] = {}
        for name, layer in observed.layers():
            self._names.setdefault(layer, []).append(name)
        for layer, names in self._names.items():
            self._observe(layer, names)

    def weigh(self, kept: Any, given: Iterable[Array | None]) -> None:
        """Fill in `bytes_cached`; `kept` is the outermost cache, `given` the caller's arrays."""
        caches = [cache for _, cache in self._ended]
        bytes_of_calls = cached_bytes(caches, kept, given, self._observed)
        for (place, _), n_bytes in zip(self._ended, bytes_of_calls, strict=True):
            self.calls[place] = replace(self.calls[place], bytes_cached=n_bytes)

    def stop(self) -> list[Call]:
        """Stop recording, release the caches, and return the calls."""
        self._ended.clear()
        for layer in self._names:
            del layer.forward, layer.backward
        return self.calls

    def _observe(self, part: Layer, names: list[str]) -> None:
        """Make a layer record its calls. A shared layer has several names, which take turns."""
        forward, backward = part.forward, part.backward
        open_calls: list[tuple[int, Any]] = []  # without a backward pass yet
        turn, answered = 0, 0

        def record_forward(*arguments: Any, **named: Any) -> tuple[Any, Any]:
            nonlocal turn
            if self._going_back:
                return forward(*arguments, **named)
            *inputs, context = *arguments, *named.values()
            x = inputs[0] if len(inputs) == 1 else tuple(inputs)
            place, name = len(self.calls), names[min(turn, len(names) - 1)]
            turn += 1
            self.calls.append(Call(name, part, x, context, None))
            with _note_passes(name, part, "input", x):
                y, cache = forward(*arguments, **named)
            self.calls[place] = Call(name, part, x, context, y)
            self._ended.append((place, cache))
            open_calls.append((place, cache))
            return y, cache

        def record_backward(dy: Any, cache: Any, gradients: Gradients) -> Any:
            nonlocal answered
            # Backward passes come in the reverse order, and each brings the cache of its call.
            matches = [
                i for i, (_, cache_of_call) in enumerate(open_calls) if cache_of_call is cache
            ]
            if open_calls:
                answered, _ = open_calls.pop(matches[-1] if matches else -1)
            call, place = self.calls[answered], len(self.backward)
            begun = BackwardCall(call.name, part, call.context, dy, None)
            self.backward.append(begun)
            self._going_back += 1
            try:
                with _note_passes(call.name, part, "dy", dy):
                    dx = backward(dy, cache, gradients)
            finally:
                self._going_back -= 1
            self.backward[place] = replace(begun, dx=deepcopy(dx))  # whoever gets dx may add to it
            return dx

        part.forward = record_forward  # type: ignore[method-assign]
        part.backward = record_backward  # type: ignore[method-assign]


@contextmanager
def _note_passes(name: str, part: Layer, what: str, value: Any) -> Iterator[None]:
    """Add a note to an error that names the innermost layer it came through."""
    try:
        yield
    except Exception as error:
        if not any(note.startswith(NOTE) for note in getattr(error, "__notes__", ())):
            where = f"{name} ({type(part).__name__})" if name else f"the {type(part).__name__}"
            error.add_note(f"{NOTE}{where}, whose {what} has shape {shapes(value)}")
        raise
