"""Dropout's masks in a step: the same bit for bit, whoever computes which samples."""

import importlib

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.engine.team import Team
from npformer.functional.dropout import draw_kept
from npformer.layers import Dropout, Sequential, TimeDistributed
from npformer.mixers import Mixer

CALLS = 9  # at most, in the model below
N = 5

ways = pytest.mark.parametrize(
    ("number", "micro_batch"), [(n, size) for n in (1, 2, 3) for size in (None, 1, 2, 5)]
)


class DroppingMixer(Mixer):
    """Tokens, and their weights, with dropouts of the mixer's own."""

    def __init__(self, settings):
        d = settings.d_model
        self.weight = nf.Parameter(np.linspace(-1.0, 1.0, 5 * d).reshape(5, d))
        self.tokens = Sequential(Dropout(0.3), TimeDistributed(Dropout(0.4)))

    @classmethod
    def build(cls, settings, *, seed, dtype):
        return cls(settings)

    def forward(self, x, context):
        y, cache = self.tokens.forward(x, context)
        generator = context.dropout_generator(shared=True)
        weight, weight_cache = F.dropout(self.weight.value, 0.5, generator)
        return y * weight.sum(0), (cache, y, weight, weight_cache)

    def backward(self, dy, cache, gradients):
        cache, y, weight, weight_cache = cache
        dweight = np.broadcast_to((dy * y).sum((0, 1)), weight.shape)
        gradients.add(self.weight, F.dropout_backward(dweight, weight_cache))
        return self.tokens.backward(dy * weight.sum(0), cache, gradients)


@pytest.fixture(params=["attention", "fourier, per length", "a mixer that drops"])
def model(request, small_model):
    options = {"mixer": request.param.partition(",")[0], "padding": "per_length"}
    if request.param == "a mixer that drops":
        options["mixer"] = "identity"
    model = small_model(n_layers=2, dropout=0.3, **options)
    if request.param == "a mixer that drops":
        settings = model.config.mixer_settings()
        for block in model.encoder.blocks:
            block.mixer = DroppingMixer(settings)
        model.flatten()
    return model


@pytest.fixture
def batch(rng):
    lengths = np.array([6, 2, 6, 3, 1])
    return rng.integers(0, 7, (N, 6)), rng.integers(0, 3, N), np.arange(6) < lengths[:, None]


@pytest.fixture
def take_masks(monkeypatch):
    """Note the masks of a step: 2 is "never drawn"."""
    memory = np.zeros((CALLS, N, 512), "uint8")

    def draw_and_note(shape, rate, generator):
        is_kept = draw_kept(shape, rate, generator)
        if hasattr(generator, "first"):
            call = generator.n_noted = getattr(generator, "n_noted", -1) + 1
            samples = is_kept.reshape(generator.n_samples, -1)
            rows = slice(generator.first, generator.first + generator.n_samples)
            memory[call, rows, : samples.shape[1]] = samples
        return is_kept

    for name in ("npformer.functional.dropout", "npformer.engine.cpu.dropout"):
        monkeypatch.setattr(importlib.import_module(name), "draw_kept", draw_and_note)

    def take():
        masks = memory.copy()
        memory[...] = 2
        return masks

    take()
    return take


def step(model, batch, number=1, micro_batch=None):
    with Team(model, number, micro_batch) as team:
        loss, gradients = team.step(model.batch(*batch), generator=np.random.default_rng(4))
        return float(loss), gradients.copy(), team.shared_by


@ways
def test_sharing_changes_only_rounding(model, batch, take_masks, number, micro_batch):
    loss, gradients, _ = step(model, batch)
    expected_masks = take_masks()
    n_calls = (expected_masks[:, 0, 0] != 2).sum()
    assert n_calls >= 3
    assert (expected_masks[:n_calls, :, :6] != 2).all()

    shared_loss, shared_gradients, shared_by = step(model, batch, number, micro_batch)
    assert shared_by == ("1 worker" if number == 1 else f"{number} threads")
    np.testing.assert_array_equal(take_masks(), expected_masks)
    assert shared_loss == pytest.approx(loss, rel=1e-12)
    scale = np.abs(gradients.flat).max()
    for name, gradient in gradients.items():  # that of a key's bias is 0 but for rounding
        np.testing.assert_allclose(
            shared_gradients[name], gradient, rtol=0, atol=1e-12 * scale, err_msg=name
        )


def test_the_plain_step_draws_the_same_masks(model, batch, take_masks):
    masks, losses = [], []
    for kernels in (False, True):
        with nf.use_kernels(kernels):
            losses.append(model.loss_and_gradients(*batch, seed=4)[0])
        masks.append(take_masks())
    np.testing.assert_array_equal(masks[1], masks[0])
    assert losses[1] == pytest.approx(losses[0], rel=1e-12) == step(model, batch)[0]


def test_threads_in_a_call_draw_the_same_masks(small_model, rng, take_masks, monkeypatch):
    model = small_model(dropout=0.3)
    batch = rng.integers(0, 7, (1, 6)), rng.integers(0, 3, 1)
    monkeypatch.setattr("npformer.engine.team.choose_threads", lambda workers, *_: workers)
    results = {}
    for number in (1, 3):
        results[number] = *step(model, batch, number), take_masks()
    assert (results[1][2], results[3][2]) == ("1 worker", "3 threads in a call")
    np.testing.assert_array_equal(results[3][3], results[1][3])
    np.testing.assert_allclose(results[3][1].flat, results[1][1].flat, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("micro_batch", [None, 2])
def test_a_step_leaves_the_callers_generator_in_the_same_state(model, batch, number, micro_batch):
    generator, expected = np.random.default_rng(4), np.random.default_rng(4)
    expected.integers(1 << 63)
    with Team(model, number, micro_batch) as team:
        team.step(model.batch(*batch), generator=generator)
    assert generator.bit_generator.state == expected.bit_generator.state
    assert generator.bit_generator.seed_seq.n_children_spawned == 0
