"""Invariants: each function takes one thing, and raises AssertionError if that is wrong.

The annotation says what that is: a layer, or any model with such layers in it; a pair (forward,
backward); a class; a function; or source text (see `rules`). The docstring says what must hold.
Layers are in float64, and tokens have `WIDTH` features.
"""

# mypy: disable-error-code="type-abstract"

import contextlib
import copy
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from npformer import functional as F
from npformer.core import Context, Layer
from npformer.layers import GELU, Dropout, LayerNorm, Linear, TokenDropout
from npformer.learn.museum.attention_by import Pair
from npformer.learn.museum.probes import (
    TOKENS,
    WIDTH,
    averaging_mixers,
    layers_in,
    report_of,
    small,
    weights_of,
)
from npformer.mixers import Attention, Fourier, Mixer, WholeSequenceMixer
from npformer.models import Encoder, EncoderBlock
from npformer.optim import Adam, warmup_inverse_sqrt
from npformer.proof.cases.case import draw
from npformer.proof.gradcheck import gradcheck
from npformer.proof.problem import parameters_as
from npformer.proof.report import GradcheckReport

# Gradients ----------------------------------------------------------------------------------------


def gradient_of_softmax(pair: Pair) -> None:
    """Softmax's backward pass is the derivative of its forward pass."""
    gradcheck(pair, draw(2, 4))


def gradient_of_layer_norm(layer: Layer) -> None:
    """Layer norm's backward pass is the derivative of its forward pass, for gamma far from 1."""
    for norm in copy.deepcopy(layers_in(layer, LayerNorm)):
        norm.gamma.value[...] = 1.5 + draw(*norm.gamma.shape, seed=1)
        gradcheck(norm, draw(3, norm.gamma.size))


def gradient_of_a_linear_map(layer: Layer) -> None:
    """A linear map's backward pass is the derivative of its forward pass."""
    for linear in layers_in(layer, Linear):
        gradcheck(linear, draw(3, linear.weight.shape[0]))


def gradient_of_an_activation(layer: Layer) -> None:
    """GELU's backward pass is the derivative of its forward pass."""
    for gelu in layers_in(layer, GELU):
        gradcheck(gelu, draw(3, 4))


def gradient_of_attention(layer: Layer) -> None:
    """A mixer's backward pass is right for queries, keys and values, with and without `causal`."""
    for mixer in copy.deepcopy(averaging_mixers(layer)):
        for causal in (True, False):
            mixer.causal = causal
            gradcheck(mixer, draw(2, 5, WIDTH), max_entries=8)


def gradient_of_a_block(layer: Layer) -> None:
    """A block's backward pass is the derivative of its forward pass, as a whole."""
    for block in layers_in(layer, EncoderBlock):
        gradcheck(block, TOKENS, max_entries=8)


def gradient_of_dropout_at_evaluation(layer: Layer) -> None:
    """Dropout's backward pass is right at evaluation too."""
    for dropout in layers_in(layer, Dropout):
        gradcheck(dropout, draw(3, 4))


def gradient_of_one_dropout_used_twice(chain: Layer) -> None:
    """A dropout layer that is used twice has a mask for each use."""
    gradcheck(chain, draw(4, 6), training=True)


def a_referee_passes_no_nan(report: type[GradcheckReport]) -> None:
    """A gradient of NaN fails gradcheck, whichever tensor it belongs to."""

    def backward(dy: np.ndarray, cache: Any) -> tuple[np.ndarray, ...]:
        dx, dW, db = F.linear_backward(dy, cache)
        return dx, dW * np.nan, db

    right = report_of((F.linear, backward), draw(2, 3), draw(3, 4, seed=1), draw(4, seed=2))
    assert not report(**vars(right)).passed, "the gradient of W is NaN, and it passed"


# Forward passes -----------------------------------------------------------------------------------


def softmax_sums_to_1_over_the_last_axis(softmax: Pair | Layer) -> None:
    """Softmax sums to 1 over the last axis, for any number of axes."""
    if isinstance(softmax, Layer):  # of every mixer in it
        weights = [weights_of(mixer) for mixer in averaging_mixers(softmax)]
    else:
        shapes = (4,), (3, 4), (2, 3, 4), (2, 2, 3, 4)
        weights = [softmax[0](draw(*shape))[0] for shape in shapes]
    for each in weights:
        np.testing.assert_allclose(each.sum(axis=-1), 1.0, rtol=1e-12)


def attention_averages_over_the_keys(layer: Layer) -> None:
    """The weights of each query over the keys sum to 1 and are not all the same."""
    for mixer in averaging_mixers(layer):
        weights = weights_of(mixer)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-9)
        assert weights.std(axis=-1).min() > 1e-3, "scores differ but weights do not"


def queries_ask_and_keys_answer(pair: Pair) -> None:
    """Each query has one row of the result, which depends on that query and on no other."""
    attention, _ = pair
    query, key, value = draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)
    y, _ = attention(query, key, value)
    query[1] += 1.0
    moved = np.abs(attention(query, key, value)[0] - y).max(axis=-1)
    assert moved[1] > 1e-3, "the query changed but its row of the result did not"
    np.testing.assert_array_equal(moved[[0, 2, 3]], 0.0)
    assert attention(query[:2], key, value)[0].shape == (2, 2)


