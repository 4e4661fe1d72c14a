"""Every mixer beside its formula, head by head, written in PyTorch: y, dx, all parameters."""

from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer.mixers import (
    MIXERS,
    SCORES,
    Attention,
    AveragingMixer,
    MixerSettings,
    WholeSequenceMixer,
)

from . import formulas
from .helpers import assert_close, leaf, normals, randomise, torch

D, N_HEADS, LENGTH, MAX_LEN = 8, 2, 5, 7
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], dtype=bool)


def by_head(x):
    return x.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)


def projected(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def attention(p, x):
    query, key = (by_head(projected(p, name, x)) for name in ("query", "key"))
    return formulas.attention_scores(query, key)


def scores_of(formula, *names):
    """Return a formula of named parameters: of tokens if it has any, of their number if not."""
    if formula in (formulas.random_scores, formulas.factorized_random_scores):
        return lambda p, x: formula(*(p[name] for name in names), x.shape[1])
    return lambda p, x: formula(x, *(p[name] for name in names), x.shape[1])


def mixture(p, x):
    scores = []
    for i, name in enumerate(SCORES):
        prefix = f"parts.{i}."
        arrays = {key.removeprefix(prefix): v for key, v in p.items() if key.startswith(prefix)}
        scores.append(FORMULAS[name](arrays, x))
    return formulas.mixture_scores(p["logits"], *scores)


DENSE = ("W1", "b1", "W2", "b2")
RANDOM = scores_of(formulas.random_scores, "R")
FORMULAS = {
    "attention": attention,
    "dense_synthesizer": scores_of(formulas.dense_scores, *DENSE),
    "random_synthesizer": RANDOM,
    "fixed_random_synthesizer": RANDOM,
    "factorized_dense_synthesizer": scores_of(
        formulas.factorized_dense_scores, *DENSE, "V1", "c1", "V2", "c2"
    ),
    "factorized_random_synthesizer": scores_of(formulas.factorized_random_scores, "R1", "R2"),
    "mixture": mixture,
}


def averaged(name, p, x, keep):
    value = by_head(projected(p, "value", x))
    y = formulas.average(FORMULAS[name](p, x), value, mask=np.expand_dims(keep, -3))
    return projected(p, "output", y.transpose(1, 2).flatten(-2))


def build(name, **settings):
    chosen = MixerSettings(D, N_HEADS, MAX_LEN, rank=3, mixture=tuple(SCORES), **settings)
    mixer = MIXERS[name].build(chosen, seed=0, dtype="float64")
    randomise(mixer)
    return mixer


def assert_mixer_agrees(mixer, reference, mask):
    x, dy = normals((*MASK.shape, D), (*MASK.shape, D), seed=2)
    gradients = nf.Gradients(mixer)
    y, cache = mixer.forward(x, nf.Context(mask=mask))
    dx = mixer.backward(dy, cache, gradients)
    named = {name: leaf(p.value) for name, p in mixer.named_parameters().items()}
    x_torch = leaf(x)
    y_torch = reference(named, x_torch)
    y_torch.backward(torch.tensor(dy))
    assert_close(y, y_torch)
    assert_close(dx, x_torch.grad, "dx")
    largest = max(float(named[name].grad.abs().max()) for name in gradients) if gradients else 0.0
    for name, gradient in gradients.items():
        theirs = named[name].grad.numpy()
        assert gradient.shape == theirs.shape
        # that of attention's key bias is 0 but for rounding
        assert np.abs(gradient - theirs).max() < 1e-10 * max(np.abs(theirs).max(), 1e-3 * largest)


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("name", FORMULAS)
def test_an_averaging_mixer_agrees_with_its_formula(name, padded, causal):
    keep = np.tri(LENGTH, dtype=bool) if causal else np.ones((LENGTH, LENGTH), dtype=bool)
    if padded:
        keep = keep & MASK[:, None, :]
    ours = build(name, causal=causal)
    mask = MASK if padded else None
    assert_mixer_agrees(ours, lambda p, x: averaged(name, p, x, keep), mask)


def test_attention_in_blocks_agrees_with_its_formula():
    keep = np.tri(LENGTH, dtype=bool) & MASK[:, None, :]
    ours = build("attention", causal=True, memory="blocks")
    assert_mixer_agrees(ours, lambda p, x: averaged("attention", p, x, keep), MASK)


def linear(p, x):
    return formulas.linear_mixing(x, p["W_sequence"], p["W_features"])


WHOLE = {"fourier": lambda p, x: formulas.REFERENCES["fourier_mixing"](x)}
WHOLE["hartley"] = lambda p, x: formulas.hartley_mixing(x)
WHOLE |= {"linear": linear, "random": linear}


def test_every_mixer_that_averages_or_takes_whole_sequences_has_a_formula():
    averaging = Attention | AveragingMixer
    assert set(FORMULAS) == {name for name, kind in MIXERS.items() if issubclass(kind, averaging)}
    assert set(WHOLE) == {n for n, kind in MIXERS.items() if issubclass(kind, WholeSequenceMixer)}


def by_length(name, p, x):
    padded_rows = []
    for sequence, n in zip(x, MASK.sum(axis=1), strict=True):
        mixed = WHOLE[name](p, sequence[None, :n])[0]
        padded_rows.append(torch.nn.functional.pad(mixed, (0, 0, 0, LENGTH - int(n))))
    return torch.stack(padded_rows)


def of_zeros(name, p, x):
    return WHOLE[name](p, torch.where(torch.tensor(MASK[..., None]), x, 0.0))


@pytest.mark.parametrize(
    ("padding", "formula", "mask"),
    [
        ("refuse", lambda name, p, x: WHOLE[name](p, x), None),
        ("per_length", by_length, MASK),
        ("zero", of_zeros, MASK),
    ],
)
@pytest.mark.parametrize("name", WHOLE)
def test_a_mixer_of_whole_sequences_agrees_with_its_formula(name, padding, formula, mask):
    assert_mixer_agrees(build(name, padding=padding), partial(formula, name), mask)
