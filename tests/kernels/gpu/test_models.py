"""Whole models with kernels on the device: their numbers, and what a training step costs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.core import arrays as backends
from npformer.core.dispatch import faster
from npformer.engine import gpu
from npformer.engine.team import Team
from npformer.engine.twin_classes import Saved
from npformer.engine.updates import device_generator
from tests import fake_device
from tests.device import cases
from tests.kernels.gpu import emulated
from tests.kernels.gpu.helpers import TOLERANCE, TRAIN, asarray, down
from tests.sampling import usually

pytestmark = pytest.mark.usefixtures("cupy")
in_emulation = pytest.mark.usefixtures("emulation")


@cases.parametrised(
    [*cases.LAYERS, *cases.MIXERS, *cases.ENCODERS, *cases.CLASSIFIERS, *cases.OPTIMIZING],
    usually="one of each",
)
def test_layers_and_models_give_the_numbers_of_functional(case) -> None:
    cases.assert_agree(case, "cupy", "float64", TOLERANCE["float64"])


@cases.parametrised([*cases.ENCODERS, *cases.CLASSIFIERS], usually="one of each")
def test_float32_stays_float32(case) -> None:
    cases.assert_agree(case, "cupy", "float32", TOLERANCE["float32"])


@cases.parametrised(cases.TRAINING, usually="one of each")
def test_a_training_run_gives_the_numbers_of_functional(case) -> None:
    # Adam divides by the size of gradients: rounding in that of attention's key bias, which is 0,
    # becomes a step of 1e-16 / 1e-8 of the learning rate.
    cases.assert_agree(case, "cupy", "float64", 1e4 * TOLERANCE["float64"])


MIXED = ("attention", "dense_synthesizer", "fourier")


@pytest.mark.covering(1)
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    ("mixer", "causal"),
    [*((mixer, False) for mixer in MIXED), ("attention", True), ("dense_synthesizer", True)],
)
def test_models_of_odd_sizes(mixer, norm, causal, masked, dropout) -> None:
    sizes = {"d_model": 36, "n_heads": 3, "d_ff": 70, "max_len": 41}
    changes = {"mixer": mixer, "norm": norm, "causal": causal, "dropout": dropout}
    config = cases.config(**sizes, **changes, padding="zero")
    rng = np.random.default_rng(0)
    ids, labels = np.minimum(rng.zipf(1.5, (3, 37)), 50) - 1, np.array([0, 4, 2])
    mask = np.arange(37) < np.array([37, 20, 1])[:, None] if masked else None
    results = {}
    for backend in ("numpy", "cupy"):
        model = nf.SequenceClassifier(config, 5, vocab_size=50, dtype="float64").to(backend)
        with nf.use_kernels(backend == "cupy"):
            loss, gradients = model.loss_and_gradients(ids, labels, mask, seed=1)
            results[backend] = {"loss": np.array(loss), "logits": model(ids, mask), **gradients}
    largest = max(np.abs(down(x)).max() for x in results["numpy"].values())
    for name, x in results["cupy"].items():
        expected = down(results["numpy"][name])
        scale = max(np.abs(expected).max(), 1e-2 * largest)
        assert np.abs(down(x) - expected).max() <= TOLERANCE["float64"] * scale, name


# Which kernels run, and what they cost


@pytest.fixture
def one_step() -> Callable[..., Any]:
    """Run the second training step of a small model on the device and count what it does."""

    def run(enabled: bool = True, **changes: Any) -> tuple[list[str], fake_device.Counts]:
        model = cases.classifier("float32", **changes).to("cupy")
        optimizer = nf.Adam(model.parameters())
        with nf.use_kernels(enabled), Team(model) as team:
            for _ in range(2):
                with fake_device.count() as counted, emulated.launches() as seen:
                    batch = model.batch(*cases.batch(model), cases.MASK)
                    _, gradients = team.step(batch, generator=np.random.default_rng(0))
                    optimizer.step(gradients)
        return seen, counted

    return run


@in_emulation
@pytest.mark.parametrize("mixer", usually(MIXED, nf.MIXERS))
def test_a_step_waits_for_nothing(mixer, one_step) -> None:
    names, counted = one_step(mixer=mixer, dropout=0.1, padding="zero")
    assert counted.synchronisations == 0, counted.waits
    expected = {"residual_norm", "bias_gelu", "sums_of_runs", "cross_entropy", "adam_update"}
    assert expected <= set(names)


@in_emulation
@pytest.mark.parametrize("mixer", MIXED)
def test_a_step_launches_less(mixer, one_step) -> None:
    _, fused = one_step(mixer=mixer, padding="zero")
    names, plain = one_step(enabled=False, mixer=mixer, padding="zero")
    assert names == []
    assert fused.calls < plain.calls


def runs(layer: nf.Layer, x: Any) -> Any:
    """Return the backward kernel that waits in the cache of a layer; None after a plain pass."""
    _, cache = layer.forward(x, TRAIN)
    return cache.backward if type(cache) is Saved else None


def fused_block(layer: nf.Layer, x: Any) -> bool:
    """Return whether the sums of a block are one kernel with the norms behind them."""
    _, (mixed, fed) = layer.forward(x, TRAIN)
    found = [[type(part) is Saved for part in cache[1:3]] for cache in (mixed, fed)]
    assert found[0] == found[1]
    return found[0] == [True, False]


def test_kernels_go_without_on_request() -> None:
    x, X = asarray(np.zeros((2, 3))), asarray(np.zeros((2, 5, 8)))
    linear = nf.layers.Linear(3, 4, seed=0, dtype="float64").to("cupy")
    block = nf.Encoder(cases.config(), seed=0, dtype="float64").to("cupy").blocks[0]
    assert runs(nf.fast(linear), x) is gpu.linear_backward
    assert runs(linear, x) is None
    assert fused_block(nf.fast(block), X)
    assert not fused_block(block, X)
    assert faster(nf.optim.adam_update, x[0]) is gpu.adam_update
    assert faster(nf.optim.adam_update, x) is None  # it is for vectors
    with nf.use_kernels(False):
        assert nf.fast(linear) is linear
        assert nf.fast(block) is block
        assert faster(nf.optim.adam_update, x[0]) is None
    assert isinstance(device_generator("cupy", 0), gpu.DeviceGenerator)
    assert device_generator("numpy", 0) is None


@in_emulation
def test_another_backend_has_no_kernels() -> None:
    backends.register(replace(fake_device.backend(), name="fake"))
    backends._backends.pop("cupy")
    x = nf.asarray(np.zeros((2, 3)), backend="fake")
    layer = nf.layers.Linear(3, 4, seed=0, dtype="float64").to("fake")
    assert nf.fast(layer) is layer
    assert faster(nf.optim.adam_update, x[0]) is None
    assert device_generator("fake", 0) is None