def scores_have_variance_1(layer: Layer) -> None:
    """Scores of queries and keys whose entries are normal, of variance 1, have variance 1.

    The scores are seen by what softmax makes of them: log weights differ as scores do.
    """
    for mixer in copy.deepcopy(layers_in(layer, Attention)):
        mixer.causal = False
        length = WIDTH // mixer.n_heads
        inverse = np.linalg.pinv(draw(length, WIDTH))  # of the tokens in `weights_of`
        variances = []
        for seed in range(1, 101):
            queries_and_keys = draw(2, length, WIDTH, seed=seed)
            for linear, rows in zip((mixer.query, mixer.key), queries_and_keys, strict=True):
                linear.weight.value[...] = inverse @ rows
                if linear.bias is not None:
                    linear.bias.value[...] = 0.0
            variances.append(np.log(weights_of(mixer)).var(axis=-1, ddof=1).mean())
        np.testing.assert_allclose(np.mean(variances), 1.0, atol=0.2)


def attention_without_positions_knows_no_order(layer: Layer) -> None:
    """Permuting the tokens permutes the result: attention does not see their order."""
    x, order = draw(2, 5, WIDTH), [3, 0, 4, 1, 2]
    for mixer in layers_in(layer, Attention):
        np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-9, atol=1e-12)


def causal_attention_does_not_look_ahead(layer: Layer) -> None:
    """In a causal mixer, a token does not change when a later one does."""
    for mixer in averaging_mixers(layer):
        if mixer.causal:
            x = draw(2, 5, WIDTH)
            y = mixer(x)
            x[:, 3] += 1.0
            np.testing.assert_allclose(mixer(x)[:, :3], y[:, :3], rtol=1e-12)


def padding_changes_no_kept_token(layer: Layer) -> None:
    """Padding changes no other token, whatever its values are, unless it is refused."""
    mask = np.arange(4) < np.array([4, 2, 1])[:, None]
    for mixer in layers_in(layer, Mixer):
        x = draw(3, 4, WIDTH)
        try:
            y = mixer(x, mask)
        except ValueError:  # refused: no token is wrong
            continue
        x[~mask] = 100.0
        np.testing.assert_allclose(mixer(x, mask)[mask], y[mask], rtol=1e-10)
        np.testing.assert_allclose(y[1, :2], mixer(x[1:2, :2])[0], rtol=1e-10)


def padding_is_never_mixed_in_silence(layer: Layer) -> None:
    """A mixer of whole sequences refuses a padding mask, unless `padding` says how to treat it."""
    mask = np.array([[True, True, False]])
    for mixer in layers_in(layer, WholeSequenceMixer):
        if mixer.padding == "refuse":
            with contextlib.suppress(ValueError):
                mixer(draw(1, 3, WIDTH), mask)
                raise AssertionError(f"{type(mixer).__name__} mixed padding in silently")


def fourier_mixing_is_the_transform_of_its_own_length(layer: Layer) -> None:
    """Fourier mixing is the discrete Fourier transform of the given length."""
    for mixer in layers_in(layer, Fourier):
        for length in (1, 3, 8):
            x = draw(2, length, WIDTH)
            np.testing.assert_allclose(mixer.mix(x, Context())[0], np.fft.fft2(x).real, atol=1e-12)


def dropout_does_nothing_at_evaluation(layer: Layer) -> None:
    """At evaluation dropout is the identity, whatever its rate."""
    without = copy.deepcopy(layer)
    for dropout, copied in zip(layers_in(layer, Dropout), layers_in(without, Dropout), strict=True):
        np.testing.assert_array_equal(dropout(TOKENS), TOKENS)
        copied.rate = 0.0
    y, expected = (one.forward(TOKENS, Context())[0] for one in (layer, without))
    np.testing.assert_array_equal(y, expected)


def dropout_keeps_the_mean(layer: Layer) -> None:
    """In training, dropout's result has the mean of its input, at any rate."""
    ones = np.ones((100, 1000))
    for dropout in copy.deepcopy(layers_in(layer, Dropout)):
        if isinstance(dropout, TokenDropout):  # it does not scale
            continue
        for rate in (0.1, 0.3):
            dropout.rate = rate
            generator = np.random.default_rng(0)
            y, _ = dropout.forward(ones, Context(training=True, generator=generator))
            np.testing.assert_allclose(y.mean(), 1.0, atol=0.02, err_msg=f"rate {rate}")


def a_norm_is_of_one_token(layer: Layer) -> None:
    """Layer norm of a token depends on that token alone, whatever the axes of x are.

    There are three axes, with as many sequences or tokens as features, and with other numbers.
    """
    for norm in layers_in(layer, LayerNorm):
        width = norm.gamma.value.size
        for shape in ((2, 5, width), (3, width, width), (width, 3, width)):
            x = draw(*shape)
            token_alone = norm(x[1:2, 2:3])
            among_others = norm(x)[1:2, 2:3]
            np.testing.assert_allclose(among_others, token_alone, rtol=1e-12, err_msg=f"{shape}")


