"""Whole models with kernels on the device: their numbers, and what a training step costs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.engine.team import Team
from tests import fake_device
from tests.device import cases
from tests.kernels.gpu import emulated
from tests.kernels.gpu.helpers import TOLERANCE

pytestmark = pytest.mark.usefixtures("cupy")
in_emulation = pytest.mark.usefixtures("emulation")


@cases.parametrize_cases(
    [*cases.LAYERS, *cases.MIXERS, *cases.ENCODERS, *cases.CLASSIFIERS, *cases.OPTIMIZING],
)
def test_layers_and_models_give_the_numbers_of_functional(case) -> None:
    cases.assert_agree(case, "cupy", "float64", TOLERANCE["float64"])


@cases.parametrize_cases([*cases.ENCODERS, *cases.CLASSIFIERS])
def test_float32_stays_float32(case) -> None:
    cases.assert_agree(case, "cupy", "float32", TOLERANCE["float32"])


@cases.parametrize_cases(cases.TRAINING)
def test_a_training_run_gives_the_numbers_of_functional(case) -> None:
    # Adam divides by the size of gradients: rounding in that of attention's key bias, which is 0,
    # becomes a step of 1e-16 / 1e-8 of the learning rate.
    cases.assert_agree(case, "cupy", "float64", 1e4 * TOLERANCE["float64"])


MIXED = ("attention", "dense_synthesizer", "fourier")


# Which kernels run, and what they cost


@pytest.fixture
def one_step() -> Callable[..., Any]:
    """Run the second training step of a small model on the device and count what it does."""

    def run(enabled: bool = True, **changes: Any) -> tuple[list[str], fake_device.Counts]:
        model = cases.classifier("float32", **changes).to("cupy")
        optimizer = nf.Adam(model.parameters())
        with nf.use_kernels(enabled), Team(model) as team:
            for _ in range(2):
                with fake_device.count() as counted, emulated.launches() as launches:
                    batch = model.batch(*cases.batch(model), cases.MASK)
                    _, gradients = team.step(batch, generator=np.random.default_rng(0))
                    optimizer.step(gradients)
        return launches, counted

    return run


@in_emulation
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_a_step_waits_for_nothing(mixer, one_step) -> None:
    names, counted = one_step(mixer=mixer, dropout=0.1, padding="zero")
    assert counted.synchronisations == 0, counted.waits
    expected = {
        "residual_norm",
        "bias_gelu",
        "embedding_backward_of_runs",
        "softmax_cross_entropy",
        "adam_update",
    }
    assert expected <= set(names)


@in_emulation
@pytest.mark.parametrize("mixer", MIXED)
def test_a_step_launches_less(mixer, one_step) -> None:
    _, fused = one_step(mixer=mixer, padding="zero")
    names, plain = one_step(enabled=False, mixer=mixer, padding="zero")
    assert names == []
    assert fused.calls < plain.calls
