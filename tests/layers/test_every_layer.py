"""What every layer keeps to: no state, the caller's buffers, one dtype."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from npformer import Context, Encoder, EncoderConfig, Gradients, Workspace, kernels, use_kernels
from npformer import layers as L
from npformer.mixers import MIXERS, MixerSettings

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
def make(request):
    return request.param[1]


def forward_and_backward(layer, x, workspace=None):
    """Return y, dx and the parameters' gradients, as copies."""
    y, cache = layer.forward(x, Context(workspace=workspace))
    dy = np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype)
    gradients = Gradients(layer)
    dx = layer.backward(dy, cache, gradients)
    return [a.copy() for a in (y, dx, *gradients.values())]


@pytest.mark.parametrize("enabled", [True, False])
def test_parameters_get_the_same_gradients_without_the_inputs(make, rng, enabled):
    layer, x = make("float64"), rng.normal(size=(4, 5, 8))
    with use_kernels(enabled):
        y, cache = layer.forward(x, Context())
        dy, kept = rng.normal(size=y.shape), Gradients(layer)
        layer.backward(dy, cache, kept)
        for _ in range(2):  # neither pass uses the cache up
            gradients = Gradients(layer)
            assert layer.backward_parameters(dy, cache, gradients) is None
            assert_same(gradients.values(), kept.values())


@pytest.mark.parametrize(
    "first",
    [
        L.Linear(8, 6, seed=0),
        L.Linear(8, 6, bias=False, seed=0),
        L.Conv1d(8, 6, seed=0),
        L.PositionwiseFeedForward(8, 12, "gelu", seed=0),
        L.Sequential(L.Linear(8, 6, seed=0)),
        L.TimeDistributed(L.Linear(8, 6, seed=0)),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_first_layer_saves_the_product_for_its_input(first, rng, monkeypatch):
    chain, seen = L.Sequential(first, L.Tanh(), L.Linear(first(X).shape[-1], 4, seed=0)), []
    backward = kernels.backward

    def noted(dy, cache, **options):
        found = backward(dy, cache, **options)
        seen.append(found[0])
        return found

    monkeypatch.setattr(kernels, "backward", noted)
    y, cache = chain.forward(X, Context())
    dy = rng.normal(size=y.shape).astype(y.dtype)
    chain.backward_parameters(dy, cache, Gradients(chain))
    assert seen[0] is not None  # the last layer's
    assert seen[-1] is None


def test_a_subclass_with_a_backward_pass_of_its_own_has_no_other():
    class Halved(L.Linear):
        def backward(self, dy, cache, gradients):
            return super().backward(0.5 * dy, cache, gradients)

    layer = Halved(8, 6, seed=0)
    y, cache = layer.forward(X, Context())
    gradients = [Gradients(layer), Gradients(layer)]
    layer.backward(y, cache, gradients[0])
    layer.backward_parameters(y, cache, gradients[1])
    assert_same(gradients[1].values(), gradients[0].values())


def assert_same(some, others):
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_workspace_changes_no_number(make, rng):
    layer, x = make("float64"), rng.normal(size=(4, 5, 8))
    plain = forward_and_backward(layer, x)
    workspace = Workspace()
    for _ in range(3):
        assert_same(forward_and_backward(layer, x, workspace), plain)


def test_without_a_workspace_a_later_call_overwrites_no_earlier_result(make, rng):
    layer, x = make("float64"), rng.normal(size=(4, 5, 8))
    y, cache = layer.forward(x, Context())
    dx = layer.backward(np.ones_like(y), cache, Gradients(layer))
    kept = y.copy(), dx.copy()
    forward_and_backward(layer, rng.normal(size=(4, 5, 8)))
    assert_same((y, dx), kept)


def test_two_threads_at_once_get_what_each_gets_alone(make, rng):
    layer = make("float64")
    batches = [rng.normal(size=(4, 5, 8)) for _ in range(8)]
    alone = [forward_and_backward(layer, x) for x in batches]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda x: forward_and_backward(layer, x), batches * 3))
    for i, results in enumerate(together):
        assert_same(results, alone[i % 8])


def test_float32_in_float32_out_and_close_to_float64(make, rng):
    x = rng.normal(size=(4, 5, 8))
    single = forward_and_backward(make("float32"), x.astype("float32"))
    double = forward_and_backward(make("float64"), x)
    for one, other in zip(single, double, strict=True):
        assert one.dtype == "float32"
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * (1.0 + np.abs(other).max()))


def test_neither_input_nor_parameters_change(make, rng):
    layer, x = make("float64"), rng.normal(size=(4, 5, 8))
    before = [x.copy(), *(a.copy() for a in layer.parameters().values())]
    forward_and_backward(layer, x)
    assert_same([x, *layer.parameters().values()], before)


def test_gradients_are_added_to_what_is_there(make, rng):
    layer, x = make("float64"), rng.normal(size=(4, 5, 8))
    y, cache = layer.forward(x, Context())
    gradients = Gradients(layer)
    layer.backward(np.ones_like(y), cache, gradients)
    once = gradients.flat.copy()
    layer.backward(np.ones_like(y), cache, gradients)
    np.testing.assert_array_equal(gradients.flat, 2.0 * once)