def a_constant_row_is_finite(layer: Layer) -> None:
    """Layer norm of a constant row is beta, not NaN."""
    for norm in layers_in(layer, LayerNorm):
        with np.errstate(all="ignore"):
            y = norm(np.full((2, norm.gamma.size), 3.0))
        np.testing.assert_array_equal(y, [norm.beta.value] * 2)


def a_large_mean_costs_no_digits(layer: Layer) -> None:
    """Layer norm in float32 is right at a mean of 1e4."""
    for norm in copy.deepcopy(layers_in(layer, LayerNorm)):
        exact = 1e4 + draw(8, norm.gamma.size)
        expected, _ = F.layer_norm(exact, norm.gamma.value, norm.beta.value, norm.eps)
        with np.errstate(all="ignore"), parameters_as(norm, lambda flat: flat.astype("float32")):
            y = norm(exact.astype("float32"))
        np.testing.assert_allclose(y, expected, atol=1e-2)


def gelu_is_the_one_that_was_asked_for(layer: Layer) -> None:
    """gelu(approximate="none") is x Phi(x), and "tanh" is the approximation by tanh."""
    x = np.linspace(-4.0, 4.0, 41)
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    forms = {"none": x * scipy.special.ndtr(x), "tanh": 0.5 * x * (1.0 + np.tanh(inner))}
    for gelu in layers_in(layer, GELU):
        np.testing.assert_allclose(gelu(x), forms[gelu.approximate], atol=1e-14)


# Blocks and the encoder ---------------------------------------------------------------------------


def a_block_owns_two_norms(layer: Layer) -> None:
    """The two layer norms of a block have separate gammas and betas."""
    for block in layers_in(layer, EncoderBlock):
        assert block.mixer_norm is not block.feed_forward_norm, "one norm is used twice"
        assert sum("norm" in name for name in block.parameters()) == 4


def layers_are_tied_only_when_asked(layer: Layer) -> None:
    """An encoder's blocks share no parameters, unless the configuration says so."""
    for encoder in layers_in(layer, Encoder):
        depth = 1 if encoder.config.share_layers else encoder.config.n_layers
        blocks = set(encoder.blocks)
        assert len(blocks) == depth, "blocks are the same object"
        own = sum(block.n_parameters() for block in blocks)
        norm = 0 if encoder.final_norm is None else encoder.final_norm.n_parameters()
        assert encoder.n_parameters() == own + norm, "blocks share parameters"


def each_residual_adds_its_own_input(layer: Layer) -> None:
    """Each residual connection of a block adds the input of its own sublayer."""
    x = TOKENS
    for block in layers_in(layer, EncoderBlock):
        if block.norm == "post":
            h = block.mixer_norm(x + block.mixer(x))
            expected = block.feed_forward_norm(h + block.feed_forward(h))
        else:
            h = x + block.mixer(block.mixer_norm(x))
            expected = h + block.feed_forward(block.feed_forward_norm(h))
        np.testing.assert_allclose(block(x), expected, rtol=1e-12)


# The optimizer, and files -------------------------------------------------------------------------


def adams_first_step_has_size_lr(kind: type[Adam]) -> None:
    """Adam's first step changes every entry of every tensor by lr."""
    gradients = {name: size * np.array([1.0, -2.0]) for name, size in (("a", 1e-2), ("b", 1e2))}
    parameters = {name: np.zeros(2) for name in gradients}
    kind(parameters, lr=0.01).step(gradients)
    for name, theta in parameters.items():
        np.testing.assert_allclose(theta, [-0.01, 0.01], rtol=1e-3, err_msg=name)


def adam_counts_steps_and_not_tensors(kind: type[Adam]) -> None:
    """After n steps Adam's counter and its warm-up are at n, for any number of tensors."""
    parameters, gradients = {n: np.zeros(2) for n in "abcde"}, {n: np.ones(2) for n in "abcde"}
    optimizer = kind(parameters, lr=1.0, schedule=warmup_inverse_sqrt(100))
    for _ in range(4):
        optimizer.step(gradients)
    assert optimizer.steps == 4, f"4 steps were taken and it counted {optimizer.steps}"
    np.testing.assert_allclose(optimizer.current_lr(), 5 / 100)
    for theta in parameters.values():
        np.testing.assert_array_equal(theta, parameters["a"])


def weights_open_without_running_code(save: Callable[[Encoder, Path], None]) -> None:
    """A weights file is a JSON header and numbers, so opening it runs no code."""
    model = Encoder(small(), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save(model, path)
        data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert size < len(data), "it does not begin with the length of a header; is it a pickle?"
    header = json.loads(data[8 : 8 + size])
    stored = header.keys() - {"__metadata__"}
    assert stored >= set(model.parameters())
    assert {header[name]["dtype"] for name in stored} == {"F32"}
