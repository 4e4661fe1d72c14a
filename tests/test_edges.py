"""What npformer promises where other libraries disagree, as `docs/disagreements.md` shows."""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import Context, Gradients
from npformer.layers import POOLINGS, CrossAttention
from npformer.optim import adam_update
from npformer.training.generation.choosing import Choice

dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
attentions = pytest.mark.parametrize(
    "attend", [F.scaled_dot_product_attention, F.blockwise_attention]
)


# Alignment ----------------------------------------------------------------------------------------
@attentions
def test_the_first_query_sees_only_the_first_key(rng, attend):
    query, key, value = rng.normal(size=(1, 4)), rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    y, _ = attend(query, key, value, causal=True)
    np.testing.assert_array_equal(y, value[:1])


@attentions
def test_a_query_that_begins_at_the_end_sees_every_key(rng, attend):
    query, key, value = rng.normal(size=(1, 4)), rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    at_end, _ = attend(query, key, value, causal=True, begin=2)
    of_all, _ = attend(query, key, value)
    np.testing.assert_array_equal(at_end, of_all)


# eps ----------------------------------------------------------------------------------------------
def first_step(gradient, dtype, kernels):
    """Return how far Adam's first step leads, with a learning rate and an eps of 1 and 1e-8."""
    theta = np.zeros(1, dtype)
    with nf.use_kernels(kernels):
        optimizer = nf.Adam({"w": theta}, lr=1.0, eps=1e-8)
        optimizer.step({"w": np.full(1, gradient, dtype)})
    return -theta.item()


@dtypes
@pytest.mark.parametrize("kernels", [True, False])
def test_eps_stands_beside_the_corrected_root_in_adam(dtype, kernels):
    assert first_step(1e-8, dtype, kernels) == pytest.approx(0.5, rel=1e-6)


@dtypes
@pytest.mark.parametrize("kernels", [True, False])
def test_a_gradient_of_0_moves_nothing(dtype, kernels):
    assert first_step(0.0, dtype, kernels) == 0.0


def test_adam_refuses_float16_in_words():
    half = np.zeros(1, "float16")
    with pytest.raises(TypeError, match="theta has dtype float16; expected float32 or float64"):
        adam_update(half, half, half, half, t=1, lr=1.0, betas=(0.9, 0.999), eps=1e-8)


@pytest.mark.parametrize("eps", [1e-12, 1e-5])
def test_eps_stands_under_the_root_of_a_tiny_row(eps):
    x = np.array([[-1e-4, 1e-4]])
    y, _ = F.layer_norm(x, np.ones(2), None, eps)
    np.testing.assert_allclose(y, x / np.sqrt(1e-8 + eps), rtol=1e-12)


# Ties ---------------------------------------------------------------------------------------------
def test_the_slope_of_relu_at_its_corner_is_0():
    _, cache = F.relu(np.array([0.0, -0.0]))
    np.testing.assert_array_equal(F.relu_backward(np.ones(2), cache), 0.0)


@pytest.mark.parametrize("kwargs", [{"temperature": 0.0}, {"top_k": 1}], ids=["greedy", "top 1"])
def test_among_equal_tokens_the_first_is_chosen(kwargs):
    p = Choice(**kwargs).probabilities(np.array([[0.0, 7.0, 7.0, 7.0]]))
    assert p.tolist() == [[0.0, 1.0, 0.0, 0.0]]


# NaN ----------------------------------------------------------------------------------------------
@dtypes
@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "tanh", "sigmoid"])
def test_an_activation_of_nan_is_nan_there_alone(name, dtype):
    y, _ = getattr(F, name)(np.array([1.0, np.nan, -1.0], dtype))
    assert np.isnan(y).tolist() == [False, True, False]


@dtypes
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm"])
def test_nan_spoils_its_own_row_alone(name, dtype):
    x = np.array([[1.0, np.nan, 2.0], [1.0, 2.0, 3.0]], dtype)
    parameters = {
        "softmax": (),
        "layer_norm": (np.ones(3, dtype), np.zeros(3, dtype)),
        "rms_norm": (np.ones(3, dtype),),
    }[name]
    y, _ = getattr(F, name)(x, *parameters)
    assert np.isnan(y).all(axis=1).tolist() == [True, False]


