"""npformer data: what comes with the package, as files."""

import csv
import io

import numpy as np
import pytest

import npformer as nf
from npformer.cli.embedded import EMBEDDED
from tests.cli.conftest import run


def test_without_a_name_it_lists_the_data(prints):
    out = prints("data")
    assert [line.split()[0] for line in out.splitlines()[1:5]] == [
        "sentences",
        "shakespeare",
        "pronunciations",
        "vowels",
    ]
    assert out.endswith("npformer data sentences > reviews.csv\n")


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_listed_size_is_that_of_the_file(prints, name):
    assert EMBEDDED[name].size == f"{len(prints('data', name).encode()) / 1e6:.1f} MB"


def test_sentences_are_a_table_with_the_columns_of_the_pages(prints):
    rows = [*csv.DictReader(io.StringIO(prints("data", "sentences")))]
    assert len(rows) == 3000
    assert {row["opinion"] for row in rows} == {"negative", "positive"}
    samples = nf.data.sentences(repeated=True).train
    assert {(row["review"], row["opinion"]) for row in rows} >= {*zip(*samples, strict=True)}


def test_vowels_are_a_table_with_a_row_for_each_step(prints):
    rows = [*csv.reader(io.StringIO(prints("data", "vowels")))]
    series, speakers = nf.data.vowels().train
    first = [row for row in rows[1:] if row[0] == "0"]
    np.testing.assert_array_equal(np.array([row[2:-1] for row in first], dtype=float), series[0])
    assert {row[-1] for row in first} == {speakers[0]}
    assert len({row[0] for row in rows[1:]}) == 640


def test_plays_are_as_they_are_stored(prints):
    assert prints("data", "shakespeare").startswith("First Citizen:\n")


def test_pronunciations_are_as_they_are_stored(prints):
    words = prints("data", "pronunciations").splitlines()
    assert words[0] == "word,phones"
    assert len(words) == 133_974


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        run("data", "sentence")
    assert "Did you mean 'sentences'?" in capsys.readouterr().err
