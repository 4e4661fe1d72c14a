"""A training goes on from a checkpoint with another number of ranks."""

import pytest

from tests.training.distributed.ranks import needs_mpi
from tests.training.distributed.test_equal import assert_equal, trained

pytestmark = needs_mpi

MIXERS = ["attention", "dense_synthesizer"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return {
        n: trained(n, tmp_path_factory.mktemp("undisturbed") / str(n), mixers=MIXERS, epochs=5)
        for n in (0, 2)
    }


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (2, 0), (0, 3)])
def test_another_number_of_ranks_goes_on(before, after, undisturbed, tmp_path):
    settings = {"mixers": MIXERS, "checkpoint": "run"}
    trained(before, tmp_path / "begun", **settings, epochs=2)
    found = trained(after, tmp_path / "ended", **settings, epochs=5, resume=True)
    assert_equal(found, undisturbed[0])
    for _, history in found.values():
        assert len(history["workers"]) == 2


def test_the_same_number_of_ranks_goes_on_bit_for_bit(undisturbed, tmp_path):
    settings = {"mixers": MIXERS, "checkpoint": "run"}
    trained(2, tmp_path / "begun", **settings, epochs=2)
    found = trained(2, tmp_path / "ended", **settings, epochs=5, resume=True)
    for mixer, (weights, history) in undisturbed[2].items():
        assert {name: w.tobytes() for name, w in weights.items()} == {
            name: w.tobytes() for name, w in found[mixer][0].items()
        }
        assert history["train_loss"] == found[mixer][1]["train_loss"]
