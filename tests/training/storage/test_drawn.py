"""What a training draws before its first step: kept, read, and drawn again."""

import numpy as np
import pytest

from npformer.training.storage import drawn as module
from npformer.training.storage.drawn import DRAWN, Drawn, digest_of
from npformer.training.storage.model_file import CheckpointError, write_model_file


def test_what_was_drawn_comes_back_if_it_was_drawn_from_the_same(tmp_path):
    first = Drawn(tmp_path / "new", resume=True)
    assert first.recall("a", {"seed": 1}, lambda: [1, 2]) == [1, 2]
    assert first.recall("b", {"seed": np.int64(1)}, lambda: "word") == "word"
    again = Drawn(tmp_path / "new", resume=True)
    assert again.recall("a", {"seed": 1}, lambda: [3]) == [1, 2]
    assert again.recall("b", {"seed": 2}, lambda: "other") == "other"
    assert Drawn(tmp_path / "new", resume=True).recall("b", {"seed": 2}, lambda: "") == "other"
    anew = Drawn(tmp_path / "new", resume=False)
    assert anew.recall("a", {"seed": 1}, lambda: [4]) == [4]
    assert Drawn(tmp_path / "new", resume=True).recall("b", {"seed": 2}, lambda: "") == ""


def test_nothing_is_written_without_a_folder_or_beside_a_checkpoint(tmp_path):
    assert Drawn().recall("a", {}, lambda: 1) == 1
    assert Drawn(tmp_path, keeps=False).recall("a", {}, lambda: 1) == 1
    (tmp_path / "checkpoint.safetensors").touch()
    assert Drawn(tmp_path).recall("a", {}, lambda: 1) == 1
    assert not (tmp_path / DRAWN).exists()


def test_rows_are_those_of_both_parts(tmp_path):
    splits = np.array([0, 2, 3]), np.array([1, 4])
    for split in (lambda: splits, None):  # the second time nothing is drawn
        stored = Drawn(tmp_path, resume=True).rows("test", {"seed": 0}, 5, split)
        np.testing.assert_array_equal(stored[0], splits[0])
        np.testing.assert_array_equal(stored[1], splits[1])


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b'{"test": 1}', b'{"test": {"basis": {"n": 5}, "value": [9]}}', b"\xff"],
)
def test_a_file_that_was_edited_is_named(tmp_path, content):
    values = np.frombuffer(content, dtype="uint8")
    write_model_file(tmp_path / DRAWN, {"class": module.KIND}, {module.VALUES: values})
    with pytest.raises(CheckpointError, match=f"{DRAWN} does not hold what the training drew"):
        Drawn(tmp_path, resume=True).rows("test", {}, 5, lambda: (np.arange(4), np.arange(4, 5)))


def test_digests_tell_values_apart():
    lists = ["ab"], ["a", "b"], ["b", "a"], ["a\x00b"], [""], [], ["\ud800"]
    assert len({digest_of(values) for values in lists}) == len(lists)
