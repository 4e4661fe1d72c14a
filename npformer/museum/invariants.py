"""Invariants: each is given one thing, returns if it is sound, and raises AssertionError if not.

What a thing is, the invariant says: a layer, or any model with such layers in it; a pair (forward,
backward); a class; or source text (`npformer.museum.rules`). Layers are in float64, and tokens have
`WIDTH` features. The first line of each docstring is what it holds to be true.
"""

# mypy: disable-error-code="type-abstract"

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from npformer import functional as F
from npformer.core import Context, Layer
from npformer.layers import GELU, Dropout, LayerNorm
from npformer.mixers import Attention, AveragingMixer, Fourier, Mixer, WholeSequenceMixer
from npformer.models import Encoder, EncoderBlock
from npformer.museum.attention import Pair
from npformer.museum.probes import TOKENS, WIDTH, draw, found, small, weights_of
from npformer.optim import Adam, warmup_inverse_sqrt
from npformer.proof.gradcheck import GradcheckError, GradcheckReport, gradcheck
from npformer.proof.twincheck import in_float32

INVARIANTS: dict[str, Callable[[Any], None]] = {}

Check = TypeVar("Check", bound=Callable[[Any], None])


def invariant(check: Check) -> Check:
    """Enter a check into the table."""
    INVARIANTS[check.__name__] = check
    return check


# Gradients, at the points where bugs show ---------------------------------------------------------


@invariant
def gradient_of_softmax(pair: Pair) -> None:
    """Softmax's backward pass is the derivative of its forward pass."""
    gradcheck(pair, draw(2, 4))


@invariant
def gradient_of_layer_norm(layer: Layer) -> None:
    """Layer norm's backward pass is a derivative, gamma far from 1."""
    for norm in copy.deepcopy(found(layer, LayerNorm)):
        norm.gamma.value[...] = 1.5 + draw(*norm.gamma.shape, seed=1)
        gradcheck(norm, draw(3, norm.gamma.size))


@invariant
def gradient_of_dropout_at_evaluation(layer: Layer) -> None:
    """Dropout has a backward pass at evaluation too."""
    for dropout in found(layer, Dropout):
        gradcheck(dropout, draw(3, 4))


@invariant
def gradient_of_one_dropout_used_twice(chain: Layer) -> None:
    """A dropout that stands at two places keeps two masks."""
    gradcheck(chain, draw(4, 6), training=True)


@invariant
def a_referee_passes_no_nan(report: type[GradcheckReport]) -> None:
    """A gradient of NaN fails, wherever among the tensors it stands."""

    def backward(dy: np.ndarray, cache: Any) -> tuple[np.ndarray, ...]:
        dx, dW, db = F.linear_backward(dy, cache)
        return dx, dW * np.nan, db

    try:
        found = gradcheck((F.linear, backward), draw(2, 3), draw(3, 4, seed=1), draw(4, seed=2))
    except GradcheckError as error:
        found = error.report
    again = report(**{field.name: getattr(found, field.name) for field in fields(found)})
    assert not again.passed, "the gradient of W is NaN, and the report says that it passed"


# Forward passes -----------------------------------------------------------------------------------


@invariant
def softmax_sums_to_1_over_the_last_axis(softmax: Pair | Layer) -> None:
    """Softmax sums to 1 over the last axis, however many axes there are."""
    if isinstance(softmax, Layer):  # the softmax of every mixer in it
        for mixer in found(softmax, AveragingMixer):
            np.testing.assert_allclose(weights_of(mixer).sum(axis=-1), 1.0, rtol=1e-9)
        return
    for shape in ((4,), (3, 4), (2, 3, 4), (2, 2, 3, 4)):
        weights, _ = softmax[0](draw(*shape))
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-12)


@invariant
def attention_averages_over_the_keys(layer: Layer) -> None:
    """Each query's weights over the keys sum to 1 and are not all the same."""
    for mixer in found(layer, AveragingMixer):
        weights = weights_of(mixer)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-9)
        assert weights.std(axis=-1).min() > 1e-3, "scores differ and weights do not"


