"""Wrong calls, and the words that refuse them: what came, what was expected, what to do."""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer import optim
from npformer.mixers import (
    Attention,
    AttentionScores,
    BlockwiseAttention,
    DenseSynthesizer,
    FactorizedRandomScores,
    Fourier,
    LinearMixing,
    MixerSettings,
    MixtureScores,
    RandomSynthesizer,
    hybrid,
)
from npformer.proof.gradcheck import gradcheck

IDS, LABELS = np.ones((2, 4), dtype=int), np.array([0, 1])
ONES = np.ones((2, 4), dtype=int)


def f32(*shape):
    return np.ones(shape, dtype="float32")


def f64(*shape):
    return np.ones(shape)


def keep(*shape):
    return np.ones(shape, dtype=bool)


def config(**changes):
    sizes = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_len": 6}
    return nf.EncoderConfig(**(sizes | changes))


def encoder(**changes):
    return nf.Encoder(config(**changes))


def tokens(n_classes=3, vocab_size=7, pooling="mean", output="softmax", seed=0, **changes):
    """Return a float32 model of token ids 0 to 6."""
    return nf.SequenceClassifier(
        config(**changes),
        n_classes,
        vocab_size=vocab_size,
        pooling=pooling,
        output=output,
        seed=seed,
    )


def vectors():
    """Return a float32 model of vectors of 3 features."""
    return nf.SequenceClassifier(config(), 3, n_features=3)


def step(x=IDS, y=LABELS, mask=None, model=None, **options):
    return (model or tokens()).loss_and_gradients(x, y, mask, **options)


def adam(**options):
    return nf.Adam({"w": f64(3)}, **options)


def gradients_of_another_layer():
    layer, other = (L.Linear(2, 2, seed=0) for _ in range(2))
    _, cache = layer.forward(f32(1, 2), nf.Context())
    layer.backward(f32(1, 2), cache, nf.Gradients(other))


