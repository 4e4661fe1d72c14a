"""What every layer and every twin keeps to: no state, the caller's buffers, one dtype."""

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest

from npformer import Context, Encoder, EncoderConfig, Gradients, fast, use_kernels
from npformer import layers as L
from npformer.engine import EngineContext, Workspace, cpu
from npformer.mixers import MIXERS, MixerSettings
from tests.passes import assert_same, both_passes

X = np.ones((4, 5, 8), np.float32)
CONFIG = EncoderConfig(d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=6, mixer="attention")


def makers():
    """Return {name: dtype -> layer}, each from (4, 5, 8) to (4, 5, something) or less."""
    table = {
        "Linear": lambda dtype: L.Linear(8, 6, seed=0, dtype=dtype),
        "Conv1d": lambda dtype: L.Conv1d(8, 6, 3, seed=0, dtype=dtype),
        "GELU": lambda dtype: L.GELU(),
        "Sequential": lambda dtype: L.Sequential(
            L.Conv1d(8, 6, seed=0, dtype=dtype), L.Tanh(), L.Linear(6, 4, seed=1, dtype=dtype)
        ),
        "LayerNorm": lambda dtype: L.LayerNorm(8, dtype=dtype),
        "Positions": lambda dtype: L.Positions(6, 8, "learned", seed=0, dtype=dtype),
        "TokenTypes": lambda dtype: L.TokenTypes(2, 8, seed=0, dtype=dtype),
        "MeanPooling": lambda dtype: L.MeanPooling(),
        "Flatten": lambda dtype: L.Flatten(),
        "Pooler": lambda dtype: L.Pooler(8, seed=0, dtype=dtype),
        "PositionwiseFeedForward": lambda dtype: L.PositionwiseFeedForward(
            8, 12, "gelu", seed=0, dtype=dtype
        ),
        "TimeDistributed": lambda dtype: L.TimeDistributed(L.Linear(8, 6, seed=0, dtype=dtype)),
        "Encoder": lambda dtype: Encoder(CONFIG, dtype=dtype),
    }
    settings = MixerSettings(d_model=8, n_heads=2, max_len=6)
    for name, mixer in MIXERS.items():
        table[name] = lambda dtype, mixer=mixer: mixer.build(settings, seed=0, dtype=dtype)
    return table


@pytest.fixture(params=makers().items(), ids=lambda item: item[0])
def make_plain(request):
    return request.param[1]


@pytest.fixture
def make(make_plain, either):
    return lambda dtype: either(make_plain(dtype))


# The first layer of a model -----------------------------------------------------------------------
@pytest.mark.parametrize("enabled", [True, False])
def test_parameters_get_the_same_gradients_without_the_inputs(make_plain, rng, enabled):
    layer = make_plain("float64")
    x = rng.normal(size=(4, 5, 8))
    with use_kernels(enabled):
        twin, of_data = fast(layer), fast(layer, of_data=True)
        y, cache = of_data.forward(x, Context())
        dy = rng.normal(size=y.shape)
        expected = Gradients(layer)
        dx = twin.backward(dy, twin.forward(x, Context())[1], expected)
        for _ in range(2):  # neither pass uses the cache up
            gradients = Gradients(layer)
            dx_of_data = of_data.backward(dy, cache, gradients)
            assert_same(gradients.values(), expected.values())
            if enabled and isinstance(layer, SAVING):
                assert dx_of_data is None
            else:
                np.testing.assert_array_equal(dx_of_data, dx)


SAVING = L.Linear, L.PositionwiseFeedForward, L.TimeDistributed, L.Sequential
"""What saves the product for the gradient of its input, where that is data. The `Conv1d` above sees
several tokens at once, and does not."""


def one_by_one():
    """Return a feed-forward network that is no kernel, for its activation is a user's."""

    class Own(L.Tanh):
        pass

    layer = L.PositionwiseFeedForward(8, 12, seed=0)
    layer.activation = Own()
    return layer


FIRST = {
    "Linear": lambda: L.Linear(8, 6, seed=0),
    "Linear without bias": lambda: L.Linear(8, 6, bias=False, seed=0),
    "Conv1d": lambda: L.Conv1d(8, 6, seed=0),
    "PositionwiseFeedForward": lambda: L.PositionwiseFeedForward(8, 12, "gelu", seed=0),
    "its convolutions": lambda: L.PositionwiseFeedForward(8, 12, "gelu", ffn="conv1d", seed=0),
    "its layers one by one": one_by_one,
    "Sequential": lambda: L.Sequential(L.Linear(8, 6, seed=0)),
    "TimeDistributed": lambda: L.TimeDistributed(L.Linear(8, 6, seed=0)),
}
"""Each of them, as it is and as its parts."""


