"""The quick part of loading mutated files; `python -m benchmarks faults` has the long one."""

import pytest

from npformer.training.storage import model_file
from tests.faults.mutated_files import mutated_files, run
from tests.faults.mutations import DAMAGE, LIES

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def outcomes():
    return run(300, seed=0)


def test_mutated_files_are_refused_in_words(outcomes):
    assert outcomes.failures == []
    assert outcomes.counts["refused"] > 200


def test_every_kind_of_mutation_is_tried(outcomes):
    kinds = {f.__name__.replace("_", " ") for f in DAMAGE + LIES}
    assert kinds <= set(outcomes.counts)


def test_a_mutated_file_is_refused_within_seconds(outcomes):
    assert outcomes.longest < 2.0


def test_a_seed_gives_the_same_table_except_for_what_is_measured():
    one, other = (mutated_files(20, seed=1) for _ in range(2))
    assert one["tried"] == 20
    measured = {"longest wait in ms", "largest peak in MB"}
    assert {k: v for k, v in one.items() if k not in measured} == {
        k: v for k, v in other.items() if k not in measured
    }


READ = model_file._read


@pytest.mark.parametrize(
    ("name", "instead", "found"),
    [
        ("_damage", lambda *_: "", ": damage was accepted"),
        ("_read", lambda path, force: READ(path, True), "CheckpointWarning: "),
    ],
)
def test_a_check_that_is_left_out_is_noticed(monkeypatch, name, instead, found):
    monkeypatch.setattr(model_file, name, instead)
    assert any(found in failure for failure in run(120, seed=0).failures)