FUNCTIONS = [
    (
        "a list instead of an array",
        lambda: F.linear([[1.0, 2.0]], f32(2, 3)),
        TypeError,
        ["x is a list", "expected an array", "numpy.asarray(x", "'float32'"],
    ),
    (
        "a list as key",
        lambda: F.scaled_dot_product_attention(f32(2, 3, 4), [[1.0]], f32(2, 3, 4)),
        TypeError,
        ["key is a list", "expected an array", "numpy.asarray(key"],
    ),
    (
        "a list as activation input",
        lambda: F.relu([1.0]),
        TypeError,
        ["x is a list", "expected an array"],
    ),
    (
        "a number as bias",
        lambda: F.linear(f32(2, 4), f32(4, 5), 0.0),
        TypeError,
        ["b is a float", "expected an array"],
    ),
    (
        "whole numbers as features",
        lambda: F.linear(ONES, f32(4, 5)),
        TypeError,
        ["x has dtype int64", "expected float32 or float64", "x.astype('float32')"],
    ),
    (
        "complex numbers",
        lambda: F.fourier_mixing(np.ones((2, 4, 4), dtype="complex128")),
        TypeError,
        ["x has dtype complex128", "expected float32 or float64"],
    ),
    (
        "float32 beside float64",
        lambda: F.linear(f32(2, 4), f64(4, 5)),
        TypeError,
        [
            "x has dtype float32 and W has dtype float64",
            "expected one dtype",
            "x.astype('float64')",
        ],
    ),
    (
        "linear: features that do not fit",
        lambda: F.linear(f32(2, 3), f32(4, 5)),
        ValueError,
        ["x has shape (2, 3)", "expected (..., 4)", "the first of W"],
    ),
    (
        "linear: W with a kernel",
        lambda: F.linear(f32(2, 4), f32(1, 4, 5)),
        ValueError,
        ["W has shape (1, 4, 5)", "expected (d_in, d_out)"],
    ),
    (
        "linear: bias of the wrong end",
        lambda: F.linear(f32(2, 4), f32(4, 5), f32(4)),
        ValueError,
        ["b has shape (4,)", "expected (5,)", "each column of W"],
    ),
    (
        "conv1d: no batch",
        lambda: F.conv1d(f32(4, 3), f32(3, 3, 2)),
        ValueError,
        ["x has shape (4, 3)", "expected (batch, length, 3)", "last axis"],
    ),
    (
        "conv1d: channels first",
        lambda: F.conv1d(f32(1, 3, 4), f32(3, 3, 2)),
        ValueError,
        ["x has shape (1, 3, 4)", "expected (batch, length, 3)", "Channels are the last axis"],
    ),
    (
        "conv1d: unknown padding",
        lambda: F.conv1d(f32(1, 4, 3), f32(3, 3, 2), padding="full"),
        ValueError,
        ["padding is 'full'", "'same', 'valid'"],
    ),
    (
        "conv1d: kernel longer than x",
        lambda: F.conv1d(f32(1, 2, 3), f32(3, 3, 2), padding="valid"),
        ValueError,
        ["length 2", "size 3", "padding='same'"],
    ),
    (
        "gelu: approximate=True",
        lambda: F.gelu(f32(3), approximate=True),
        ValueError,
        ["approximate is True", "'none', 'tanh'"],
    ),
    (
        "layer_norm: gamma of another size",
        lambda: F.layer_norm(f32(2, 4), f32(3), f32(4)),
        ValueError,
        ["gamma has shape (3,)", "expected (4,)", "each feature"],
    ),
    (
        "softmax: a mask of ones and zeros",
        lambda: F.softmax(f32(2, 4), mask=ONES),
        TypeError,
        ["mask has dtype int64", "boolean", "True means keep", "mask = mask != 0"],
    ),
    (
        "softmax: a mask that is a list",
        lambda: F.softmax(f32(2, 3), mask=[True, True, False]),
        TypeError,
        ["mask is a list", "expected an array", "'bool' for a mask"],
    ),
    (
        "attention: keys of another size",
        lambda: F.attention_scores(f32(2, 3, 4), f32(2, 3, 5)),
        ValueError,
        ["key has shape (2, 3, 5)", "expected (2, key_length, 4)", "Only lengths may differ"],
    ),
    (
        "attention: more values than keys",
        lambda: F.scaled_dot_product_attention(f32(2, 3, 4), f32(2, 3, 4), f32(2, 4, 4)),
        ValueError,
        ["value has shape (2, 4, 4)", "expected (2, 3, d_value)", "One value for each key"],
    ),
    (
        "attention: a mask that was not spread over heads",
        lambda: F.scaled_dot_product_attention(*[f32(2, 2, 3, 4)] * 3, mask=keep(2, 3)),
        ValueError,
        ["mask has shape (2, 3)", "the scores, (2, 2, 3, 3)", "mask[:, None, None, :]"],
    ),
    (
        "attention: an additive mask",
        lambda: F.scaled_dot_product_attention(*[f32(2, 3, 4)] * 3, mask=f32(3, 3)),
        TypeError,
        ["mask has dtype float32", "boolean", "True means keep"],
    ),
    (
        "attention: a mask of a larger batch",
        lambda: F.scaled_dot_product_attention(*[f32(1, 3, 4)] * 3, mask=keep(2, 1, 3)),
        ValueError,
        ["mask has shape (2, 1, 3)", "the scores, (1, 3, 3)"],
    ),
    (
        "attention in blocks: a mask with rows to spare",
        lambda: F.blockwise_attention(*[f32(2, 5, 4)] * 3, mask=keep(6, 5), block=2),
        ValueError,
        ["mask has shape (6, 5)", "the scores, (2, 5, 5)"],
    ),
    (
        "attention in blocks: a mask that was not spread over heads",
        lambda: F.blockwise_attention(*[f32(2, 2, 3, 4)] * 3, mask=keep(2, 3)),
        ValueError,
        ["mask has shape (2, 3)", "the scores, (2, 2, 3, 3)", "mask[:, None, None, :]"],
    ),
    (
        "attention in blocks: a mask that is a list",
        lambda: F.blockwise_attention(*[f32(2, 3, 4)] * 3, mask=[True, True, False]),
        TypeError,
        ["mask is a list", "expected an array", "'bool' for a mask"],
    ),
    (
        "attention in blocks: an additive mask",
        lambda: F.blockwise_attention(*[f32(2, 3, 4)] * 3, mask=f32(3, 3)),
        TypeError,
        ["mask has dtype float32", "boolean", "True means keep"],
    ),
    (
        "attention in blocks: keys of another size",
        lambda: F.blockwise_attention(f32(2, 3, 4), f32(2, 3, 5), f32(2, 3, 4)),
        ValueError,
        ["key has shape (2, 3, 5)", "key_length, 4)"],
    ),
    (
        "attention in blocks: more values than keys",
        lambda: F.blockwise_attention(f32(2, 3, 4), f32(2, 3, 4), f32(2, 4, 4)),
        ValueError,
        ["value has shape (2, 4, 4)", "expected (2, 3, d_value)", "One value for each key"],
    ),
    (
        "attention in blocks of nothing",
        lambda: F.blockwise_attention(*[f32(2, 3, 4)] * 3, block=0),
        ValueError,
        ["block is 0", "whole number of at least 1"],
    ),
    (
        "averaging: more values than columns",
        lambda: F.average(f32(2, 3, 4), f32(2, 5, 6)),
        ValueError,
        ["value has shape (2, 5, 6)", "expected (..., 4, d_value)", "each column of scores"],
    ),
    (
        "averaging: scores of other heads",
        lambda: F.average(f32(3, 4, 4), f32(5, 2, 4, 6)),
        ValueError,
        ["scores has shape (3, 4, 4) and value has shape (5, 2, 4, 6)", "the same axes"],
    ),
    (
        "averaging: a single axis of scores",
        lambda: F.average(f32(4), f32(4, 6)),
        ValueError,
        ["scores has shape (4,)", "expected (..., query_length, key_length)"],
    ),
    (
        "averaging: a mask of another batch",
        lambda: F.average(f32(4, 4), f32(5, 4, 6), keep(3, 1, 4)),
        ValueError,
        ["mask has shape (3, 1, 4)", "the scores, (5, 4, 4)"],
    ),
    (
        "averaging: a mask in a list",
        lambda: F.averaging_weights(f32(4, 4), [True] * 4),
        TypeError,
        ["mask is a list", "expected an array", "'bool' for a mask"],
    ),
    (
        "averaging: a mask of another length",
        lambda: F.averaging_weights(f32(2, 4, 4), keep(5, 1, 1, 3)),
        ValueError,
        ["mask has shape (5, 1, 1, 3)", "the scores, (5, 2, 4, 4)"],
    ),
    (
        "heads that do not divide the features",
        lambda: F.split_heads(f32(2, 3, 4), 3),
        ValueError,
        ["4 features", "n_heads is 3", "divide"],
    ),
    (
        "heads of an array without a batch",
        lambda: F.split_heads(f32(3, 4), 2),
        ValueError,
        ["x has shape (3, 4)", "expected (batch, length, d_model)"],
    ),
    (
        "synthesizer: longer than max_len",
        lambda: F.dense_synthesizer(
            f32(1, 6, 4), f32(1, 6, 2), f32(4, 4), f32(4), f32(4, 5), f32(5)
        ),
        ValueError,
        ["x has length 6", "at most 5", "larger max_len"],
    ),
    (
        "synthesizer: heads that do not share W1's columns evenly",
        lambda: F.dense_scores(f32(1, 5, 4), f32(4, 5), f32(5), f32(2, 2, 5), f32(2, 5), 5),
        ValueError,
        ["5 features", "n_heads is 2", "divide"],
    ),
    (
        "synthesizer: heads without a batch",
        lambda: F.dense_scores(f32(5, 4), f32(4, 4), f32(4), f32(2, 2, 5), f32(2, 5), 5),
        ValueError,
        ["x has shape (5, 4)", "expected (batch, length, d_model)", "needs a batch"],
    ),
    (
        "synthesizer: values for other tokens",
        lambda: F.dense_synthesizer(
            f32(1, 5, 4), f32(1, 4, 2), f32(4, 4), f32(4), f32(4, 5), f32(5)
        ),
        ValueError,
        ["value has shape (1, 4, 2)", "expected (1, 5, d_value)", "each token"],
    ),
    (
        "synthesizer: more columns than there are",
        lambda: F.dense_scores(f32(1, 5, 4), f32(4, 4), f32(4), f32(4, 5), f32(5), 6),
        ValueError,
        ["length 6", "at most 5", "larger max_len"],
    ),
    (
        "synthesizer: a bias of another map",
        lambda: F.dense_scores(f32(1, 5, 4), f32(4, 4), f32(4), f32(4, 5), f32(4), 5),
        ValueError,
        ["b2 has shape (4,)", "expected (5,)", "each column of W2"],
    ),
    (
        "factorized synthesizer: longer than both rows make",
        lambda: F.factorized_dense_synthesizer(
            f32(1, 7, 4),
            f32(1, 7, 2),
            *(f32(4, 4), f32(4), f32(4, 3), f32(3)),
            *(f32(4, 4), f32(4), f32(4, 2), f32(2)),
        ),
        ValueError,
        ["x has length 7", "at most 6", "W2's 3 and V2's 2", "larger max_len"],
    ),
    (
        "factorized synthesizer: values for other tokens",
        lambda: F.factorized_dense_synthesizer(
            f32(1, 5, 4),
            f32(1, 4, 2),
            *(f32(4, 4), f32(4), f32(4, 3), f32(3)),
            *(f32(4, 4), f32(4), f32(4, 2), f32(2)),
        ),
        ValueError,
        ["value has shape (1, 4, 2)", "expected (1, 5, d_value)", "each token"],
    ),
    (
        "random synthesizer: longer than its table",
        lambda: F.random_synthesizer(f32(1, 6, 4), f32(5, 5)),
        ValueError,
        ["length 6", "at most 5", "larger max_len"],
    ),
    (
        "random synthesizer: a table that is not square",
        lambda: F.random_synthesizer(f32(1, 4, 4), f32(5, 6)),
        ValueError,
        ["R has shape (5, 6)", "expected (..., 6, 6)", "square"],
    ),
    (
        "random synthesizer: tables of other heads",
        lambda: F.random_synthesizer(f32(5, 2, 4, 3), f32(3, 4, 4)),
        ValueError,
        ["scores has shape (3, 4, 4) and value has shape (5, 2, 4, 3)", "the same axes"],
    ),
    (
        "random synthesizer: values in float64",
        lambda: F.random_synthesizer(f64(1, 4, 4), f32(4, 4)),
        TypeError,
        ["value has dtype float64 and R has dtype float32", "expected one dtype"],
    ),
    (
        "factorized random synthesizer: factors that differ",
        lambda: F.factorized_random_synthesizer(f32(1, 4, 4), f32(5, 2), f32(5, 3)),
        ValueError,
        ["R2 has shape (5, 3)", "expected (5, 2)", "alike"],
    ),
    (
        "factorized random synthesizer: longer than its factors",
        lambda: F.factorized_random_synthesizer(f32(1, 6, 4), f32(5, 2), f32(5, 2)),
        ValueError,
        ["length 6", "at most 5", "larger max_len"],
    ),
    (
        "mixture: too few shares",
        lambda: F.mixture_scores(f32(2), f32(4, 4), f32(4, 4), f32(4, 4)),
        ValueError,
        ["logits has shape (2,)", "expected (3,)", "One share for each"],
    ),
    (
        "mixture: parts that do not fit",
        lambda: F.mixture_scores(f32(2), f32(5, 2, 4, 4), f32(3, 4, 4)),
        ValueError,
        ["scores[1] has shape (3, 4, 4)", "(5, 2, 4, 4)", "the same axes"],
    ),
    (
        "mixture: of nothing",
        lambda: F.mixture_scores(f32(0)),
        ValueError,
        ["no scores", "at least one part"],
    ),
    (
        "mixture: a part in float64",
        lambda: F.mixture_scores(f32(2), f32(4, 4), f64(4, 4)),
        TypeError,
        ["scores[1] has dtype float64", "expected one dtype"],
    ),
    (
        "hartley: a single axis",
        lambda: F.hartley_mixing(f32(4)),
        ValueError,
        ["x has shape (4,)", "expected (..., length, d_model)"],
    ),
    (
        "linear mixing: without a batch",
        lambda: F.linear_mixing(f32(4, 3), f32(4, 4), f32(3, 3)),
        ValueError,
        ["x has shape (4, 3)", "expected (batch, length, d_model)"],
    ),
    (
        "linear mixing: longer than its matrix",
        lambda: F.linear_mixing(f32(2, 5, 3), f32(4, 4), f32(3, 3)),
        ValueError,
        ["x has length 5", "at most 4", "W_sequence", "larger max_len"],
    ),
    (
        "linear mixing: a matrix that is not square",
        lambda: F.linear_mixing(f32(2, 4, 3), f32(4, 5), f32(3, 3)),
        ValueError,
        ["W_sequence has shape (4, 5)", "square"],
    ),
    (
        "linear mixing: fewer features out than in",
        lambda: F.linear_mixing(f32(2, 4, 3), f32(4, 4), f32(3, 2)),
        ValueError,
        ["W_features has shape (3, 2)", "expected (3, 3)", "both sides"],
    ),
    (
        "fourier: a single axis",
        lambda: F.fourier_mixing(f32(4)),
        ValueError,
        ["x has shape (4,)", "expected (..., length, d_model)"],
    ),
    (
        "dropout: everything",
        lambda: F.dropout(f32(3), 1.0),
        ValueError,
        ["rate is 1.0", "from 0 up to, not including, 1"],
    ),
    (
        "dropout: a seed instead of a generator",
        lambda: F.dropout(f32(3), 0.5, 0),
        TypeError,
        ["generator is a int", "numpy.random.Generator", "default_rng(seed)"],
    ),
    (
        "embedding: ids that are floats",
        lambda: F.embedding(f32(2), f32(5, 3)),
        TypeError,
        ["ids has dtype float32", "expected whole numbers", "ids.astype('int64')"],
    ),
    (
        "embedding: ids that are a mask",
        lambda: F.embedding(keep(2), f32(5, 3)),
        TypeError,
        ["ids has dtype bool", "expected whole numbers"],
    ),
    (
        "embedding: an id too high",
        lambda: F.embedding(np.array([5]), f32(5, 3)),
        ValueError,
        ["ids holds 5", "from 0 to 4", "rows"],
    ),
    (
        "embedding: an id below 0",
        lambda: F.embedding(np.array([-1]), f32(5, 3)),
        ValueError,
        ["ids holds -1", "from 0 to 4"],
    ),
    (
        "pooling: a mask of another length",
        lambda: F.mean_pooling(f32(2, 3, 4), keep(2, 4)),
        ValueError,
        ["mask has shape (2, 4)", "expected (2, 3)", "each token"],
    ),
    (
        "pooling: a single sequence",
        lambda: F.mean_pooling(f32(3, 4)),
        ValueError,
        ["x has shape (3, 4)", "expected (batch, length, d_model)"],
    ),
    (
        "cross-entropy: one-hot labels",
        lambda: F.softmax_cross_entropy(f32(2, 3), np.eye(3, dtype=int)[:2]),
        ValueError,
        ["labels has shape (2, 3)", "expected (2,)", "One label for each row"],
    ),
    (
        "cross-entropy: labels that are floats",
        lambda: F.softmax_cross_entropy(f32(2, 3), f32(2)),
        TypeError,
        ["labels has dtype float32", "expected whole numbers", "astype('int64')"],
    ),
    (
        "cross-entropy: a label too high",
        lambda: F.softmax_cross_entropy(f32(2, 3), np.array([0, 3])),
        ValueError,
        ["labels holds 3", "from 0 to 2", "3 classes"],
    ),
    (
        "cross-entropy: a label below -1",
        lambda: F.softmax_cross_entropy(f32(2, 3), np.array([0, -2])),
        ValueError,
        ["labels holds -2", "-1: no label"],
    ),
    (
        "cross-entropy: too much smoothing",
        lambda: F.softmax_cross_entropy(f32(2, 3), LABELS, label_smoothing=1.5),
        ValueError,
        ["label_smoothing is 1.5", "from 0 up to"],
    ),
    (
        "binary cross-entropy: shapes that would broadcast",
        lambda: F.binary_cross_entropy_with_logits(f32(2, 1), f32(2)),
        ValueError,
        ["targets has shape (2,)", "expected (2, 1)"],
    ),
    (
        "binary cross-entropy: whole targets",
        lambda: F.binary_cross_entropy_with_logits(f32(2), LABELS),
        TypeError,
        ["targets has dtype int64", "targets.astype('float32')"],
    ),
    (
        "squared error: shapes that would broadcast",
        lambda: F.mean_squared_error(f32(2, 1), f32(2)),
        ValueError,
        ["target has shape (2,)", "expected (2, 1)", "each prediction"],
    ),
]