@invariant
def queries_ask_and_keys_answer(pair: Pair) -> None:
    """Each query has one answer, and it changes with that query alone."""
    attention, _ = pair
    query, key, value = draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)
    y, _ = attention(query, key, value)
    query[1] += 1.0
    moved = np.abs(attention(query, key, value)[0] - y).max(axis=-1)
    assert moved[1] > 1e-3, "the query changed and its answer did not"
    np.testing.assert_array_equal(moved[[0, 2, 3]], 0.0)
    assert attention(query[:2], key, value)[0].shape == (2, 2)


@invariant
def attention_without_positions_knows_no_order(layer: Layer) -> None:
    """Permuted tokens give the permuted result: attention knows no order."""
    x, order = draw(2, 5, WIDTH), [3, 0, 4, 1, 2]
    for mixer in found(layer, Attention):
        np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-9, atol=1e-12)


@invariant
def causal_attention_does_not_look_ahead(layer: Layer) -> None:
    """A causal mixer's token does not change when a later one does."""
    for mixer in found(layer, AveragingMixer):
        if mixer.causal:
            x = draw(2, 5, WIDTH)
            y = mixer(x)
            x[:, 3] += 1.0
            np.testing.assert_allclose(mixer(x)[:, :3], y[:, :3], rtol=1e-12)


@invariant
def padding_changes_no_kept_token(layer: Layer) -> None:
    """Neither padding nor what it holds reaches the tokens that are kept, unless it is refused."""
    mask = np.arange(4) < np.array([4, 2, 1])[:, None]
    for mixer in found(layer, Mixer):
        x = draw(3, 4, WIDTH)
        try:
            y = mixer(x, mask)
        except ValueError:  # refused: no token is wrong
            continue
        x[~mask] = 100.0
        np.testing.assert_allclose(mixer(x, mask)[mask], y[mask], rtol=1e-10)
        alone = mixer(x[1:2, :2])[0]
        np.testing.assert_allclose(y[1, :2], alone, rtol=1e-10)


@invariant
def padding_is_never_mixed_in_silence(layer: Layer) -> None:
    """A mixer that sees every position refuses a padding mask until told what to do."""
    mask = np.array([[True, True, False]])
    for mixer in found(layer, WholeSequenceMixer):
        if mixer.padding == "refuse":
            try:
                mixer(draw(1, 3, WIDTH), mask)
            except ValueError:
                continue
            raise AssertionError(f"{type(mixer).__name__} mixed padding in and said nothing")


@invariant
def fourier_mixing_is_the_transform_of_its_own_length(layer: Layer) -> None:
    """Fourier mixing is the discrete Fourier transform of the length that came in."""
    for mixer in found(layer, Fourier):
        for length in (1, 3, 8):
            x = draw(2, length, WIDTH)
            y, _ = mixer.mix(x, Context())
            np.testing.assert_allclose(y, np.fft.fft2(x).real, atol=1e-12)


@invariant
def dropout_does_nothing_at_evaluation(layer: Layer) -> None:
    """At evaluation dropout is the identity, whatever its rate."""
    for dropout in found(layer, Dropout):
        x = draw(3, 4)
        np.testing.assert_array_equal(dropout(x), x)
    without = copy.deepcopy(layer)
    for dropout in found(without, Dropout):
        dropout.rate = 0.0
    y, _ = layer.forward(TOKENS, Context())
    expected, _ = without.forward(TOKENS, Context())
    np.testing.assert_array_equal(y, expected)


@invariant
def a_constant_row_is_finite(layer: Layer) -> None:
    """Layer norm of a constant row is beta, not NaN."""
    for norm in found(layer, LayerNorm):
        with np.errstate(all="ignore"):
            y = norm(np.full((2, norm.gamma.size), 3.0))
        np.testing.assert_array_equal(y, np.broadcast_to(norm.beta.value, y.shape))


@invariant
def a_large_mean_costs_no_digits(layer: Layer) -> None:
    """Layer norm in float32 is right at a mean of 1e4."""
    for norm in copy.deepcopy(found(layer, LayerNorm)):
        exact = 1e4 + draw(8, norm.gamma.size)
        expected, _ = F.layer_norm(exact, norm.gamma.value, norm.beta.value, norm.eps)
        with np.errstate(all="ignore"), in_float32(norm):
            y = norm(exact.astype("float32"))
        np.testing.assert_allclose(y, expected, atol=1e-2)


