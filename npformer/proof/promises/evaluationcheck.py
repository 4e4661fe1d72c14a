"""evaluationcheck: at evaluation a sample's output depends on that sample alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.core import checks, describe
from npformer.proof.promises.checked_arguments import mask_array
from npformer.proof.promises.layer_calls import LayerCalls, calls_of
from npformer.proof.promises.positions import relative_change
from npformer.proof.promises.promise import Promise, PromiseReport

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
"""The largest difference that passes, relative to the largest output; sums may be ordered anew."""


def evaluationcheck(
    target: Any, *inputs: np.ndarray, mask: Any = None, seed: int = 0
) -> PromiseReport:
    """Check what an evaluation promises, of a layer or a model written by anybody.

    The same output twice, also after other samples; and for each sample the output that it has when
    it is alone.

    Parameters
    ----------
    target : object or function
        A layer or model with ``forward(x)``; it is set to evaluation by its training flag, an
        argument or an attribute, if it has one.
    *inputs : array
        Inputs of at least two samples, along the first axis.
    mask : array, optional
        A mask that is passed, with the samples along its first axis.
    seed : int
        Seed of the other samples.

    Returns
    -------
    PromiseReport
        A line for each promise.

    Raises
    ------
    PromiseError
        A promise is broken; the message is the report, which says how.
    TypeError, ValueError
        There are fewer than two samples, or no usual way to call it.

    Examples
    --------
    >>> import numpy as np, npformer as nf
    >>> x = np.random.default_rng(0).normal(size=(3, 5, 8))
    >>> nf.evaluationcheck(nf.layers.LayerNorm(8, dtype="float64"), x).passed
    True
    """
    checks.whole("seed", seed, at_least=0)
    if not inputs:
        raise TypeError("got no input; expected x of shape (batch, ...), of two samples or more")
    for x in inputs:
        if type(x) is not np.ndarray or x.dtype.kind not in "biuf":
            raise TypeError(f"got the input {describe(x)}; expected a NumPy array of numbers")
        if x.ndim == 0 or len(x) < 2:
            raise ValueError(
                f"got an input of shape {x.shape}; expected at least two samples, along the first "
                "axis"
            )
    if mask is not None:
        mask = mask_array("mask", mask)
    calls = calls_of(target)
    with np.errstate(all="ignore"):
        promises = list(_promises(calls, list(inputs), mask, np.random.default_rng(seed)))
    notes = [] if calls.can_switch else ["no switch between training and evaluation was found"]
    return PromiseReport("evaluationcheck", calls.title, promises, notes).raise_if_broken()


def _promises(
    calls: LayerCalls, inputs: list[np.ndarray], mask: Any, rng: np.random.Generator
) -> Iterator[Promise]:
    copies = [x.copy() for x in inputs]
    y = calls.forward(*copies, mask=mask)
    tolerance = TOLERANCES.get(str(y.dtype), TOLERANCES["float64"])
    change = relative_change(y, calls.forward(*[x.copy() for x in inputs], mask=mask))
    evidence = "" if change == 0.0 else f"they differ by {change:.1e} of the largest output"
    yield Promise("the same output twice", change == 0.0, evidence)
    if change == 0.0:
        yield _samples_stand_alone(calls, inputs, mask, y, tolerance)
        yield _others_leave_no_trace(calls, inputs, mask, y, rng)
    unchanged = all(np.array_equal(a, b) for a, b in zip(copies, inputs, strict=True))
    evidence = "" if unchanged else "a forward pass changes its input"
    yield Promise("inputs are left as they were", unchanged, evidence)


def _samples_stand_alone(
    calls: LayerCalls, inputs: list[np.ndarray], mask: Any, y: np.ndarray, tolerance: float
) -> Promise:
    words = "a sample's output depends on that sample alone"
    if len(y) != len(inputs[0]):
        return Promise(words, None, f"y has {len(y)} rows for {len(inputs[0])} samples")
    changes = []
    for i in range(len(y)):
        mask_of_sample = None if mask is None else np.asarray(mask)[i : i + 1]
        alone = calls.forward(*[x[i : i + 1].copy() for x in inputs], mask=mask_of_sample)
        if alone.shape != y[i : i + 1].shape:
            return Promise(words, False, f"alone it has shape {alone.shape}, not {y[:1].shape}")
        changes.append(relative_change(y[i : i + 1], alone))
    if max(changes) <= tolerance:
        return Promise(words, True)
    evidence = f"alone, sample {int(np.argmax(changes))} differs by {max(changes):.1e}"
    return Promise(words, False, f"{evidence}; does it use the mean of the batch?")


def _others_leave_no_trace(
    calls: LayerCalls, inputs: list[np.ndarray], mask: Any, y: np.ndarray, rng: np.random.Generator
) -> Promise:
    words = "other samples leave no trace"
    order = rng.permutation(len(inputs[0]))
    other_inputs = [x[order] if x.dtype.kind != "f" else 2.0 * x[order] + 1.0 for x in inputs]
    calls.forward(*other_inputs, mask=mask)
    change = relative_change(y, calls.forward(*[x.copy() for x in inputs], mask=mask))
    if change == 0.0:
        return Promise(words, True)
    return Promise(words, False, f"afterwards the output differs by {change:.1e}: state is kept")