LAYERS = [
    (
        "a layer called with a list",
        lambda: L.Linear(4, 3, seed=0)([[1.0, 2.0, 3.0, 4.0]]),
        TypeError,
        ["x is a list", "expected an array"],
    ),
    (
        "a mixer called with a mask that is a list",
        lambda: Attention(4, 2, seed=0)(f32(2, 3, 4), [[True] * 3] * 2),
        TypeError,
        ["mask is a list", "expected an array", "'bool' for a mask"],
    ),
    (
        "a float64 input for a float32 layer",
        lambda: L.Linear(4, 3, seed=0)(f64(2, 4)),
        TypeError,
        ["x has dtype float64", "float32", "expected one dtype", "x.astype('float32')"],
    ),
    (
        "a float64 input for float32 positions",
        lambda: L.Positions(4, 3, seed=0)(f64(1, 2, 3)),
        TypeError,
        ["x has dtype float64 and table has dtype float32", "x.astype('float32')"],
    ),
    (
        "seed=None",
        lambda: L.Linear(4, 3, seed=None),
        TypeError,
        ["seed is None", "whole number from 0 or a numpy.random.Generator"],
    ),
    ("a negative seed", lambda: L.Linear(4, 3, seed=-1), TypeError, ["seed is -1", "from 0"]),
    ("no seed at all", lambda: L.Linear(4, 3), TypeError, ["seed"]),
    (
        "no features",
        lambda: L.Linear(0, 3, seed=0),
        ValueError,
        ["d_in is 0", "whole number of at least 1"],
    ),
    (
        "an unknown dtype",
        lambda: L.Linear(4, 3, seed=0, dtype="float16"),
        ValueError,
        ["dtype is 'float16'", "'float32', 'float64'"],
    ),
    (
        "an unknown dtype of positions",
        lambda: L.Positions(4, 3, seed=0, dtype="float16"),
        ValueError,
        ["dtype is 'float16'", "'float32', 'float64'"],
    ),
    (
        "unknown positions",
        lambda: L.Positions(4, 3, "rotary", seed=0),
        ValueError,
        ["positions is 'rotary'", "'sinusoidal', 'learned'"],
    ),
    (
        "a sequence longer than the positions",
        lambda: L.Positions(4, 3, seed=0)(f32(1, 5, 3)),
        ValueError,
        ["x has length 5", "at most max_len = 4", "Cut the sequence"],
    ),
    (
        "an epsilon below 0",
        lambda: L.LayerNorm(4, eps=-1e-5),
        ValueError,
        ["eps is -1e-05", "above 0"],
    ),
    (
        "an unknown ffn",
        lambda: L.PositionwiseFeedForward(4, 4, ffn="dense", seed=0),
        ValueError,
        ["ffn is 'dense'", "'linear', 'conv1d'"],
    ),
    (
        "an unknown activation",
        lambda: L.PositionwiseFeedForward(4, 4, "swish", seed=0),
        ValueError,
        ["activation is 'swish'", "'relu', 'gelu', 'gelu_tanh', 'tanh'"],
    ),
    (
        "a list of layers",
        lambda: L.Sequential([L.Tanh(), L.Tanh()]),
        TypeError,
        ["item 0", "is a list", "expected a Layer", "Sequential(a, b, c)"],
    ),
    (
        "time-distributed without time",
        lambda: L.TimeDistributed(L.Linear(4, 3, seed=0))(f32(4)),
        ValueError,
        ["x has shape (4,)", "expected (batch, length, ...)"],
    ),
    (
        "dropout without a generator",
        lambda: L.Dropout(0.5).forward(f32(3), nf.Context(training=True)),
        ValueError,
        ["needs a random generator", "got none", "default_rng(0)", "seed=0"],
    ),
    ("a rate of 150 %", lambda: L.Dropout(1.5), ValueError, ["rate is 1.5", "from 0 up to"]),
    (
        "two dtypes in one model",
        lambda: L.Sequential(
            L.Linear(2, 2, seed=0), L.Linear(2, 2, seed=0, dtype="float64")
        ).flatten(),
        TypeError,
        ["chain.0.weight has dtype float32", "chain.1.weight has dtype float64", "one dtype"],
    ),
    (
        "flatten: a mask of ones and zeros",
        lambda: L.Flatten()(f32(2, 4, 3), ONES),
        TypeError,
        ["mask has dtype int64", "True means keep"],
    ),
    (
        "flatten: a mask of another length",
        lambda: L.Flatten()(f32(2, 4, 3), keep(2, 5)),
        ValueError,
        ["mask has shape (2, 5)", "expected (2, 4)"],
    ),
    (
        "gradients of another layer",
        gradients_of_another_layer,
        KeyError,
        ["made for another layer", "Gradients(layer)", "the model around it"],
    ),
]