@pytest.fixture(params=FIRST.values(), ids=FIRST.keys())
def first(request):
    return request.param()


@pytest.fixture
def gradients_of_inputs(monkeypatch):
    """Note what kernels hand back as the gradient of their input."""
    input_gradients = []

    def record_gradients(backward):
        def run(dy, cache, **options):
            gradients = backward(dy, cache, **options)
            input_gradients.append(gradients[0] if isinstance(gradients, tuple) else gradients)
            return gradients

        return run

    for name, (forward, backward) in cpu.KERNELS.items():
        monkeypatch.setitem(cpu.KERNELS, name, (forward, record_gradients(backward)))
    return input_gradients


def test_a_first_layer_saves_the_product_for_its_input(first, gradients_of_inputs):
    chain = L.Sequential(first, L.Tanh(), L.Linear(first(X).shape[-1], 4, seed=0))
    _, dx, *gradients = both_passes(fast(chain, of_data=True), X)
    assert dx is None
    assert all(dx is not None for dx in gradients_of_inputs[:-1])  # the later layers'
    assert len(gradients_of_inputs) >= 2
    assert gradients_of_inputs[-1] is None
    for one, other in zip(gradients, both_passes(chain, X)[2:], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_a_layer_alone_saves_the_product_for_its_input(first, gradients_of_inputs):
    assert both_passes(fast(first, of_data=True), X)[1] is None
    assert gradients_of_inputs[-1] is None


def test_the_product_is_computed_where_it_is_asked_for(first, gradients_of_inputs):
    both_passes(fast(first, of_data=True), X)
    gradients_of_inputs.clear()
    assert both_passes(fast(first), X)[1].shape == X.shape  # a twin of its own
    assert all(dx is not None for dx in gradients_of_inputs)


def test_a_first_layer_does_one_product_less(first, monkeypatch):
    products = []
    for of_data in (False, True):
        matmul = Mock(wraps=np.matmul)
        with monkeypatch.context() as patch:
            patch.setattr(np, "matmul", matmul)
            both_passes(fast(first, of_data=of_data), X)
        products.append(matmul.call_count)
    assert products[1] == products[0] - 1


@pytest.mark.parametrize("wrapped", [False, True], ids=["", "in a Sequential"])
def test_a_first_layer_that_acts_again_later_gets_its_gradient_there(rng, wrapped):
    tied = L.Linear(8, 8, seed=0, dtype="float64")
    again = L.Sequential(tied) if wrapped else tied
    chain = L.Sequential(tied, L.Linear(8, 8, seed=1, dtype="float64"), again)
    x = rng.normal(size=(4, 5, 8))
    _, dx, *gradients = both_passes(fast(chain, of_data=True), x)
    _, _, *expected_gradients = both_passes(chain, x)
    assert dx is None
    for one, other in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_a_subclass_with_a_backward_pass_of_its_own_has_no_other():
    class Halved(L.Linear):
        def backward(self, dy, cache, gradients):
            return super().backward(0.5 * dy, cache, gradients)

    layer = Halved(8, 6, seed=0)
    plain = L.Linear(8, 6, seed=0)
    assert fast(layer, of_data=True) is layer
    chain = L.Sequential(layer)
    _, _, *gradients = both_passes(fast(chain, of_data=True), X)
    assert_same(gradients, both_passes(chain, X)[2:])
    np.testing.assert_allclose(gradients[0], 0.5 * both_passes(plain, X)[2], rtol=1e-6)


# All of them --------------------------------------------------------------------------------------
def test_a_workspace_changes_no_number(make, rng):
    layer = make("float64")
    x = rng.normal(size=(4, 5, 8))
    plain = [a.copy() for a in both_passes(layer, x)]
    context = EngineContext(workspace=Workspace())
    for _ in range(3):
        assert_same(both_passes(layer, x, context), plain)


def test_without_a_workspace_a_later_call_overwrites_no_earlier_result(make, rng):
    layer = make("float64")
    x = rng.normal(size=(4, 5, 8))
    y, cache = layer.forward(x, Context())
    dx = layer.backward(np.ones_like(y), cache, Gradients(layer))
    copies = y.copy(), dx.copy()
    both_passes(layer, rng.normal(size=(4, 5, 8)))
    assert_same((y, dx), copies)


def test_two_threads_at_once_get_what_each_gets_alone(make, rng):
    layer = make("float64")
    batches = [rng.normal(size=(4, 5, 8)) for _ in range(8)]
    alone = [both_passes(layer, x) for x in batches]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda x: both_passes(layer, x), batches * 3))
    for i, results in enumerate(together):
        assert_same(results, alone[i % 8])