@invariant
def gelu_is_the_one_that_was_asked_for(layer: Layer) -> None:
    """gelu(approximate="none") is x Phi(x), and "tanh" is the other one."""
    x = np.linspace(-4.0, 4.0, 41)
    phi = np.array([0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in x])
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    forms = {"none": x * phi, "tanh": 0.5 * x * (1.0 + np.tanh(inner))}
    for gelu in found(layer, GELU):
        np.testing.assert_allclose(gelu(x), forms[gelu.approximate], atol=1e-14)


# Blocks and the encoder ---------------------------------------------------------------------------


@invariant
def a_block_owns_two_norms(layer: Layer) -> None:
    """The two norms of a block are two: each has a gamma and a beta of its own."""
    for block in found(layer, EncoderBlock):
        assert block.mixer_norm is not block.feed_forward_norm, "one norm stands at two places"
        assert sum("norm" in name for name in block.parameters()) == 4


@invariant
def layers_are_tied_only_when_asked(layer: Layer) -> None:
    """An encoder of three layers has three times the parameters of one."""
    for encoder in found(layer, Encoder):
        depth = 1 if encoder.config.share_layers else encoder.config.n_layers
        own = sum(block.n_parameters() for block in {id(b): b for b in encoder.blocks}.values())
        assert len({id(block) for block in encoder.blocks}) == depth, "layers are one block"
        norm = 0 if encoder.final_norm is None else encoder.final_norm.n_parameters()
        assert encoder.n_parameters() == own + norm, "layers share their weights"


@invariant
def each_residual_adds_its_own_input(layer: Layer) -> None:
    """Both residual connections of a block add what went into that sublayer."""
    x = draw(2, 4, WIDTH)
    for block in found(layer, EncoderBlock):
        if block.norm == "post":
            h = block.mixer_norm(x + block.mixer(x))
            expected = block.feed_forward_norm(h + block.feed_forward(h))
        else:
            h = x + block.mixer(block.mixer_norm(x))
            expected = h + block.feed_forward(block.feed_forward_norm(h))
        np.testing.assert_allclose(block(x), expected, rtol=1e-12)


# The optimizer, and files -------------------------------------------------------------------------


@invariant
def adams_first_step_has_size_lr(kind: type[Adam]) -> None:
    """Adam's first step is lr long in every entry of every tensor."""
    gradients = {name: size * np.array([1.0, -2.0]) for name, size in (("a", 1e-2), ("b", 1e2))}
    parameters = {name: np.zeros(2) for name in gradients}
    kind(parameters, lr=0.01).step(gradients)
    for name, theta in parameters.items():
        np.testing.assert_allclose(theta, [-0.01, 0.01], rtol=1e-5, err_msg=name)


@invariant
def adam_counts_steps_and_not_tensors(kind: type[Adam]) -> None:
    """After n steps Adam and its warm-up are at n, however many tensors there are."""
    parameters = {name: np.zeros(2) for name in "abcde"}
    optimizer = kind(parameters, lr=1.0, schedule=warmup_inverse_sqrt(100))
    for _ in range(4):
        optimizer.step({name: np.ones(2) for name in parameters})
    assert optimizer.steps == 4, f"4 steps were taken and it counted {optimizer.steps}"
    np.testing.assert_allclose(optimizer.current_lr(), 5 / 100)
    for theta in parameters.values():
        np.testing.assert_array_equal(theta, parameters["a"])


@invariant
def weights_open_without_running_code(save: Callable[[Encoder, Path], None]) -> None:
    """A weights file is a header of plain JSON and numbers; opening it runs no code."""
    model = Encoder(small(), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save(model, path)
        data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert size < len(data), "it does not begin with the length of a header: a pickle?"
    header = json.loads(data[8 : 8 + size])
    stored = {name for name in header if name != "__metadata__"}
    assert stored >= set(model.parameters())
    assert {header[name]["dtype"] for name in stored} == {"F32"}