MIXERS = [
    (
        "heads that do not divide d_model",
        lambda: Attention(8, 3, seed=0),
        ValueError,
        ["n_heads is 3 and d_model is 8", "These do: 1, 2, 4, 8"],
    ),
    (
        "no heads",
        lambda: Attention(8, 0, seed=0),
        ValueError,
        ["n_heads is 0", "whole number of at least 1"],
    ),
    (
        "synthesizer heads that do not divide d_model",
        lambda: DenseSynthesizer(8, 3, seed=0),
        ValueError,
        ["n_heads is 3 and d_model is 8", "These do: 1, 2, 4, 8"],
    ),
    (
        "attention without a batch",
        lambda: Attention(4, 2, seed=0)(f32(3, 4)),
        ValueError,
        ["x has shape (3, 4)", "expected (batch, length, d_model)"],
    ),
    (
        "fast attention without a batch",
        lambda: nf.fast(Attention(4, 2, seed=0))(f32(3, 4)),
        ValueError,
        ["x has shape (3, 4)", "expected (batch, length, 4)"],
    ),
    (
        "a padding mask of ones and zeros",
        lambda: Attention(4, 2, seed=0)(f32(2, 4, 4), ONES),
        TypeError,
        ["mask has dtype int64", "True means keep"],
    ),
    (
        "a sequence longer than the synthesizer",
        lambda: DenseSynthesizer(4, 2, 5, seed=0)(f32(1, 6, 4)),
        ValueError,
        ["x has length 6", "at most 5", "larger max_len"],
    ),
    (
        "fourier: a padding mask",
        lambda: Fourier()(f32(2, 3, 4), keep(2, 3)),
        ValueError,
        ["'fourier' got a padding mask", "Two ways out", "'per_length'", "'zero'"],
    ),
    (
        "fourier: a third way",
        lambda: Fourier("skip"),
        ValueError,
        ["padding is 'skip'", "'refuse', 'per_length', 'zero'"],
    ),
    (
        "fourier: padding in the middle",
        lambda: Fourier("per_length")(f32(1, 3, 4), np.array([[True, False, True]])),
        ValueError,
        ["after padding in row 0", "padding at the end", "Move the padding behind"],
    ),
    (
        "fourier: causal",
        lambda: encoder(mixer="fourier", causal=True),
        ValueError,
        ["causal=True with mixer 'fourier'", "sees all of a sequence at once", "Use 'attention'"],
    ),
    (
        "linear mixing: causal",
        lambda: encoder(mixer="linear", causal=True),
        ValueError,
        ["causal=True with mixer 'linear'", "sees all of a sequence at once", "Use 'attention'"],
    ),
    (
        "random mixing: a padding mask",
        lambda: encoder(mixer="random")(f32(2, 3, 8), keep(2, 3)),
        ValueError,
        ["'random' got a padding mask", "Two ways out", "'per_length'", "'zero'"],
    ),
    (
        "linear mixing of no tokens",
        lambda: LinearMixing(8, 0, seed=0),
        ValueError,
        ["max_len is 0", "whole number of at least 1"],
    ),
    (
        "a sequence longer than a table",
        lambda: RandomSynthesizer(4, 2, 5, seed=0)(f32(1, 6, 4)),
        ValueError,
        ["length 6", "at most 5", "larger max_len"],
    ),
    (
        "random heads that do not divide d_model",
        lambda: RandomSynthesizer(8, 3, seed=0),
        ValueError,
        ["n_heads is 3 and d_model is 8", "These do: 1, 2, 4, 8"],
    ),
    (
        "a table of rank 0",
        lambda: FactorizedRandomScores(1, 8, 0, seed=0),
        ValueError,
        ["rank is 0", "whole number of at least 1"],
    ),
    (
        "a mixture of one",
        lambda: MixtureScores(AttentionScores(8, 2, seed=0)),
        ValueError,
        ["got 1 parts", "at least 2"],
    ),
    (
        "memory of a third kind",
        lambda: nf.EncoderConfig(memory="flash"),
        ValueError,
        ["memory is 'flash'", "'auto', 'stored', 'blocks'"],
    ),
    (
        "attention with a memory of a third kind",
        lambda: Attention(8, 2, memory="flash", seed=0),
        ValueError,
        ["memory is 'flash'", "'auto', 'stored'"],
    ),
    (
        "attention in blocks with a memory of a third kind",
        lambda: BlockwiseAttention(8, 2, memory="flash", seed=0),
        ValueError,
        ["memory is 'flash'", "'blocks', 'auto'"],
    ),
    (
        "attention that is asked for blocks",
        lambda: Attention(8, 2, memory="blocks", seed=0),
        ValueError,
        ["memory is 'blocks'", "'auto' or 'stored'", "BlockwiseAttention"],
    ),
    (
        "a hybrid with more attention than layers",
        lambda: hybrid(4, 5),
        ValueError,
        ["n_attention is 5", "from 0 to n_layers, which is 4"],
    ),
    (
        "a hybrid with half a layer of attention",
        lambda: hybrid(4, 0.5),
        ValueError,
        ["n_attention is 0.5", "whole number from 0"],
    ),
    (
        "a hybrid with attention, yes",
        lambda: hybrid(4, True),
        ValueError,
        ["n_attention is True", "whole number from 0"],
    ),
    (
        "a hybrid of a fifth layout",
        lambda: hybrid(4, 2, "sides"),
        ValueError,
        ["layout is 'sides'", "'bottom', 'middle', 'mixed', 'top'"],
    ),
    (
        "a hybrid of an unknown mixer",
        lambda: config(mixer=hybrid(2, 1, mixer="fnet")),
        ValueError,
        ["mixer is 'fnet'", "expected one of", "'attention'", "'fourier'"],
    ),
    (
        "settings without features",
        lambda: MixerSettings(d_model=0),
        ValueError,
        ["d_model is 0", "at least 1"],
    ),
]

