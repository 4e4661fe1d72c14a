"""A run of npformer train goes on with the vocabulary and the split that it drew."""

import numpy as np
import pytest

import npformer as nf
from npformer.data.tokenizers import WordTokenizer
from npformer.tasks.estimators import readers, split
from tests.cli.conftest import TINY, metrics_of
from tests.needs import NEEDS

pytestmark = pytest.mark.usefixtures("no_curves")

TEXTS = [f"{one} {other}s" for one in ("the", "a", "no", "some") for other in ("cat", "dog", "rat")]


@pytest.fixture
def table(tmp_path):
    """Return a table of texts and labels."""
    lines = [f"{text} no{i},{i % 2}" for i, text in enumerate(TEXTS * 4)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return tmp_path / "t.csv"


@pytest.fixture
def another_library(monkeypatch):
    """Let vocabularies and splits come out otherwise, as in another version of a library."""

    def other_split(labels, share, seed):
        return np.arange(1, len(labels)), np.arange(1)

    def act():
        other = WordTokenizer(["other", "words"])
        monkeypatch.setattr(readers, "train_tokenizer", lambda *_, **__: other)
        monkeypatch.setattr(split, "stratified_split", other_split)

    return act


@pytest.mark.parametrize("tokenizer", ["word", "wordpiece"])
def test_a_resumed_run_uses_what_it_drew_before(
    table, tmp_path, prints, another_library, tokenizer
):
    if tokenizer == "wordpiece":
        pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
    words = (*TINY, "--tokenizer", tokenizer, "--schedule", "constant")
    prints("train", table, *words, "--epochs", 2, "--out", tmp_path / "whole")
    prints("train", table, *words, "--out", tmp_path / "run")
    another_library()
    prints("train", table, "--out", tmp_path / "run", "--resume", "--epochs", 2)
    uninterrupted, run = (
        nf.load(tmp_path / name / "model.safetensors") for name in ("whole", "run")
    )
    assert run.preparation() == uninterrupted.preparation()
    np.testing.assert_array_equal(
        run.model.parameters().flat, uninterrupted.model.parameters().flat
    )
    assert metrics_of(tmp_path / "run")["test"] == metrics_of(tmp_path / "whole")["test"]
    assert prints("evaluate", tmp_path / "run") == prints("evaluate", tmp_path / "whole")


def test_a_run_that_begins_anew_draws_anew(table, tmp_path, prints, another_library):
    prints("train", table, *TINY, "--out", tmp_path / "run")
    another_library()
    prints("train", table, *TINY, "--out", tmp_path / "run", "--overwrite")
    assert nf.load(tmp_path / "run" / "model.safetensors").tokenizer_.vocabulary[2:] == [
        "other",
        "words",
    ]


def test_a_damaged_file_is_named(table, tmp_path, prints, fails):
    prints("train", table, *TINY, "--out", tmp_path / "run")
    again = ("train", table, "--out", tmp_path / "run", "--resume", "--epochs", 2, "--quiet")
    drawn = tmp_path / "run" / "checkpoints" / "model" / "drawn.safetensors"
    drawn.write_bytes(drawn.read_bytes().replace(b"tokenizer", b"tokenizes"))
    assert f"{drawn} does not hold what the training drew: it is damaged" in fails(*again)
    drawn.unlink()  # what is lost is drawn again
    prints(*again)