@dtypes
@pytest.mark.parametrize(
    ("loss", "target"),
    [
        (F.softmax_cross_entropy, np.array([0, 1])),
        (F.binary_cross_entropy_with_logits, np.zeros((2, 2))),
        (F.mean_squared_error, np.zeros((2, 2))),
    ],
)
def test_a_loss_of_nan_is_nan(loss, target, dtype):
    target = target if target.dtype.kind == "i" else target.astype(dtype)
    value, _ = loss(np.array([[0.0, np.nan], [1.0, 2.0]], dtype), target)
    assert np.isnan(value)


@pytest.mark.parametrize("choose", [{"temperature": 0.0}, {"seed": 0}])
def test_no_token_is_written_from_nan(choose):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6, causal=True)
    model = nf.LanguageModel(config, vocab_size=7, seed=0)
    model.parameters().flat[:] = np.nan
    with pytest.raises(ValueError, match="the logits of the next token are NaN in row 0"):
        model.generate(np.array([[3, 1]]), 3, **choose)


@pytest.mark.parametrize("beams", [1, 2])
def test_no_beam_follows_nan(beams):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6)
    model = nf.EncoderDecoder(config, 7, 7, seed=0)
    model.parameters().flat[:] = np.nan
    with pytest.raises(ValueError, match="the logits of the next token are NaN in row 0"):
        model.generate(np.array([[3, 1]]), beams=beams)


# What sees nothing --------------------------------------------------------------------------------
SAMPLES = np.random.default_rng(0).normal(size=(2, 3, 8))
SECOND_IS_PADDING = np.array([[True, True, True], [False, False, False]])


@pytest.mark.parametrize("name", POOLINGS)
def test_a_sample_of_padding_alone_is_pooled_to_0(name):
    layer = POOLINGS.make(name, 8, 0, "float64")
    y, cache = layer.forward(SAMPLES, Context(mask=SECOND_IS_PADDING))
    dx = layer.backward(np.ones_like(y), cache, Gradients(layer))
    assert (y[1] == 0.0).all()
    assert (dx[1] == 0.0).all()


@pytest.mark.parametrize("kernels", [False, True])
def test_a_memory_of_padding_alone_adds_the_bias_of_the_output(kernels):
    attention = CrossAttention(8, 2, seed=0, dtype="float64")
    layer = nf.fast(attention) if kernels else attention
    y, cache = layer.forward(SAMPLES, SAMPLES, Context(memory_mask=SECOND_IS_PADDING))
    dx, dmemory = layer.backward(np.ones_like(y), cache, Gradients(attention))
    np.testing.assert_array_equal(y[1], np.broadcast_to(attention.output.bias.value, (3, 8)))
    assert (dx[1] == 0.0).all()
    assert (dmemory[1] == 0.0).all()


# float16 ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("relu", [(2, 2)]),
        ("softmax", [(2, 2)]),
        ("linear", [(2, 2), (2, 2)]),
        ("rms_norm", [(2, 2), (2,)]),
        ("mean_pooling", [(2, 2, 2)]),
        ("scaled_dot_product_attention", [(2, 2)] * 3),
    ],
)
def test_float16_is_refused_in_words(name, shapes):
    arrays = [np.ones(shape, "float16") for shape in shapes]
    with pytest.raises(TypeError, match="has dtype float16; expected float32 or float64"):
        getattr(F, name)(*arrays)


@pytest.mark.parametrize("call", ["__call__", "forward", "predict", "loss_and_gradients"])
def test_a_model_refuses_float16_in_each_way_to_call_it(call):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6)
    model = nf.SequenceClassifier(config, n_classes=3, n_features=4, seed=0)
    more = {"forward": (Context(),), "loss_and_gradients": (np.array([0, 1]),)}.get(call, ())
    with pytest.raises(TypeError, match="x has dtype float16; expected float32 or float64"):
        getattr(model, call)(np.ones((2, 3, 4), "float16"), *more)