ENCODERS = [
    (
        "an unknown mixer",
        lambda: config(mixer="fnet"),
        ValueError,
        ["mixer is 'fnet'", "expected one of", "'attention'", "'fourier'"],
    ),
    (
        "a mixer that is a number",
        lambda: config(mixer=5),
        TypeError,
        ["mixer is 5", "a name", "each layer"],
    ),
    (
        "an unknown mixer of a block",
        lambda: nf.EncoderBlock(config(), "fnet", seed=0),
        ValueError,
        ["mixer is 'fnet'", "expected one of"],
    ),
    (
        "too few mixers",
        lambda: config(mixer=["fourier"]),
        ValueError,
        ["has 1 names", "n_layers = 2"],
    ),
    (
        "shared layers with two mixers",
        lambda: config(mixer=("fourier", "attention"), share_layers=True),
        ValueError,
        ["share_layers=True", "fourier, attention", "one mixer"],
    ),
    (
        "an unknown activation of a model",
        lambda: config(activation="swish"),
        ValueError,
        ["activation is 'swish'", "'gelu'"],
    ),
    ("an unknown norm", lambda: config(norm="rms"), ValueError, ["norm is 'rms'", "'post', 'pre'"]),
    (
        "an unknown ffn of a model",
        lambda: config(ffn="dense"),
        ValueError,
        ["ffn is 'dense'", "'linear', 'conv1d'"],
    ),
    (
        "unknown positions of a model",
        lambda: config(positions="rotary"),
        ValueError,
        ["positions is 'rotary'", "'sinusoidal', 'learned', 'none'"],
    ),
    (
        "unknown padding of a model",
        lambda: config(padding="skip"),
        ValueError,
        ["padding is 'skip'", "'per_length'"],
    ),
    ("dropout of everything", lambda: config(dropout=1.0), ValueError, ["dropout is 1.0"]),
    (
        "unknown memory of a model",
        lambda: config(memory="disk"),
        ValueError,
        ["memory is 'disk'", "'auto', 'stored', 'blocks'"],
    ),
    ("a rank of 0", lambda: config(rank=0), ValueError, ["rank is 0", "at least 1"]),
    ("a rank of 2.5", lambda: config(rank=2.5), ValueError, ["rank is 2.5", "whole number"]),
    (
        "a mixture that is a name",
        lambda: config(mixture="attention"),
        ValueError,
        ["mixture is 'attention'", "at least two names", "('attention', 'random_synthesizer')"],
    ),
    (
        "a mixture of one name",
        lambda: config(mixture=["attention"]),
        ValueError,
        ["mixture is ['attention']", "at least two names"],
    ),
    (
        "a mixture that is a number",
        lambda: config(mixture=2),
        ValueError,
        ["mixture is 2", "at least two names"],
    ),
    (
        "a mixture with a mixer that has no scores",
        lambda: config(mixture=["attention", "fourier"]),
        ValueError,
        ["mixture is 'fourier'", "expected one of", "'dense_synthesizer'"],
    ),
    (
        "a mixture with heads that do not divide a model",
        lambda: config(mixer="mixture", n_heads=3),
        ValueError,
        ["n_heads is 3 and d_model is 8", "These do: 1, 2, 4, 8"],
    ),
    (
        "heads that do not divide a model",
        lambda: config(n_heads=3),
        ValueError,
        ["n_heads is 3 and d_model is 8", "These do: 1, 2, 4, 8"],
    ),
    (
        "a size that is a float",
        lambda: config(d_model=8.0),
        ValueError,
        ["d_model is 8.0", "whole number"],
    ),
    (
        "a word for yes or no",
        lambda: config(causal="no"),
        TypeError,
        ["causal is 'no'", "True or False"],
    ),
    (
        "a key of a newer version",
        lambda: nf.EncoderConfig.from_dict({"d_model": 8, "colour": "red"}),
        ValueError,
        ["colour", "does not know", "Update npformer"],
    ),
    (
        "a dict instead of a configuration",
        lambda: nf.Encoder({"d_model": 8}),
        TypeError,
        ["config is a dict", "expected an EncoderConfig"],
    ),
    (
        "an encoder without a seed",
        lambda: nf.Encoder(config(), seed=None),
        TypeError,
        ["seed is None"],
    ),
    (
        "an encoder of unknown dtype",
        lambda: nf.Encoder(config(), dtype="half"),
        ValueError,
        ["dtype is 'half'", "'float32', 'float64'"],
    ),
    (
        "features that do not fit the encoder",
        lambda: encoder()(f32(2, 4, 7)),
        ValueError,
        ["x has shape (2, 4, 7)", "expected (batch, length, 8)", "last axis"],
    ),
    (
        "a single sequence for an encoder",
        lambda: encoder()(f32(4, 8)),
        ValueError,
        ["x has shape (4, 8)", "expected (batch, length, 8)"],
    ),
    (
        "a sequence longer than the encoder",
        lambda: encoder()(f32(2, 7, 8)),
        ValueError,
        ["x has length 7", "at most max_len = 6", "Cut the sequence"],
    ),
    (
        "whole numbers for an encoder",
        lambda: encoder()(np.ones((2, 4, 8), dtype=int)),
        TypeError,
        ["x has dtype int64", "expected float32 or float64"],
    ),
    (
        "float64 for a float32 encoder",
        lambda: encoder()(f64(2, 4, 8)),
        TypeError,
        ["x has dtype float64", "expected one dtype", "x.astype('float32')"],
    ),
    (
        "a mask of another length for an encoder",
        lambda: encoder()(f32(2, 4, 8), keep(2, 3)),
        ValueError,
        ["mask has shape (2, 3)", "expected (2, 4)"],
    ),
]

