"""dropoutcheck: dropout keeps the mean, and its backward pass uses the mask that was drawn."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.proof.promises.checked_arguments import float_array
from npformer.proof.promises.layer_calls import KEEP_NAMES, RATE_NAMES, LayerCalls, calls_of
from npformer.proof.promises.promise import Promise, PromiseReport
from npformer.proof.promises.setting_names import is_number, plain_name

ENTRIES = 40_000
"""How many entries are drawn at least, to measure the share that is dropped."""

MOST_CALLS = 4_000

RATE = 0.3
"""Of a function or a class that asks for one: not 0.5, where 1 / p is 1 / (1 - p)."""

NEAR_ONE_HALF = 0.05
"""Rates this near to 0.5 are replaced: chance could take 1 / p for 1 / (1 - p)."""

DEVIATIONS = 6.0
"""How many standard deviations a measured share may be away."""


def dropoutcheck(
    target: Any,
    x: np.ndarray | None = None,
    *,
    rate: float | None = None,
    backward: Any = None,
    seed: int = 0,
) -> PromiseReport:
    """Check what dropout promises, of a layer written by anybody.

    Training keeps the mean: what is not dropped is multiplied by 1 / (1 - rate). The backward pass
    uses the mask and the scale of the forward pass. Each call draws another mask. Evaluation is the
    identity; with a training that does not scale, it multiplies by 1 - rate (Srivastava et al.,
    2014).

    Parameters
    ----------
    target : object, class, function or (function, function)
        A layer with ``forward`` and ``backward``, or its class; a function of x, which gets a rate
        and a training flag under their usual names, with its ``name_backward`` in the same module;
        or a pair.
    x : array, optional
        The input; by default, drawn, of shape (8, 6, 16).
    rate : float, optional
        The probability that an entry is dropped. By default, whatever share is dropped is right.
    backward : callable, optional
        The backward function of a function: ``backward(dy, cache)``.
    seed : int
        Seed of x and dy.

    Returns
    -------
    PromiseReport
        A line for each promise.

    Raises
    ------
    PromiseError
        A promise is broken; the message is the report, which says how.
    TypeError
        There is no usual way to call it.

    Examples
    --------
    >>> import npformer as nf
    >>> nf.dropoutcheck(nf.layers.Dropout(0.2), rate=0.2).passed
    True
    """
    checks.whole("seed", seed, at_least=0)
    if rate is not None:
        checks.rate("rate", rate)
    rng = np.random.default_rng(seed)
    if x is None:
        x = rng.normal(size=(8, 6, 16))
    x = float_array("x", x, least_axes=1)
    passed_rate = RATE if rate is None else rate
    make: Any = target
    layer = make(passed_rate) if inspect.isclass(target) else target
    calls = calls_of(layer, backward=backward, rate=passed_rate)
    notes = list(_leave_one_half(calls))
    sample = _Sample(calls, np.where(x == 0.0, 1.0, x))
    promises = list(_promises(calls, sample, rate, rng))
    notes += _notes(calls, sample)
    return PromiseReport("dropoutcheck", calls.title, promises, notes).raise_if_broken()


def _leave_one_half(calls: LayerCalls) -> Iterator[str]:
    """Set a rate of 0.5 to another in the copy of a layer: 1 / p and 1 / (1 - p) must differ."""
    for name, value in list(getattr(calls.layer, "__dict__", {}).items()):
        if plain_name(name) not in RATE_NAMES | KEEP_NAMES or not is_number(value):
            continue
        if abs(value - 0.5) < NEAR_ONE_HALF:
            setattr(calls.layer, name, RATE)
            yield (
                f"{name} was {value:g}, where 1 / p and 1 / (1 - p) are nearly the same; a copy "
                f"was checked with {RATE}"
            )


class _Sample:
    """What dropout does with x in training: the factor of each entry, over many calls."""

    def __init__(self, calls: LayerCalls, x: np.ndarray) -> None:
        n_calls = min(max(2, math.ceil(ENTRIES / x.size)), MOST_CALLS)
        self.x = x
        self.changes_input = _changes_its_input(calls, x)
        self.factors = [_factors(calls, x, training=True) for _ in range(n_calls)]
        factors_of_kept = np.concatenate([factor[factor != 0.0].ravel() for factor in self.factors])
        n = n_calls * x.size
        self.scale = float(np.median(factors_of_kept)) if factors_of_kept.size else 0.0
        self.has_one_scale = bool(np.allclose(factors_of_kept, self.scale, rtol=1e-5))
        self.dropped = 1.0 - factors_of_kept.size / n
        per_call = [float((factor == 0.0).mean()) for factor in self.factors]
        # Entries of a call may share their fate, so calls are counted where they vary more.
        of_entries = math.sqrt(max(self.dropped * (1.0 - self.dropped), 1.0 / n) / n)
        of_calls = float(np.std(per_call)) / math.sqrt(n_calls)
        self.deviation = DEVIATIONS * max(of_entries, of_calls)
        self.differs = any(not np.array_equal(f, self.factors[0]) for f in self.factors[1:])

    def is_share(self, share: float) -> bool:
        """Return whether the share that was dropped may be this one."""
        return abs(self.dropped - share) <= self.deviation

    def is_scale(self, scale_of: Any) -> bool:
        """Return whether the scale is this function of the share, up to chance."""
        low, high = self.dropped - self.deviation, self.dropped + self.deviation
        ends = sorted(scale_of(min(max(p, 1e-9), 1.0 - 1e-9)) for p in (low, high))
        return bool(ends[0] - 1e-9 <= self.scale <= ends[1] + 1e-9)


def _factors(calls: LayerCalls, x: np.ndarray, training: bool) -> np.ndarray:
    """Return by what each entry of x is multiplied."""
    factors: np.ndarray = calls.forward(x.copy(), training=training) / x
    return factors


def _changes_its_input(calls: LayerCalls, x: np.ndarray) -> bool:
    passed = x.copy()
    calls.forward(passed, training=True)
    return not np.array_equal(passed, x)


@dataclass(frozen=True)
class _Evaluation:
    """What evaluation does with x: the factor, if all entries have one, and whether it draws."""

    factor: float | None
    draws: bool


def _promises(
    calls: LayerCalls, sample: _Sample, rate: float | None, rng: np.random.Generator
) -> Iterator[Promise]:
    evaluation = _evaluate(calls, sample.x)
    yield _share_is_dropped(sample, rate)
    if sample.dropped in (0.0, 1.0):
        return
    yield _mean_is_kept(sample, evaluation)
    yield Promise("each call draws another mask", sample.differs, _same_mask(sample))
    yield _backward_uses_the_mask(calls, sample, rng)
    yield _evaluation_changes_nothing(calls, sample, evaluation)
    evidence = "a forward pass changes its input" if sample.changes_input else ""
    yield Promise("x is left as it was", not sample.changes_input, evidence)


def _same_mask(sample: _Sample) -> str:
    return "" if sample.differs else "two calls drop the same entries"


def _share_is_dropped(sample: _Sample, rate: float | None) -> Promise:
    words = "training drops a share of the entries"
    evidence = f"{sample.dropped:.3f} are dropped"
    if sample.dropped in (0.0, 1.0):
        return Promise(words, False, f"{'no' if sample.dropped == 0.0 else 'every'} entry is 0")
    if rate is None:
        return Promise(words, True, evidence)
    if not sample.is_share(rate) and sample.is_share(1.0 - rate):
        evidence += f", not {rate:g}: p is the share that is kept"
    elif not sample.is_share(rate):
        evidence += f", not {rate:g}"
    return Promise(words, sample.is_share(rate), evidence)


def _mean_is_kept(sample: _Sample, evaluation: _Evaluation) -> Promise:
    words = "training keeps the mean"
    if not sample.has_one_scale:
        return Promise(words, False, "entries that are not dropped have several factors")
    if sample.is_scale(lambda p: 1.0 / (1.0 - p)):
        return Promise(words, True, f"what is kept is multiplied by {sample.scale:.4g}")
    is_plain = abs(sample.scale - 1.0) <= 1e-9
    factor = evaluation.factor
    if is_plain and factor is not None and sample.is_share(1.0 - factor):
        return Promise(words, True, f"evaluation multiplies by {factor:.4g} instead")
    return Promise(words, False, _describe_scale(sample))


def _describe_scale(sample: _Sample) -> str:
    """Return in words by what the entries are multiplied that are not dropped."""
    mean = f"the mean of y is {sample.scale * (1.0 - sample.dropped):.3f} times that of x"
    if abs(sample.scale - 1.0) <= 1e-9:
        return f"not scaled; {mean}"
    if sample.is_scale(lambda p: 1.0 / p):
        return f"scaled by 1/p, not 1/(1-p); {mean}"
    if sample.is_scale(lambda p: 1.0 - p):
        return f"multiplied by 1-p, not divided; {mean}"
    if sample.is_scale(lambda p: p):
        return f"multiplied by p, not by 1/(1-p); {mean}"
    if sample.is_scale(lambda p: 1.0 / (1.0 - p) ** 2):
        return f"scaled by 1/(1-p) twice; {mean}"
    return f"scaled by {sample.scale:.4g}; {mean}"


def _backward_uses_the_mask(
    calls: LayerCalls, sample: _Sample, rng: np.random.Generator
) -> Promise:
    words = "backward uses the mask and the scale of forward"
    if calls.run_backward is None:
        return Promise(words, None, "no backward pass was found")
    forward = _factors(calls, sample.x, training=True)
    dy = rng.normal(size=sample.x.shape)
    dx = calls.backward(dy.copy())
    dx = dx[0] if isinstance(dx, tuple | list) else dx
    if not isinstance(dx, np.ndarray) or dx.shape != dy.shape:
        return Promise(words, False, f"it returned {type(dx).__name__}, not an array of x's shape")
    factor = dx / dy
    if np.allclose(factor, forward, rtol=1e-5, atol=1e-8):
        return Promise(words, True)
    return Promise(words, False, _describe_backward(factor, forward, sample.scale))


def _describe_backward(factor: np.ndarray, forward: np.ndarray, scale: float) -> str:
    """Return in words what a backward pass does in place of multiplying by the mask."""
    if np.allclose(factor, 1.0):
        return "it returns dy: the mask is left out"
    if not np.array_equal(factor == 0.0, forward == 0.0):
        if np.array_equal(factor == 0.0, forward != 0.0):
            return "it passes what forward dropped, and drops the rest"
        return "it has another mask than forward"
    if np.allclose(factor, forward != 0.0):
        return f"it does not scale: forward multiplies by {scale:.4g}"
    if np.allclose(factor, forward**2):
        return "it scales twice"
    factors_of_kept = factor[forward != 0.0]
    backward_scale = float(np.median(factors_of_kept))
    if np.allclose(factors_of_kept, backward_scale):
        return f"it multiplies by {backward_scale:.4g}, and forward by {scale:.4g}"
    return "it has the mask of forward and several scales"


def _evaluate(calls: LayerCalls, x: np.ndarray) -> _Evaluation:
    factors = _factors(calls, x, training=False)
    again = _factors(calls, x, training=False)
    factor = float(factors.flat[0])
    is_one = bool(np.allclose(factors, factor, rtol=1e-6))
    return _Evaluation(factor if is_one else None, not np.array_equal(factors, again))


def _evaluation_changes_nothing(
    calls: LayerCalls, sample: _Sample, evaluation: _Evaluation
) -> Promise:
    words = "evaluation changes nothing"
    if not calls.can_switch:
        return Promise(words, None, "no switch between training and evaluation was found")
    factor = evaluation.factor
    if evaluation.draws:
        return Promise(words, False, "it drops entries at evaluation, too")
    if factor is None:
        return Promise(words, False, "y is not x at evaluation")
    is_scaled_in_training = abs(sample.scale - 1.0) > 1e-9
    if abs(factor - 1.0) <= 1e-6:
        return Promise(words, True)
    if not is_scaled_in_training and sample.is_share(1.0 - factor):
        return Promise("evaluation multiplies by 1 - p, as training does not scale", True)
    evidence = f"y is {factor:.4g} x at evaluation"
    if is_scaled_in_training:
        evidence += ", although training scales, too"
    return Promise(words, False, evidence)


def _notes(calls: LayerCalls, sample: _Sample) -> Iterator[str]:
    """Yield what is worth knowing of the names and of the mask."""
    for name, value in getattr(calls.layer, "__dict__", {}).items():
        is_rate = plain_name(name) in RATE_NAMES and is_number(value) and value != 0.5
        if is_rate and not sample.is_share(value) and sample.is_share(1.0 - value):
            yield f"{name} is the share that is kept, not the share that is dropped"
    is_dropped = sample.factors[0] == 0.0
    has_dropped_some = sample.dropped not in (0.0, 1.0)
    if len(is_dropped) > 1 and has_dropped_some and (is_dropped == is_dropped[:1]).all():
        yield "all samples of the batch have the same mask"
