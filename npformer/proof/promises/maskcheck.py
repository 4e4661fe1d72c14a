"""maskcheck: what a mask hides changes no other position and gets no gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.core import checks, describe
from npformer.proof.promises.checked_arguments import float_array, mask_array
from npformer.proof.promises.layer_calls import LayerCalls, calls_of
from npformer.proof.promises.positions import (
    LEAKS,
    outputs_at,
    positions_hidden_by,
    relative_change,
    replace_positions,
    usual_masks,
    view_by_position,
)
from npformer.proof.promises.promise import Promise, PromiseReport, shorten

SMALL_LEAK = 1e-2
"""A leak below this is what a mask leaves whose numbers are not negative enough."""


def maskcheck(
    target: Any,
    *inputs: np.ndarray,
    mask: Any = None,
    hidden: Any = None,
    causal: bool = False,
    backward: Any = None,
    seed: int = 0,
) -> PromiseReport:
    """Check what a padding mask or a causal mask promises, of a layer written by anybody.

    What stands at hidden positions changes no output of another position, gets a gradient of 0,
    and a sequence without any position gives no NaN. A causal layer's outputs depend on no later
    position.

    Parameters
    ----------
    target : object, function or (function, function)
        A layer with ``forward(x, mask)`` and ``backward(dy)``, an attention function such as
        ``attention(q, k, v, mask)``, or a pair. It is run at evaluation.
    *inputs : array
        x of shape (batch, length, features); or queries, keys and values, whose length is the last
        axis but one.
    mask : array, optional
        The padding mask that is passed, in the layer's own convention. By default, one with a gap
        in it, in each usual convention in turn: of booleans or added to scores, of shape
        (batch, length) or with axes for heads and queries. True may then show or hide.
    hidden : bool array, shape (batch, length), optional
        The positions that `mask` hides. By default, those where it is 0 or False, or, for a mask
        that is added to scores, far below 0; where the argument is called key_padding_mask, True.
    causal : bool
        Whether to check that no position sees later ones. Without `mask`, padding is not checked.
    backward : callable, optional
        The backward function of a function: ``backward(dy, cache)``.
    seed : int
        Seed of the values that are put at hidden positions.

    Returns
    -------
    PromiseReport
        A line for each promise.

    Raises
    ------
    PromiseError
        A promise is broken; the message is the report, which says how.
    TypeError
        It takes no mask, or cannot be called in a usual way.
    ValueError
        The mask's shape does not say which positions it hides.

    Examples
    --------
    >>> import numpy as np, npformer as nf
    >>> x = np.random.default_rng(0).normal(size=(2, 5, 8))
    >>> layer = nf.mixers.Attention(8, n_heads=2, dtype="float64")
    >>> nf.maskcheck(layer, x).passed
    True
    """
    checks.flag("causal", causal)
    checks.whole("seed", seed, at_least=0)
    arrays = _check_inputs(inputs)
    if mask is not None:
        mask = mask_array("mask", mask)
    if hidden is not None:
        hidden = mask_array("hidden", hidden)
        if mask is None or hidden.dtype != bool:
            raise TypeError(
                f"got hidden of dtype {hidden.dtype} and mask {describe(mask)}; expected both, and "
                "hidden boolean, True for each position that the mask hides"
            )
    calls = calls_of(target, backward=backward)
    check = _MaskCheck(calls, arrays, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        promises = list(check.causal_promises(mask)) if causal else []
        if (mask is not None and not causal) or hidden is not None:
            promises += check.padding_promises(mask, hidden)
        elif not causal:
            promises += check.default_promises()
    return PromiseReport("maskcheck", calls.title, promises, check.notes).raise_if_broken()


def _check_inputs(inputs: tuple[Any, ...]) -> list[np.ndarray]:
    """Return the inputs after checking that there is one and that all have positions."""
    if not inputs:
        raise TypeError("got no input; expected x of shape (batch, length, features)")
    names = ["x"] if len(inputs) == 1 else [f"input {i}" for i in range(len(inputs))]
    return [float_array(name, x, least_axes=2) for name, x in zip(names, inputs, strict=True)]


class _MaskCheck:
    """The check of one layer with some inputs."""

    def __init__(
        self, calls: LayerCalls, inputs: list[np.ndarray], rng: np.random.Generator
    ) -> None:
        self.calls = calls
        self.inputs = inputs
        self.rng = rng
        self.notes: list[str] = []
        self.rounding = LEAKS.get(str(inputs[0].dtype), LEAKS["float64"])
        keys = inputs[0] if len(inputs) == 1 else inputs[1]
        batch = (keys.shape[0],) if keys.ndim > 2 else ()
        self.shape = (*batch, keys.shape[-2])

    def forward(self, inputs: list[np.ndarray], mask: Any) -> np.ndarray:
        """Return y at evaluation."""
        return self.calls.forward(*[x.copy() for x in inputs], mask=mask)

    def default_promises(self) -> list[Promise]:
        """Check the masks of all usual conventions, until one hides what it should hide."""
        shown = np.ones(self.shape, dtype=bool)
        shown[..., -1] = False
        shown.reshape(-1, self.shape[-1])[0, 1] = False
        promises_of_first: list[Promise] = []
        errors: list[str] = []
        for words, mask in usual_masks(shown):
            try:
                promises = list(self.padding_promises(mask, ~shown))
            except (TypeError, ValueError, IndexError) as error:  # of a user's code
                errors.append(f"{words}: {shorten(error)}")
                continue
            promises_of_first = promises_of_first or promises
            if promises[0].is_kept:
                self.notes += [words] if words else []
                return promises
            if "not negative enough" in promises[0].evidence:
                return promises
        if not promises_of_first:
            raise TypeError(
                f"{self.calls.title} took no mask of a usual kind ({'; '.join(errors[:3])}); pass "
                "its own: maskcheck(layer, x, mask=..., hidden=...)"
            )
        return promises_of_first

    def padding_promises(self, mask: np.ndarray, hidden: Any) -> Iterator[Promise]:
        """Yield what a padding mask promises."""
        if hidden is None:
            hidden = positions_hidden_by(mask, self.calls.mask_name, self.shape)
        if hidden is None or hidden.shape != self.shape:
            raise ValueError(
                f"the mask has shape {mask.shape}, which does not say which of the positions "
                f"{self.shape} it hides; pass hidden=..., True for each hidden position"
            )
        if not hidden.any() or hidden.all():
            raise ValueError(
                "the mask hides no position or every one; expected one that hides some"
            )
        yield self._check_hidden_values(mask, hidden)
        yield self._check_shown_values(mask, hidden)
        yield self._check_hidden_gradients(mask, hidden)
        yield self._check_empty_sequence(mask, hidden)

    def _leak(self, mask: Any, moved: np.ndarray, compared: np.ndarray) -> float:
        """Return how much outputs change if the values at some positions are replaced."""
        y = self.forward(self.inputs, mask)
        y_after = self.forward(replace_positions(self.inputs, moved, self.rng), mask)
        if len(self.inputs) > 1:
            return relative_change(y, y_after)
        return relative_change(outputs_at(y, compared), outputs_at(y_after, compared))

    def _check_hidden_values(self, mask: np.ndarray, hidden: np.ndarray) -> Promise:
        words = "hidden positions change no other output"
        leak = self._leak(mask, moved=hidden, compared=~hidden)
        if leak <= self.rounding:
            return Promise(words, True)
        evidence = f"outputs change by {leak:.1e} of the largest"
        if self._leak(mask, moved=~hidden, compared=hidden) <= self.rounding:
            evidence += "; the mask is inverted: it hides what it should show"
        elif leak < SMALL_LEAK:
            evidence += "; the number that is added to hidden scores is not negative enough"
        return Promise(words, False, evidence)

    def _check_shown_values(self, mask: np.ndarray, hidden: np.ndarray) -> Promise:
        """Move one shown position of each sequence, and compare the others."""
        words = "shown positions reach others"
        first = np.argmin(hidden, axis=-1)
        moved = np.zeros_like(hidden)
        np.put_along_axis(moved, np.expand_dims(first, -1), True, axis=-1)
        change = self._leak(mask, moved=moved & ~hidden, compared=~hidden & ~moved)
        if change > self.rounding:
            return Promise(words, True)
        return Promise(words, None, "no position changes the output of another")

    def _gradients(self, dy: np.ndarray, mask: Any) -> list[np.ndarray] | None:
        """Return the gradients of the inputs that hidden positions belong to; None if unknown."""
        if self.calls.run_backward is None:
            return None
        self.forward(self.inputs, mask)
        returned = self.calls.backward(dy)
        if isinstance(returned, np.ndarray):
            returned = (returned,)
        if isinstance(returned, dict):
            returned = tuple(returned.values())
        gradients = list(returned)[: len(self.inputs)]
        shapes = [np.shape(gradient) for gradient in gradients]
        if shapes != [x.shape for x in self.inputs]:
            return None
        return gradients if len(gradients) == 1 else gradients[1:]

    def _check_hidden_gradients(self, mask: np.ndarray, hidden: np.ndarray) -> Promise:
        words = "hidden positions get a gradient of 0"
        y = self.forward(self.inputs, mask)
        dy = self.rng.normal(size=y.shape)
        if len(self.inputs) == 1 and y.ndim == self.inputs[0].ndim:
            view_by_position(dy, batched=hidden.ndim == 2)[hidden] = 0.0
        gradients = self._gradients(dy, mask)
        if gradients is None:
            return Promise(words, None, "no backward pass that returns gradients of the inputs")
        largest = max(float(np.abs(g).max(initial=0.0)) for g in gradients)
        of_hidden = max(
            float(np.abs(view_by_position(g, batched=hidden.ndim == 2)[hidden]).max(initial=0.0))
            for g in gradients
        )
        if of_hidden <= self.rounding * max(largest, 1e-300):
            return Promise(words, True)
        return Promise(words, False, f"the largest is {of_hidden:.1e}, of all {largest:.1e}")

    def _check_empty_sequence(self, mask: np.ndarray, hidden: np.ndarray) -> Promise:
        """Hide a whole sequence."""
        words = "a sequence without a position gives no NaN"
        if hidden.ndim == 1 or mask.shape[0] != hidden.shape[0]:
            return Promise(words, None, "the mask has no axis of sequences")
        flat = mask.reshape(mask.shape[0], -1)
        values = flat[:, : hidden.shape[-1]][hidden]
        empty = mask.copy()
        empty[0] = values.flat[0]
        y = self.forward(self.inputs, empty)
        if not np.isfinite(y).all():
            return Promise(words, False, "y has NaN or infinity: softmax of nothing")
        gradients = self._gradients(np.ones_like(y), empty)
        if gradients is not None and not all(np.isfinite(g).all() for g in gradients):
            return Promise(words, False, "a gradient has NaN or infinity")
        return Promise(words, True)

    def causal_promises(self, mask: Any) -> Iterator[Promise]:
        """Yield what a causal layer promises."""
        words = "no position sees later ones"
        y = self.forward(self.inputs, mask)
        if not np.isfinite(y).all():
            yield Promise("outputs are finite", False, "y has NaN: does position 0 see itself?")
            return
        leaks = {j: self._leak_into_earlier(j, mask) for j in range(1, self.shape[-1])}
        leak = max(leaks.values())
        if leak <= self.rounding:
            yield Promise(words, True)
        else:
            position = next(j for j, size in leaks.items() if size > self.rounding)
            evidence = f"position {position} changes earlier outputs by {leak:.1e} of the largest"
            yield Promise(words, False, f"{evidence}{self._describe_causal_leak(mask)}")
        yield self._check_later_gradients(mask)

    def _positions_from(self, j: int) -> np.ndarray:
        """Return which positions are j or later."""
        return np.broadcast_to(np.arange(self.shape[-1]) >= j, self.shape)

    def _leak_into_earlier(self, j: int, mask: Any, distance: int = 0) -> float:
        """Return how much positions before j change with those from j + distance on."""
        return self._change(
            mask, moved=self._positions_from(j + distance), compared=~self._positions_from(j)
        )

    def _change(self, mask: Any, moved: np.ndarray, compared: np.ndarray) -> float:
        y = self.forward(self.inputs, mask)
        y_after = self.forward(replace_positions(self.inputs, moved, self.rng), mask)
        return relative_change(outputs_at(y, compared), outputs_at(y_after, compared))

    def _describe_causal_leak(self, mask: Any) -> str:
        """Return in words how a causal mask is wrong; "" if in no known way."""
        length = self.shape[-1]
        if all(
            self._leak_into_earlier(j, mask, distance=1) <= self.rounding
            for j in range(1, length - 1)
        ):
            return "; each position sees the next one: the mask is off by one"
        reversed_leaks = (
            self._change(mask, moved=~self._positions_from(j), compared=self._positions_from(j))
            for j in range(1, length)
        )
        if all(leak <= self.rounding for leak in reversed_leaks):
            return "; the mask is transposed: each position sees only later ones"
        return ""

    def _check_later_gradients(self, mask: Any) -> Promise:
        words = "later positions get a gradient of 0"
        j = self.shape[-1] // 2
        later = self._positions_from(j)
        y = self.forward(self.inputs, mask)
        dy = self.rng.normal(size=y.shape)
        view_by_position(dy, batched=later.ndim == 2)[later] = 0.0
        gradients = self._gradients(dy, mask)
        if gradients is None:
            return Promise(words, None, "no backward pass that returns gradients of the inputs")
        largest = max(float(np.abs(g).max(initial=0.0)) for g in gradients)
        of_later = max(
            float(np.abs(view_by_position(g, batched=later.ndim == 2)[later]).max(initial=0.0))
            for g in gradients
        )
        evidence = (
            ""
            if of_later <= self.rounding * largest
            else f"of position {j} or later: {of_later:.1e}"
        )
        return Promise(words, not evidence, evidence)