CLASSIFIERS = [
    (
        "a single class",
        lambda: tokens(n_classes=1),
        ValueError,
        ["n_classes is 1", "at least 2"],
    ),
    (
        "neither tokens nor features",
        lambda: nf.SequenceClassifier(config(), 3),
        ValueError,
        ["vocab_size is None and n_features is None", "exactly one"],
    ),
    (
        "both tokens and features",
        lambda: nf.SequenceClassifier(config(), 3, vocab_size=5, n_features=2),
        ValueError,
        ["vocab_size is 5 and n_features is 2", "exactly one"],
    ),
    (
        "an unknown pooling",
        lambda: tokens(pooling="max"),
        ValueError,
        ["pooling is 'max'", "'mean', 'first', 'flatten', 'none'"],
    ),
    (
        "an unknown output",
        lambda: tokens(output="linear"),
        ValueError,
        ["output is 'linear'", "'softmax', 'sigmoid'"],
    ),
    (
        "one logit for three classes",
        lambda: tokens(output="sigmoid"),
        ValueError,
        ["n_classes is 3", "expected 2 classes", "output='softmax'"],
    ),
    ("a model without a seed", lambda: tokens(seed=None), TypeError, ["seed is None"]),
    (
        "no vocabulary",
        lambda: tokens(vocab_size=0),
        ValueError,
        ["vocab_size is 0", "at least 1"],
    ),
    (
        "ids in a list",
        lambda: tokens()([[1, 2]]),
        TypeError,
        ["x is a list", "expected an array", "'int64' for token ids"],
    ),
    (
        "ids in a list to predict",
        lambda: tokens().predict([[1, 2]]),
        TypeError,
        ["x is a list", "expected an array"],
    ),
    (
        "ids that are floats",
        lambda: tokens()(f32(2, 4)),
        TypeError,
        ["x has dtype float32", "expected whole numbers", "x.astype('int64')"],
    ),
    (
        "an id out of the vocabulary",
        lambda: tokens()(np.full((2, 4), 7)),
        ValueError,
        ["x holds 7", "from 0 to 6", "vocab_size"],
    ),
    (
        "padding ids of -1",
        lambda: tokens()(np.full((2, 4), -1)),
        ValueError,
        ["x holds -1", "from 0 to 6"],
    ),
    (
        "ids with a third axis",
        lambda: tokens()(np.ones((2, 4, 1), dtype=int)),
        ValueError,
        ["x has shape (2, 4, 1)", "expected (batch, length)", "token ids"],
    ),
    (
        "a sequence longer than the model",
        lambda: tokens()(np.ones((2, 7), dtype=int)),
        ValueError,
        ["x has length 7", "max_len = 6", "larger max_len"],
    ),
    (
        "too few features",
        lambda: vectors()(f32(2, 4, 2)),
        ValueError,
        ["x has shape (2, 4, 2)", "expected (batch, length, 3)", "feature vectors"],
    ),
    (
        "float64 for a float32 model",
        lambda: vectors()(f64(2, 4, 3)),
        TypeError,
        ["x has dtype float64 and the model float32", "x.astype('float32')", "dtype='float64'"],
    ),
    (
        "ids for a model of features",
        lambda: vectors()(np.ones((2, 4, 3), dtype=int)),
        TypeError,
        ["x has dtype int64", "expected float32 or float64"],
    ),
    (
        "short sequences side by side",
        lambda: tokens(pooling="flatten")(IDS),
        ValueError,
        ["x has length 4", "max_len = 6", "pooling='flatten'", "pooling='mean'"],
    ),
    (
        "a mask that is a list",
        lambda: tokens()(IDS, [[True] * 4] * 2),
        TypeError,
        ["mask is a list", "expected an array", "'bool' for a mask"],
    ),
    (
        "a mask of ones and zeros",
        lambda: tokens()(IDS, ONES),
        TypeError,
        ["mask has dtype int64", "True means keep", "mask != 0"],
    ),
    (
        "a transposed mask",
        lambda: tokens()(IDS, keep(4, 2)),
        ValueError,
        ["mask has shape (4, 2)", "expected (2, 4)", "each token"],
    ),
    (
        "a mask for a model that mixes padding",
        lambda: tokens(mixer="fourier")(IDS, keep(2, 4)),
        ValueError,
        ["padding mask", "padding='per_length'", "padding='zero'", "EncoderConfig"],
    ),
    (
        "labels in a list",
        lambda: step(y=[0, 1]),
        TypeError,
        ["y is a list", "expected an array", "'int64' for token ids and labels"],
    ),
    (
        "labels that are floats",
        lambda: step(y=f32(2)),
        TypeError,
        ["y has dtype float32", "expected whole numbers", "y.astype('int64')"],
    ),
    (
        "a label too high",
        lambda: step(y=np.array([0, 3])),
        ValueError,
        ["y holds 3", "from 0 to 2", "classes"],
    ),
    (
        "a sequence without a label",
        lambda: step(y=np.array([0, -1])),
        ValueError,
        ["y holds -1", "from 0 to 2"],
    ),
    (
        "too few labels",
        lambda: step(y=np.array([0])),
        ValueError,
        ["y has shape (1,)", "expected (2,)", "One label for each sequence"],
    ),
    (
        "a label a sequence without pooling",
        lambda: step(model=tokens(pooling="none")),
        ValueError,
        ["y has shape (2,)", "expected (2, 4)", "each token without pooling"],
    ),
    (
        "an empty batch",
        lambda: step(x=IDS[:0], y=LABELS[:0]),
        ValueError,
        ["x has no samples", "at least 1"],
    ),
    (
        "dropout without a seed",
        lambda: step(model=tokens(dropout=0.1)),
        ValueError,
        ["needs a random generator", "got none", "loss_and_gradients(..., seed=0)"],
    ),
    (
        "a seed that is a word",
        lambda: step(seed="zero"),
        TypeError,
        ["seed is 'zero'", "whole number from 0"],
    ),
    (
        "no workers",
        lambda: step(workers=0),
        ValueError,
        ["workers is 0", "at least 1", "'auto'"],
    ),
    (
        "workers in a word",
        lambda: step(workers="all"),
        ValueError,
        ["workers is 'all'", "at least 1", "'auto'"],
    ),
    (
        "labels smoothed away",
        lambda: step(label_smoothing=1.0),
        ValueError,
        ["label_smoothing is 1.0", "from 0 up to"],
    ),
    (
        "labels of one logit smoothed away",
        lambda: step(model=tokens(n_classes=2, output="sigmoid"), label_smoothing=1.0),
        ValueError,
        ["label_smoothing is 1.0", "from 0 up to"],
    ),
    (
        "batches of nothing",
        lambda: tokens().predict(IDS, batch_size=0),
        ValueError,
        ["batch_size is 0", "at least 1"],
    ),
    (
        "an unknown backend",
        lambda: tokens().to("gpu"),
        ValueError,
        ["unknown backend 'gpu'", "numpy, cupy"],
    ),
    (
        "moving a part of a model",
        lambda: (model := tokens()).encoder.to("numpy") and model,
        ValueError,
        ["this Encoder is part of a model", "shares one buffer", "model.to('numpy')"],
    ),
    (
        "moving a layer of a model",
        lambda: (model := tokens()).classify.to("numpy") and model,
        ValueError,
        ["this Linear is part of a model", "move the whole model"],
    ),
]

