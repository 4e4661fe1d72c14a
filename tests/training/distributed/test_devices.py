"""A rank on each GPU, shown on fake ones: what NCCL is asked for, and what comes out."""

import json

import numpy as np
import pytest

import npformer as nf
from tests.training.distributed.ranks import needs_mpi, run_ranks
from tests.training.distributed.test_equal import assert_weights_equal

pytestmark = needs_mpi

SETTINGS = {"mixers": list(nf.MIXERS), "epochs": 3, "lr": 3e-3, "clip_norm": 1.0}


def trained(n, folder, way, fails=False, **changes):
    """Train with n ranks; return weights and what was noted, of each mixer."""
    folder.mkdir()
    settings = SETTINGS | changes
    done = run_ranks(n, "devices", folder, way, json.dumps(settings), fails=fails)
    if fails:
        return done.stderr
    return {
        mixer: (
            dict(np.load(folder / f"{mixer}.npz")),
            json.loads((folder / f"{mixer}.json").read_text()),
        )
        for mixer in settings["mixers"]
    }


def assert_equal(found, expected, bound=1e-12):
    for mixer, (weights, noted) in expected.items():
        assert_weights_equal(found[mixer][0], weights, bound, mixer)
        for name in ("train_loss", "validation_loss"):
            of_both = (each["history"][name] for each in (noted, found[mixer][1]))
            np.testing.assert_allclose(*of_both, rtol=0, atol=bound)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return trained(0, tmp_path_factory.mktemp("alone") / "run", "numpy", validation=0.2)


@pytest.mark.parametrize(
    ("n", "way", "mixers"),
    [(2, "nccl", list(nf.MIXERS)), (3, "nccl", ["attention"]), (2, "host", ["attention"])],
)
def test_it_ends_as_in_one_process(n, way, mixers, alone, tmp_path):
    found = trained(n, tmp_path / "run", way, validation=0.2, mixers=mixers)
    assert_equal(found, {mixer: alone[mixer] for mixer in mixers})
    for _, noted in found.values():
        assert (noted["calls"] > 0) == (way == "nccl")
        assert noted["warnings"] == [[]] * n


def test_nothing_waits_for_a_gpu_but_the_mean_loss_of_an_epoch(tmp_path):
    found = trained(2, tmp_path / "run", "nccl", check_every=100, epochs=2)
    for mixer, (_, noted) in found.items():
        assert noted["waits"] == [*[[]] * 4, ["get()"]] * 2, mixer


@pytest.mark.parametrize("n", [2, 3])
def test_shards_of_moments_have_the_same_bits(n, tmp_path):
    few = {"mixers": ["attention", "fourier"], "lr": None}
    few["optimizer"] = {"lr": 1e-3, "weight_decay": 0.1}
    whole = trained(n, tmp_path / "whole", "nccl", **few)
    shards = trained(n, tmp_path / "shards", "nccl", shard_moments=True, **few)
    for mixer, (weights, _) in whole.items():
        for name, value in weights.items():
            assert shards[mixer][0][name].tobytes() == value.tobytes(), (mixer, name)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("missing", "NCCL cannot be loaded on rank 1; expected it beside CuPy. Install it"),
        ("shared", "ranks 0 and 1 share the GPU 0000:00 of "),
    ],
)
def test_gpus_that_cannot_be_joined_are_told_once_and_the_host_does_it(way, words, alone, tmp_path):
    few = {"mixers": ["attention"], "validation": 0.2}
    found = trained(2, tmp_path / "run", way, **few)
    assert_equal(found, {"attention": alone["attention"]})
    noted = found["attention"][1]
    assert noted["calls"] == 0
    (first,), others = noted["warnings"]
    assert words in first
    assert "which is slower" in first
    assert others == []


def test_ranks_on_different_backends_are_refused(tmp_path):
    said = trained(2, tmp_path / "run", "unlike", fails=True, mixers=["attention"])
    assert "backend is 'numpy' on rank 1, and 'fake' on rank 0" in said
    assert said.count("This is rank") == 1
