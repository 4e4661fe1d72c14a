"""Wrong calls, and the words that refuse them: what came, what was expected, what to do."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import npformer as nf
from npformer import data, mixers, optim
from npformer import functional as F
from npformer import layers as L
from npformer.proof.gradcheck import gradcheck

IDS = np.ones((2, 4), dtype=int)
LABELS = np.array([0, 1])
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


def maps(columns):
    """Return W1, b1, W2 and b2 of a dense synthesizer of 4 features."""
    return f32(4, 4), f32(4), f32(4, columns), f32(columns)


def adam(**options):
    return nf.Adam({"w": f64(3)}, **options)


def gradients_of_another_layer():
    layer, other = (L.Linear(2, 2, seed=0) for _ in range(2))
    _, cache = layer.forward(f32(1, 2), nf.Context())
    layer.backward(f32(1, 2), cache, nf.Gradients(other))


class Wrong(NamedTuple):
    """A wrong call, and what its error says: ``...`` stands for anything between."""

    call: Callable[[], object]
    message: str


WRONG = [
    # npformer.functional --------------------------------------------------------------------------
    Wrong(
        lambda: F.linear([[1.0, 2.0]], f32(2, 3)),  # a list instead of an array
        "TypeError: x is a list; expected an array ... numpy.asarray(x ... 'float32'",
    ),
    Wrong(
        lambda: F.linear(f32(2, 4), f32(4, 5), 0.0),
        "TypeError: b is a float; expected an array",
    ),
    Wrong(
        lambda: F.linear(ONES, f32(4, 5)),  # whole numbers as features
        "TypeError: x has dtype int64; expected float32 or float64 ... x.astype('float32')",
    ),
    Wrong(
        lambda: F.linear(f32(2, 4), f64(4, 5)),  # float32 beside float64
        "TypeError: x has dtype float32 and W has dtype float64 ... one dtype ... "
        "x.astype('float64')",
    ),
    Wrong(
        lambda: F.linear(f32(2, 3), f32(4, 5)),  # features that do not fit
        "ValueError: x has shape (2, 3); expected (..., 4) ... the first of W",
    ),
    Wrong(
        lambda: F.linear(f32(2, 4), f32(1, 4, 5)),  # W with a kernel
        "ValueError: W has shape (1, 4, 5); expected (d_in, d_out)",
    ),
    Wrong(
        lambda: F.linear(f32(2, 4), f32(4, 5), f32(4)),  # bias of the wrong end
        "ValueError: b has shape (4,); expected (5,) ... each column of W",
    ),
    Wrong(
        lambda: F.conv1d(f32(4, 3), f32(3, 3, 2)),  # no batch
        "ValueError: x has shape (4, 3); expected (batch, length, 3) ... last axis",
    ),
    Wrong(
        lambda: F.conv1d(f32(1, 3, 4), f32(3, 3, 2)),  # channels first
        "ValueError: x has shape (1, 3, 4); expected (batch, length, 3). Channels are the last "
        "axis",
    ),
    Wrong(
        lambda: F.conv1d(f32(1, 4, 3), f32(3, 3, 2), padding="full"),
        "ValueError: padding is 'full' ... 'same', 'valid'",
    ),
    Wrong(
        lambda: F.conv1d(f32(1, 2, 3), f32(3, 3, 2), padding="valid"),  # kernel longer than x
        "ValueError: ... length 2 ... size 3 ... padding='same'",
    ),
    Wrong(
        lambda: F.gelu(f32(3), approximate=True),
        "ValueError: approximate is True ... 'none', 'tanh'",
    ),
    Wrong(
        lambda: F.layer_norm(f32(2, 4), f32(3), f32(4)),  # gamma of another size
        "ValueError: gamma has shape (3,); expected (4,) ... each feature",
    ),
    Wrong(
        lambda: L.GELU("fast"),  # refused when it is made, not when it is called
        "ValueError: approximate is 'fast'; expected one of 'none', 'tanh'",
    ),
    Wrong(
        lambda: F.layer_norm(f32(2, 4), f32(4), f32(1)),  # a beta that would broadcast
        "ValueError: beta has shape (1,); expected (4,) ... each feature",
    ),
    Wrong(
        lambda: F.layer_norm(f32(2, 4), f32(1), f32(4)),  # a gamma that would broadcast
        "ValueError: gamma has shape (1,); expected (4,) ... each feature",
    ),
    Wrong(lambda: F.linear(None, f32(4, 5)), "TypeError: x is None; expected an array"),
    Wrong(
        lambda: F.relu(np.ma.masked_array(f32(3))),
        "TypeError: x is a masked array; expected a plain one ... x.filled(0)",
    ),
    Wrong(
        # dy of another batch
        lambda: F.linear_backward(f32(3, 5), F.linear(f32(2, 4), f32(4, 5))[1]),
        "ValueError: dy has shape (3, 5); expected (2, 5) ... what the forward pass returned",
    ),
    Wrong(
        lambda: F.tanh_backward(f32(4), F.tanh(f32(2, 4))[1]),  # dy that would broadcast
        "ValueError: dy has shape (4,); expected (2, 4) ... what the forward pass returned",
    ),
    Wrong(
        lambda: F.softmax(f32(2, 4), mask=ONES),  # a mask of ones and zeros
        "TypeError: mask has dtype int64 ... boolean ... True means keep ... mask = mask != 0",
    ),
    Wrong(
        lambda: F.attention_scores(f32(2, 3, 4), f32(2, 3, 5)),  # keys of another size
        "ValueError: key has shape (2, 3, 5); expected (2, key_length, 4). Only lengths may differ",
    ),
    Wrong(
        lambda: F.scaled_dot_product_attention(f32(2, 3, 4), f32(2, 3, 4), f32(2, 4, 4)),
        "ValueError: value has shape (2, 4, 4); expected (2, 3, d_value). One value for each key",
    ),
    Wrong(
        lambda: F.scaled_dot_product_attention(*[f32(2, 2, 3, 4)] * 3, mask=keep(2, 3)),
        "ValueError: mask has shape (2, 3) ... the scores, (2, 2, 3, 3) ... mask[:, None, None, :]",
    ),
    Wrong(
        lambda: F.scaled_dot_product_attention(*[f32(1, 3, 4)] * 3, mask=keep(2, 1, 3)),
        "ValueError: mask has shape (2, 1, 3) ... the scores, (1, 3, 3)",
    ),
    Wrong(
        lambda: F.blockwise_attention(*[f32(2, 5, 4)] * 3, mask=keep(6, 5), block=2),
        "ValueError: mask has shape (6, 5) ... the scores, (2, 5, 5)",
    ),
    Wrong(
        lambda: F.blockwise_attention(*[f32(2, 2, 3, 4)] * 3, mask=keep(2, 3)),
        "ValueError: mask has shape (2, 3) ... the scores, (2, 2, 3, 3) ... mask[:, None, None, :]",
    ),
    Wrong(
        # keys of another size
        lambda: F.blockwise_attention(f32(2, 3, 4), f32(2, 3, 5), f32(2, 3, 4)),
        "ValueError: key has shape (2, 3, 5) ... key_length, 4)",
    ),
    Wrong(
        lambda: F.blockwise_attention(f32(2, 3, 4), f32(2, 3, 4), f32(2, 4, 4)),
        "ValueError: value has shape (2, 4, 4); expected (2, 3, d_value). One value for each key",
    ),
    Wrong(
        lambda: F.blockwise_attention(*[f32(2, 3, 4)] * 3, block=0),
        "ValueError: block is 0 ... whole number of at least 1",
    ),
    Wrong(
        lambda: F.average(f32(2, 3, 4), f32(2, 5, 6)),  # more values than columns
        "ValueError: value has shape (2, 5, 6); expected (..., 4, d_value) ... each column of "
        "scores",
    ),
    Wrong(
        lambda: F.average(f32(3, 4, 4), f32(5, 2, 4, 6)),  # scores of other heads
        "ValueError: scores has shape (3, 4, 4) and value has shape (5, 2, 4, 6) ... the same axes",
    ),
    Wrong(
        lambda: F.average(f32(4), f32(4, 6)),  # a single axis of scores
        "ValueError: scores has shape (4,); expected (..., query_length, key_length)",
    ),
    Wrong(
        lambda: F.average(f32(4, 4), f32(5, 4, 6), keep(3, 1, 4)),  # a mask of another batch
        "ValueError: mask has shape (3, 1, 4) ... the scores, (5, 4, 4)",
    ),
    Wrong(
        lambda: F.averaging_weights(f32(2, 4, 4), keep(5, 1, 1, 3)),  # a mask of another length
        "ValueError: mask has shape (5, 1, 1, 3) ... the scores, (5, 2, 4, 4)",
    ),
    Wrong(
        lambda: F.split_heads(f32(2, 3, 4), 3),  # heads that do not divide the features
        "ValueError: ... 4 features and n_heads is 3 ... divide",
    ),
    Wrong(
        lambda: F.split_heads(f32(3, 4), 2),  # heads of an array without a batch
        "ValueError: x has shape (3, 4); expected (batch, length, d_model)",
    ),
    Wrong(
        lambda: F.dense_synthesizer(f32(1, 6, 4), f32(1, 6, 2), *maps(5)),  # longer than max_len
        "ValueError: x has length 6 ... at most 5 ... larger max_len",
    ),
    Wrong(
        lambda: F.dense_scores(f32(1, 5, 4), f32(4, 5), f32(5), f32(2, 2, 5), f32(2, 5), 5),
        "ValueError: ... 5 features and n_heads is 2 ... divide",
    ),
    Wrong(
        lambda: F.dense_scores(f32(5, 4), f32(4, 4), f32(4), f32(2, 2, 5), f32(2, 5), 5),
        "ValueError: x has shape (5, 4); expected (batch, length, d_model) ... needs a batch",
    ),
    Wrong(
        # values for other tokens
        lambda: F.dense_synthesizer(f32(1, 5, 4), f32(1, 4, 2), *maps(5)),
        "ValueError: value has shape (1, 4, 2); expected (1, 5, d_value) ... each token",
    ),
    Wrong(
        lambda: F.dense_scores(f32(1, 5, 4), *maps(5), 6),  # more columns than there are
        "ValueError: ... length 6 ... at most 5 ... larger max_len",
    ),
    Wrong(
        lambda: F.dense_scores(f32(1, 5, 4), f32(4, 4), f32(4), f32(4, 5), f32(4), 5),
        "ValueError: b2 has shape (4,); expected (5,) ... each column of W2",
    ),
    Wrong(
        lambda: F.factorized_dense_synthesizer(f32(1, 7, 4), f32(1, 7, 2), *maps(3), *maps(2)),
        "ValueError: x has length 7 ... at most 6 ... W2's 3 and V2's 2 ... larger max_len",
    ),
    Wrong(
        lambda: F.factorized_dense_synthesizer(f32(1, 5, 4), f32(1, 4, 2), *maps(3), *maps(2)),
        "ValueError: value has shape (1, 4, 2); expected (1, 5, d_value) ... each token",
    ),
    Wrong(
        lambda: F.random_synthesizer(f32(1, 6, 4), f32(5, 5)),  # longer than its table
        "ValueError: ... length 6 ... at most 5 ... larger max_len",
    ),
    Wrong(
        lambda: F.random_synthesizer(f32(1, 4, 4), f32(5, 6)),  # a table that is not square
        "ValueError: R has shape (5, 6); expected (..., 6, 6) ... square",
    ),
    Wrong(
        lambda: F.random_synthesizer(f32(5, 2, 4, 3), f32(3, 4, 4)),  # tables of other heads
        "ValueError: scores has shape (3, 4, 4) and value has shape (5, 2, 4, 3) ... the same axes",
    ),
    Wrong(
        lambda: F.random_synthesizer(f32(1, 4, 4), ONES[:, :2]),  # a table of whole numbers
        "TypeError: ... R has dtype int64; expected one dtype",
    ),
    Wrong(
        lambda: F.random_scores(f32(4, 4), -1),
        "ValueError: length is -1; expected a whole number of at least 0",
    ),
    Wrong(
        lambda: F.factorized_random_synthesizer(f32(1, 4, 4), f32(5, 2), f32(5, 3)),
        "ValueError: R2 has shape (5, 3); expected (5, 2) ... same shape",
    ),
    Wrong(
        lambda: F.factorized_random_synthesizer(f32(1, 6, 4), f32(5, 2), f32(5, 2)),
        "ValueError: ... length 6 ... at most 5 ... larger max_len",
    ),
    Wrong(
        lambda: F.mixture_scores(f32(2), f32(4, 4), f32(4, 4), f32(4, 4)),  # too few shares
        "ValueError: logits has shape (2,); expected (3,). One weight for each",
    ),
    Wrong(
        lambda: F.mixture_scores(f32(2), f32(5, 2, 4, 4), f32(3, 4, 4)),  # parts that do not fit
        "ValueError: scores[1] has shape (3, 4, 4) ... (5, 2, 4, 4) ... the same axes",
    ),
    Wrong(
        lambda: F.mixture_scores(f32(0)),  # of nothing
        "ValueError: ... no scores ... at least one part",
    ),
    Wrong(
        lambda: F.hartley_mixing(f32(4)),  # a single axis
        "ValueError: x has shape (4,); expected (..., length, d_model)",
    ),
    Wrong(
        lambda: F.linear_mixing(f32(4, 3), f32(4, 4), f32(3, 3)),  # without a batch
        "ValueError: x has shape (4, 3); expected (batch, length, d_model)",
    ),
    Wrong(
        lambda: F.linear_mixing(f32(2, 5, 3), f32(4, 4), f32(3, 3)),  # longer than its matrix
        "ValueError: x has length 5 ... at most 4 ... W_sequence ... larger max_len",
    ),
    Wrong(
        lambda: F.linear_mixing(f32(2, 4, 3), f32(4, 5), f32(3, 3)),  # a matrix that is not square
        "ValueError: W_sequence has shape (4, 5) ... square",
    ),
    Wrong(
        lambda: F.linear_mixing(f32(2, 4, 3), f32(4, 4), f32(3, 2)),  # fewer features out than in
        "ValueError: W_features has shape (3, 2); expected (3, 3) ... both sides",
    ),
    Wrong(
        lambda: F.fourier_mixing(f32(4)),  # a single axis
        "ValueError: x has shape (4,); expected (..., length, d_model)",
    ),
    Wrong(
        lambda: F.dropout(f32(3), 1.0),
        "ValueError: rate is 1.0 ... from 0 up to, not including, 1",
    ),
    Wrong(
        lambda: F.dropout(f32(3), 0.5, 0),  # a seed instead of a generator
        "TypeError: generator is an int ... numpy.random.Generator ... default_rng(seed)",
    ),
    Wrong(
        lambda: F.embedding(f32(2), f32(5, 3)),  # ids that are floats
        "TypeError: ids has dtype float32; expected whole numbers ... ids.astype('int64')",
    ),
    Wrong(
        lambda: F.embedding(keep(2), f32(5, 3)),  # ids that are a mask
        "TypeError: ids has dtype bool; expected whole numbers",
    ),
    Wrong(
        lambda: F.embedding(np.array([1]), f32(5)),  # a table with one axis
        "ValueError: table has shape (5,); expected (vocab_size, d_model)",
    ),
    Wrong(
        lambda: F.embedding(np.array([5]), f32(5, 3)),  # an id too high
        "ValueError: ids holds 5 ... from 0 to 4 ... rows",
    ),
    Wrong(
        lambda: F.embedding(np.array([-1]), f32(5, 3)),  # an id below 0
        "ValueError: ids holds -1 ... from 0 to 4",
    ),
    Wrong(
        lambda: F.mean_pooling(f32(2, 3, 4), keep(2, 4)),  # a mask of another length
        "ValueError: mask has shape (2, 4); expected (2, 3) ... each token",
    ),
    Wrong(
        lambda: F.mean_pooling(f32(3, 4)),  # a single sequence
        "ValueError: x has shape (3, 4); expected (batch, length, d_model)",
    ),
    Wrong(
        lambda: F.softmax_cross_entropy(f32(2, 3), np.eye(3, dtype=int)[:2]),  # one-hot labels
        "ValueError: labels has shape (2, 3); expected (2,). One label for each row",
    ),
    Wrong(
        lambda: F.softmax_cross_entropy(f32(2, 3), np.array([0, 3])),  # a label too high
        "ValueError: labels holds 3 ... from 0 to 2 ... 3 classes",
    ),
    Wrong(
        lambda: F.softmax_cross_entropy(f32(2, 3), np.array([0, -2])),  # a label below -1
        "ValueError: labels holds -2 ... -1: no label",
    ),
    Wrong(
        # too much smoothing
        lambda: F.softmax_cross_entropy(f32(2, 3), LABELS, label_smoothing=1.5),
        "ValueError: label_smoothing is 1.5 ... from 0 up to",
    ),
    Wrong(
        # shapes that would broadcast
        lambda: F.binary_cross_entropy_with_logits(f32(2, 1), f32(2)),
        "ValueError: targets has shape (2,); expected (2, 1)",
    ),
    Wrong(
        lambda: F.binary_cross_entropy_with_logits(f32(2), LABELS),  # whole targets
        "TypeError: ... targets has dtype int64 ... targets.astype('float32')",
    ),
    Wrong(
        lambda: F.mean_squared_error(f32(2, 1), f32(2)),  # shapes that would broadcast
        "ValueError: target has shape (2,); expected (2, 1) ... each prediction",
    ),
    # Layers ---------------------------------------------------------------------------------------
    Wrong(
        lambda: L.Linear(4, 3, seed=0)(f64(2, 4)),  # a float64 input for a float32 layer
        "TypeError: x has dtype float64 ... float32; expected one dtype ... x.astype('float32')",
    ),
    Wrong(
        lambda: L.Linear(4, 3, seed="one"),
        "TypeError: seed is 'one' ... whole number of at least 0 or a numpy.random.Generator",
    ),
    Wrong(lambda: L.Linear(4, 3, seed=-1), "TypeError: seed is -1 ... of at least 0"),
    Wrong(lambda: L.Linear(0, 3, seed=0), "ValueError: d_in is 0 ... whole number of at least 1"),
    Wrong(
        lambda: L.Positions(4, 3, seed=0)(f32(1, 5, 3)),  # a sequence longer than the positions
        "ValueError: x has length 5 ... at most max_len = 4. Truncate the sequence",
    ),
    Wrong(lambda: L.LayerNorm(4, eps=-1e-5), "ValueError: eps is -1e-05 ... above 0"),
    Wrong(
        lambda: L.PositionwiseFeedForward(4, 4, "swish", seed=0),
        "ValueError: activation is 'swish' ... 'relu', 'gelu', 'gelu_tanh', 'silu', 'tanh'",
    ),
    Wrong(
        lambda: L.Sequential([L.Tanh(), L.Tanh()]),
        "TypeError: item 0 ... is a list; expected a Layer ... Sequential(a, b, c)",
    ),
    Wrong(
        lambda: L.TimeDistributed(L.Linear(4, 3, seed=0))(f32(4)),  # time-distributed without time
        "ValueError: x has shape (4,); expected (batch, length, ...)",
    ),
    Wrong(
        lambda: L.Dropout(0.5).forward(f32(3), nf.Context(training=True)),
        "ValueError: ... needs a random generator ... got none ... seed=0 ... default_rng(0)",
    ),
    Wrong(lambda: L.Dropout(1.5), "ValueError: rate is 1.5 ... from 0 up to"),
    Wrong(
        lambda: L.Flatten()(f32(2, 4, 3), ONES),  # a mask of ones and zeros
        "TypeError: mask has dtype int64 ... True means keep",
    ),
    Wrong(
        lambda: L.Flatten()(f32(2, 4, 3), keep(2, 5)),  # a mask of another length
        "ValueError: mask has shape (2, 5); expected (2, 4)",
    ),
    Wrong(
        gradients_of_another_layer,
        "KeyError: ... made for another layer ... Gradients(layer) ... the model around it",
    ),
    # Mixers ---------------------------------------------------------------------------------------
    Wrong(
        lambda: mixers.Attention(8, 3, seed=0),  # heads that do not divide d_model
        "ValueError: n_heads is 3 and d_model is 8 ... These divide it: 1, 2, 4, 8",
    ),
    Wrong(
        lambda: mixers.Fourier("per_length")(f32(1, 3, 4), np.array([[True, False, True]])),
        "ValueError: ... after padding in row 0 ... padding at the end. Move the padding to",
    ),
    Wrong(
        lambda: encoder(mixer="fourier", causal=True),
        "ValueError: causal=True with mixer 'fourier' ... all of a sequence at once. Use "
        "'attention'",
    ),
    Wrong(
        lambda: mixers.LinearMixing(8, 0, seed=0),
        "ValueError: max_len is 0 ... whole number of at least 1",
    ),
    Wrong(
        # a sequence longer than a table
        lambda: mixers.RandomSynthesizer(4, 2, 5, seed=0)(f32(1, 6, 4)),
        "ValueError: ... length 6 ... at most 5 ... larger max_len",
    ),
    Wrong(
        lambda: mixers.FactorizedRandomScores(mixers.MixerSettings(8, rank=0), seed=0),
        "ValueError: rank is 0 ... whole number of at least 1",
    ),
    Wrong(
        # a mixture of one
        lambda: mixers.MixtureScores(mixers.MixerSettings(8, mixture=("attention",)), seed=0),
        "ValueError: mixture is ('attention',); expected at least two names",
    ),
    Wrong(
        lambda: mixers.GeneralAttention(8, 2, memory="blocks", seed=0),
        "ValueError: memory is 'blocks' ... 'auto' or 'stored' ... BlockwiseAttention",
    ),
    Wrong(
        lambda: mixers.hybrid(4, 5),  # a hybrid with more attention than layers
        "ValueError: n_attention is 5 ... at least 0 and at most 4",
    ),
    Wrong(
        lambda: mixers.hybrid(4, 0.5),  # a hybrid with half a layer of attention
        "ValueError: n_attention is 0.5 ... whole number of at least 0",
    ),
    Wrong(
        lambda: mixers.hybrid(4, True),  # a hybrid with attention, yes
        "ValueError: n_attention is True ... whole number of at least 0",
    ),
    Wrong(lambda: mixers.MixerSettings(d_model=0), "ValueError: d_model is 0 ... at least 1"),
    # Configurations and encoders ------------------------------------------------------------------
    Wrong(lambda: config(mixer=5), "TypeError: mixer is 5 ... a name ... each layer"),
    Wrong(
        lambda: config(mixer=["fourier"]),  # too few mixers
        "ValueError: ... has 1 names ... n_layers = 2",
    ),
    Wrong(
        lambda: config(mixer=("fourier", "attention"), share_layers=True),
        "ValueError: share_layers=True ... fourier, attention ... one mixer",
    ),
    Wrong(lambda: config(activation="swish"), "ValueError: activation is 'swish' ... 'gelu'"),
    Wrong(lambda: config(dropout=1.0), "ValueError: dropout is 1.0"),
    Wrong(lambda: config(rank=0), "ValueError: rank is 0 ... at least 1"),
    Wrong(lambda: config(rank=2.5), "ValueError: rank is 2.5 ... whole number"),
    Wrong(
        lambda: config(mixture="attention"),  # a mixture that is a name
        "ValueError: mixture is 'attention' ... two names ... ('attention', 'random_synthesizer')",
    ),
    Wrong(
        lambda: config(mixture=["attention"]),  # a mixture of one name
        "ValueError: mixture is ['attention'] ... at least two names",
    ),
    Wrong(lambda: config(mixture=2), "ValueError: mixture is 2 ... at least two names"),
    Wrong(
        lambda: config(n_layers=10**12),  # more layers than can be built
        "ValueError: n_layers is 1000000000000; expected ... at most 65536",
    ),
    Wrong(
        lambda: nf.Encoder(config(d_ff=10**12)),  # more memory than there is
        "MemoryError: a parameter would have shape (8, 1000000000000) and take ... GiB",
    ),
    Wrong(
        lambda: mixers.Attention(8, 2, causal="no", seed=0),  # a word for yes or no
        "TypeError: causal is 'no'; expected True or False",
    ),
    Wrong(
        lambda: data.reverse(symbols="1"),
        "ValueError: symbols is '1'; expected a whole number of at least 1",
    ),
    Wrong(
        lambda: data.parity(train=2.0),
        "ValueError: train is 2.0; expected a whole number of at least 1",
    ),
    Wrong(
        lambda: data.pointer(length=10**12),
        "MemoryError: the samples would have shape (18560, 1000000000001) and take",
    ),
    Wrong(
        lambda: nf.save(nf.Encoder(config()), 3),
        "TypeError: path is 3; expected a text or a pathlib.Path",
    ),
    Wrong(
        lambda: nf.load(b"model.safetensors"),
        "TypeError: path is b'model.safetensors'; expected a text or a pathlib.Path",
    ),
    Wrong(
        lambda: nf.save(nf.Encoder(config()), "encoder.safetensors", notes={"a": object()}),
        "TypeError: notes holds what JSON cannot ... texts, numbers",
    ),
    Wrong(lambda: config(d_model=8.0), "ValueError: d_model is 8.0 ... whole number"),
    Wrong(
        lambda: config(causal="no"),  # a word for yes or no
        "TypeError: causal is 'no' ... True or False",
    ),
    Wrong(
        # a key of a newer version
        lambda: nf.EncoderConfig.from_dict({"d_model": 8, "colour": "red"}),
        "ValueError: ... colour ... does not know ... Update npformer",
    ),
    Wrong(
        lambda: nf.Encoder({"d_model": 8}),  # a dict instead of a configuration
        "TypeError: config is a dict; expected an EncoderConfig",
    ),
    Wrong(lambda: nf.Encoder(config(), seed=0.5), "TypeError: seed is 0.5"),
    Wrong(
        lambda: encoder()(f64(2, 4, 8)),  # float64 for a float32 encoder
        "TypeError: x has dtype float64 ... expected one dtype ... x.astype('float32')",
    ),
    # Classifiers ----------------------------------------------------------------------------------
    Wrong(lambda: tokens(n_classes=1), "ValueError: n_classes is 1 ... at least 2"),
    Wrong(
        lambda: nf.SequenceClassifier(config(), 3),  # neither tokens nor features
        "ValueError: vocab_size is None and n_features is None ... exactly one",
    ),
    Wrong(
        lambda: nf.SequenceClassifier(config(), 3, vocab_size=5, n_features=2),
        "ValueError: vocab_size is 5 and n_features is 2 ... exactly one",
    ),
    Wrong(
        lambda: tokens(output="sigmoid"),  # one logit for three classes
        "ValueError: ... n_classes is 3; expected 2 classes ... output='softmax'",
    ),
    Wrong(lambda: tokens(seed=True), "TypeError: seed is True"),
    Wrong(lambda: tokens(vocab_size=0), "ValueError: vocab_size is 0 ... at least 1"),
    Wrong(
        lambda: tokens()(np.full((2, 4), 7)),  # an id out of the vocabulary
        "ValueError: x holds 7 ... from 0 to 6 ... vocab_size",
    ),
    Wrong(
        lambda: tokens()(np.full((2, 4), -1)),  # padding ids of -1
        "ValueError: x holds -1 ... from 0 to 6",
    ),
    Wrong(
        lambda: vectors()(f64(2, 4, 3)),  # float64 for a float32 model
        "TypeError: x has dtype float64 ... model float32 ... x.astype('float32') ... "
        "dtype='float64'",
    ),
    Wrong(
        lambda: tokens(mixer="fourier")(IDS, keep(2, 4)),  # a mask for a model that mixes padding
        "ValueError: ... padding mask ... padding='per_length' ... padding='zero' ... "
        "EncoderConfig",
    ),
    Wrong(
        lambda: step(y=np.array([0, 3])),  # a label too high
        "ValueError: y holds 3 ... from 0 to 2 ... classes",
    ),
    Wrong(
        lambda: step(y=np.array([0, -1])),  # a sequence without a label
        "ValueError: y holds -1 ... from 0 to 2",
    ),
    Wrong(
        lambda: step(y=np.array([0])),  # too few labels
        "ValueError: y has shape (1,); expected (2,). One label for each sequence",
    ),
    Wrong(
        lambda: step(x=IDS[:0], y=LABELS[:0]),  # an empty batch
        "ValueError: x has no samples ... at least 1",
    ),
    Wrong(
        lambda: step(model=tokens(dropout=0.1)),  # dropout without a seed
        "ValueError: ... needs a random generator ... got none ... loss_and_gradients(..., seed=0)",
    ),
    Wrong(lambda: step(seed="zero"), "TypeError: seed is 'zero' ... whole number of at least 0"),
    Wrong(lambda: step(workers=0), "ValueError: workers is 0 ... at least 1 ... 'auto'"),
    Wrong(lambda: step(workers="all"), "ValueError: workers is 'all' ... at least 1 ... 'auto'"),
    Wrong(
        lambda: step(label_smoothing=1.0),  # labels smoothed away
        "ValueError: label_smoothing is 1.0 ... from 0 up to",
    ),
    Wrong(
        lambda: step(model=tokens(n_classes=2, output="sigmoid"), label_smoothing=1.0),
        "ValueError: label_smoothing is 1.0 ... from 0 up to",
    ),
    Wrong(
        lambda: tokens().predict(IDS, batch_size=0),
        "ValueError: batch_size is 0 ... at least 1",
    ),
    Wrong(lambda: tokens().to("gpu"), "ValueError: unknown backend 'gpu' ... numpy, cupy"),
    Wrong(
        lambda: (model := tokens()).encoder.to("numpy") and model,  # moving a part of a model
        "ValueError: this Encoder is part of a model and shares one buffer ... model.to('numpy')",
    ),
    Wrong(
        lambda: (model := tokens()).classify.to("numpy") and model,  # moving a layer of a model
        "ValueError: this Linear is part of a model ... move the whole model",
    ),
    # Adam, gradcheck, arrays ----------------------------------------------------------------------
    Wrong(
        lambda: nf.Adam(tokens()),
        "TypeError: parameters is a SequenceClassifier ... Mapping. Write Adam(model.parameters())",
    ),
    Wrong(
        lambda: nf.Adam([f64(3)]),
        "TypeError: parameters is a list; expected a Mapping. Write Adam(model.parameters())",
    ),
    Wrong(lambda: nf.Adam({}), "ValueError: parameters is empty ... at least one"),
    Wrong(lambda: adam(lr=0.0), "ValueError: lr is 0.0 ... above 0"),
    Wrong(lambda: adam(lr=np.nan), "ValueError: lr is nan ... above 0"),
    Wrong(lambda: adam(eps=0.0), "ValueError: eps is 0.0 ... above 0"),
    Wrong(lambda: adam(betas=(0.9, 1.0)), "ValueError: betas is 1.0 ... not including, 1"),
    Wrong(lambda: adam(weight_decay=-1.0), "ValueError: weight_decay is -1.0 ... 0 or more"),
    Wrong(lambda: adam(weight_decay=np.nan), "ValueError: weight_decay is nan ... 0 or more"),
    Wrong(
        lambda: adam().step({"w": f64(2)}),  # a step with a gradient of another shape
        "ValueError: gradients do not fit ... w has shape (2,) ... expected (3,) ... from one "
        "model",
    ),
    Wrong(lambda: optim.warmup_inverse_sqrt(0), "ValueError: warmup is 0 ... at least 1"),
    Wrong(
        lambda: gradcheck(F.linear, f64(2, 3), f64(3, 4), wrt=["weights"]),
        "ValueError: wrt names 'weights'; expected some of x, W",
    ),
    Wrong(
        lambda: gradcheck(f64(3), f64(3)),  # an array to check
        "TypeError: target is an ndarray; expected a layer, a function with a backward pass, "
        "a pair",
    ),
    Wrong(
        lambda: gradcheck(F.linear, f64(2, 3), f64(3, 4), bais=f64(4)),
        "TypeError: linear cannot be called like this ... 'bais' ... fit linear(x: ",
    ),
    Wrong(
        lambda: gradcheck(F.linear, f64(2, 3), f64(3, 4), wrt="x"),
        "TypeError: wrt is 'x'; expected a list",
    ),
    Wrong(
        lambda: gradcheck(L.ReLU(), f64(2, 3), tolerance=0.0),
        "ValueError: tolerance is 0.0; expected a number above 0",
    ),
    Wrong(
        lambda: gradcheck(F.merge_heads, f64(1, 2, 3, 4)),  # gradcheck of a lone function
        "TypeError: merge_heads has no merge_heads_backward ... a pair ... (forward, backward)",
    ),
    Wrong(
        lambda: nf.asarray([1.0], backend="torch"),
        "ValueError: unknown backend 'torch' ... numpy, cupy",
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[wrong.message for wrong in WRONG])
def test_a_wrong_call_is_refused_in_words_that_help(call, message):
    with pytest.raises((TypeError, ValueError, KeyError, MemoryError)) as caught:
        call()
    actual = f"{caught.type.__name__}: {caught.value.args[0]}"
    assert re.match(".*".join(map(re.escape, message.split(" ... "))), actual, re.DOTALL), actual


def test_a_refused_batch_leaves_the_model_as_it_was():
    model = tokens()
    before = model.parameters().flat.copy()
    for y in (np.array([0, 3]), np.array([0.5, 1.0]), np.array([0])):
        with pytest.raises((TypeError, ValueError)):
            step(y=y, model=model)
    np.testing.assert_array_equal(model.parameters().flat, before)


def test_a_refused_step_of_the_optimizer_leaves_the_parameters_as_they_were():
    parameters = {"a": f64(3), "b": f64(3)}
    with pytest.raises(ValueError, match="do not fit the parameters: b has shape"):
        nf.Adam(parameters).step({"a": f64(3), "b": f64(2)})
    np.testing.assert_array_equal(parameters["a"], 1.0)