TOOLS = [
    (
        "Adam of a model",
        lambda: nf.Adam(tokens()),
        TypeError,
        ["parameters is a SequenceClassifier", "mapping", "Adam(model.parameters())"],
    ),
    (
        "Adam of a list",
        lambda: nf.Adam([f64(3)]),
        TypeError,
        ["parameters is a list", "mapping", "Adam(model.parameters())"],
    ),
    ("Adam of nothing", lambda: nf.Adam({}), ValueError, ["parameters is empty", "at least one"]),
    ("a learning rate of 0", lambda: adam(lr=0.0), ValueError, ["lr is 0.0", "above 0"]),
    ("a learning rate of NaN", lambda: adam(lr=np.nan), ValueError, ["lr is nan", "above 0"]),
    ("an epsilon of 0", lambda: adam(eps=0.0), ValueError, ["eps is 0.0", "above 0"]),
    (
        "a beta of 1",
        lambda: adam(betas=(0.9, 1.0)),
        ValueError,
        ["betas is 1.0", "not including, 1"],
    ),
    (
        "a weight decay below 0",
        lambda: adam(weight_decay=-1.0),
        ValueError,
        ["weight_decay is -1.0", "0 or more"],
    ),
    (
        "a weight decay of NaN",
        lambda: adam(weight_decay=np.nan),
        ValueError,
        ["weight_decay is nan", "0 or more"],
    ),
    (
        "a step without a gradient",
        lambda: adam().step({}),
        KeyError,
        ["no gradient for w", "expected one gradient for each", "from one model"],
    ),
    (
        "a step with a gradient of another shape",
        lambda: adam().step({"w": f64(2)}),
        ValueError,
        ["the gradient of w has shape (2,)", "expected (3,)"],
    ),
    (
        "clipping to 0",
        lambda: nf.clip_by_global_norm({"w": f64(3)}, 0.0),
        ValueError,
        ["max_norm is 0.0", "above 0"],
    ),
    (
        "a warm-up of no steps",
        lambda: optim.warmup_inverse_sqrt(0),
        ValueError,
        ["warmup is 0", "at least 1"],
    ),
    (
        "nothing but warm-up",
        lambda: optim.cosine(total=10, warmup=10),
        ValueError,
        ["warmup is 10", "not including, 10"],
    ),
    (
        "gradcheck by an argument that is not there",
        lambda: gradcheck(F.linear, f64(2, 3), f64(3, 4), wrt=["weights"]),
        ValueError,
        ["wrt names 'weights'", "expected some of x, W"],
    ),
    (
        "gradcheck of a lone function",
        lambda: gradcheck(F.merge_heads, f64(1, 2, 3, 4)),
        TypeError,
        ["merge_heads has no merge_heads_backward", "expected a pair", "(forward, backward)"],
    ),
    (
        "an array on an unknown backend",
        lambda: nf.asarray([1.0], backend="torch"),
        ValueError,
        ["unknown backend 'torch'", "numpy, cupy"],
    ),
]

