"""Every mixer beside its formula, head by head, written in PyTorch: y, dx, all parameters."""

import math

import numpy as np
import pytest

import npformer as nf
from npformer.mixers import MIXERS, SCORES, AveragingMixer, MixerSettings, WholeSequenceMixer

from .helpers import assert_close, leaf, normals, randomise

torch = pytest.importorskip(
    "torch", reason="parity tests compare with PyTorch: python -m pip install '.[parity]'"
)

D, N_HEADS, LENGTH, MAX_LEN = 8, 2, 5, 7
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], dtype=bool)

# Scores of one head: named parameters of a mixer, the tokens, which head --------------------------


def columns(head):
    return slice(head * D // N_HEADS, (head + 1) * D // N_HEADS)


def attention(p, x, h):
    query = (x @ p["query.weight"] + p["query.bias"])[..., columns(h)]
    key = (x @ p["key.weight"] + p["key.bias"])[..., columns(h)]
    return query @ key.mT / math.sqrt(D // N_HEADS)


def row(p, x, h, W1="W1", b1="b1", W2="W2", b2="b2"):
    hidden = torch.relu(x @ p[W1][:, columns(h)] + p[b1][columns(h)])
    return hidden @ p[W2][h] + p[b2][h]


def dense_synthesizer(p, x, h):
    return row(p, x, h)[..., : x.shape[1]]


def factorized_dense_synthesizer(p, x, h):
    short, long = row(p, x, h), row(p, x, h, "V1", "c1", "V2", "c2")
    tiled = torch.tile(short, (1, 1, long.shape[-1]))
    return (tiled * torch.repeat_interleave(long, short.shape[-1], dim=-1))[..., : x.shape[1]]


def random_synthesizer(p, x, h):
    return p["R"][h, : x.shape[1], : x.shape[1]].expand(len(x), -1, -1)


def factorized_random_synthesizer(p, x, h):
    return (p["R1"][h] @ p["R2"][h].T)[: x.shape[1], : x.shape[1]].expand(len(x), -1, -1)


def mixture(p, x, h):
    alpha, total = torch.softmax(p["logits"], dim=0), 0.0
    for i, name in enumerate(SCORES):
        prefix = f"parts.{i}."
        own = {key.removeprefix(prefix): v for key, v in p.items() if key.startswith(prefix)}
        total = total + alpha[i] * FORMULAS[name](own, x, h)
    return total


FORMULAS = {
    "attention": attention,
    "dense_synthesizer": dense_synthesizer,
    "random_synthesizer": random_synthesizer,
    "fixed_random_synthesizer": random_synthesizer,
    "factorized_dense_synthesizer": factorized_dense_synthesizer,
    "factorized_random_synthesizer": factorized_random_synthesizer,
    "mixture": mixture,
}


def averaged(name, p, x, keep):
    value = x @ p["value.weight"] + p["value.bias"]
    heads = []
    for h in range(N_HEADS):
        scores = FORMULAS[name](p, x, h).masked_fill(~torch.tensor(keep), -math.inf)
        heads.append(torch.softmax(scores, dim=-1) @ value[..., columns(h)])
    return torch.cat(heads, dim=-1) @ p["output.weight"] + p["output.bias"]


# Beside ours --------------------------------------------------------------------------------------


def build(name, **settings):
    chosen = MixerSettings(D, N_HEADS, MAX_LEN, rank=3, mixture=tuple(SCORES), **settings)
    mixer = MIXERS[name].build(chosen, seed=0, dtype="float64")
    randomise(mixer)
    return mixer


def assert_mixer_agrees(mixer, reference, mask):
    """Assert that y, dx and the gradients of trained parameters are those of `reference`."""
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


def test_every_averaging_mixer_has_a_formula():
    assert set(FORMULAS) == {n for n, kind in MIXERS.items() if issubclass(kind, AveragingMixer)}


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("name", FORMULAS)
def test_an_averaging_mixer_agrees_with_its_formula(name, padded, causal):
    keep = np.tri(LENGTH, dtype=bool) if causal else np.ones((LENGTH, LENGTH), dtype=bool)
    if padded:
        keep = keep & MASK[:, None, :]
    assert_mixer_agrees(
        build(name, causal=causal),
        lambda p, x: averaged(name, p, x, keep),
        MASK if padded else None,
    )


def test_attention_in_blocks_agrees_with_its_formula():
    keep = np.tri(LENGTH, dtype=bool) & MASK[:, None, :]
    assert_mixer_agrees(
        build("attention", causal=True, memory="blocks"),
        lambda p, x: averaged("attention", p, x, keep),
        MASK,
    )


def fourier(p, x):
    return torch.fft.fft2(x).real


def hartley(p, x):
    return torch.fft.fft2(x).real - torch.fft.fft2(x).imag


def linear(p, x):
    length = x.shape[1]
    return p["W_sequence"][:length, :length] @ x @ p["W_features"]


WHOLE = {"fourier": fourier, "hartley": hartley, "linear": linear, "random": linear}


def test_every_mixer_of_whole_sequences_has_a_formula():
    assert set(WHOLE) == {n for n, kind in MIXERS.items() if issubclass(kind, WholeSequenceMixer)}


@pytest.mark.parametrize("name", WHOLE)
def test_a_mixer_of_whole_sequences_agrees_with_its_formula(name):
    assert_mixer_agrees(build(name), WHOLE[name], None)


@pytest.mark.parametrize("name", WHOLE)
def test_a_mixer_of_whole_sequences_agrees_length_by_length(name):
    def by_length(p, x):
        parts = []
        for sequence, n in zip(x, MASK.sum(axis=1), strict=True):
            mixed = WHOLE[name](p, sequence[None, :n])[0]
            parts.append(torch.nn.functional.pad(mixed, (0, 0, 0, LENGTH - int(n))))
        return torch.stack(parts)

    assert_mixer_agrees(build(name, padding="per_length"), by_length, MASK)


@pytest.mark.parametrize("name", WHOLE)
def test_a_mixer_of_whole_sequences_agrees_on_padding_as_zeros(name):
    kept = torch.tensor(MASK[..., None])
    assert_mixer_agrees(
        build(name, padding="zero"), lambda p, x: WHOLE[name](p, torch.where(kept, x, 0.0)), MASK
    )
