"""Several ranks end with the weights of one process, and with the same bits on each."""

import json

import numpy as np
import pytest

import npformer as nf
from tests.training.distributed.ranks import needs_mpi, run_ranks

pytestmark = needs_mpi

SETTINGS = {"mixers": list(nf.MIXERS), "epochs": 17, "clip_norm": 1.0, "weight_decay": 0.01}
"""102 steps of each mixer, with padding, dropout, clipping and weight decay."""

ROUNDING_ALONE = "key.bias"
"""Of attention: its gradient is zero by nature, so what Adam makes of it is rounding."""


def trained(n, folder, **changes):
    """Train with n ranks; return weights and history of each mixer."""
    folder.mkdir()
    settings = SETTINGS | changes
    run_ranks(n, "train", folder, json.dumps(settings))
    return {
        mixer: (
            dict(np.load(folder / f"{mixer}.npz")),
            json.loads((folder / f"{mixer}.json").read_text()),
        )
        for mixer in settings["mixers"]
    }


def assert_weights_equal(found, expected, bound=1e-12, of=""):
    for name, value in expected.items():
        if not name.endswith(ROUNDING_ALONE):
            np.testing.assert_allclose(
                found[name], value, rtol=0, atol=bound, err_msg=f"{of}: {name}"
            )


def assert_equal(found, expected, bound=1e-12):
    for mixer, (weights, history) in expected.items():
        assert_weights_equal(found[mixer][0], weights, bound, mixer)
        for name in ("train_loss", "validation_loss", "validation_accuracy"):
            np.testing.assert_allclose(found[mixer][1][name], history[name], rtol=0, atol=bound)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return trained(0, tmp_path_factory.mktemp("alone") / "run")


@pytest.mark.parametrize("n", [2, 4])
def test_every_mixer_ends_as_in_one_process(n, alone, tmp_path):
    found = trained(n, tmp_path / "run")
    assert_equal(found, alone)
    for _, history in found.values():
        assert history["workers"] == {f"{n} ranks, each 1 worker": 102}


@pytest.mark.parametrize(
    "changes",
    [
        {"batches": "shuffled"},
        {"batch_size": 3},  # fewer samples than ranks in the last batch
        {"accumulate": 2, "batch_size": 8},
        {"micro_batch": 3},
        {"workers": 2, "processes": False},
        {"validation": 0.2, "validate": False},
        {"class_weight": "balanced"},
        {"sample_weight": [k % 5 for k in range(90)], "batch_size": 3},
        {"model": {"attention_dropout": 0.1, "ffn_dropout": 0.1, "token_dropout": 0.1}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_with_other_settings(changes, tmp_path):
    few = {"mixers": ["attention"], "epochs": 4}
    expected = trained(0, tmp_path / "one", **few, **changes)
    found = trained(4, tmp_path / "four", **few, **changes)
    assert_equal(found, expected)