ROWS = [*FUNCTIONS, *LAYERS, *MIXERS, *ENCODERS, *CLASSIFIERS, *TOOLS]


@pytest.mark.parametrize(("label", "call", "error", "words"), ROWS, ids=[row[0] for row in ROWS])
def test_a_wrong_call_is_refused_in_words_that_help(label, call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert caught.type is error, "a subclass is another error"
    message = str(caught.value)
    for word in words:
        assert word in message


def test_every_row_has_a_label_of_its_own():
    assert len({row[0] for row in ROWS}) == len(ROWS)


def test_a_refused_batch_leaves_the_model_as_it_was():
    model = tokens()
    before = model.parameters().flat.copy()
    for y in (np.array([0, 3]), np.array([0.5, 1.0]), np.array([0])):
        with pytest.raises((TypeError, ValueError)):
            step(y=y, model=model)
    np.testing.assert_array_equal(model.parameters().flat, before)


def test_a_refused_step_of_the_optimizer_leaves_the_parameters_as_they_were():
    parameters = {"a": f64(3), "b": f64(3)}
    with pytest.raises(ValueError, match="the gradient of b has shape"):
        nf.Adam(parameters).step({"a": f64(3), "b": f64(2)})
    np.testing.assert_array_equal(parameters["a"], 1.0)
