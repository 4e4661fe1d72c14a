import gzip

import numpy as np
import pytest

import npformer as nf
from npformer.interop import read_word_vectors, set_word_vectors

ROWS = {
    "the": [0.418, 0.24968, -0.41242, 0.1217],
    "of": [0.70853, 0.57088, -0.4716, 0.18048],
    "Zürich": [1e-3, -2.5, 0.0, 4.0],
    ". . .": [1.0, 2.0, 3.0, 4.0],
}


def text(rows=ROWS, header="", separator=" ", end="\n"):
    lines = [separator.join([word, *map(str, vector)]) for word, vector in rows.items()]
    return (header + end.join(lines) + end).encode()


FORMATS = {
    "glove": text(),
    "word2vec": text(header="4 4\n"),
    "fasttext, spaces at line ends": text(header="4 4\n", end=" \n"),
    "windows": text(end="\r\n"),
    "with a byte order mark": b"\xef\xbb\xbf" + text(),
    "no end of line": text().rstrip(b"\n"),
    "an empty line": text() + b"\n",
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("compressed", [False, True])
def test_formats_are_read(tmp_path, content, compressed):
    path = tmp_path / "vectors.txt"  # the content says whether it is compressed
    path.write_bytes(gzip.compress(content) if compressed else content)
    vectors = read_word_vectors(path, ["Zürich", "nothing", ". . .", "the", "The"])
    assert list(vectors) == ["Zürich", ". . .", "the"]
    for word, vector in vectors.items():
        assert vector.dtype == "float32"
        np.testing.assert_allclose(vector, ROWS[word], rtol=1e-6)


def test_fields_may_be_separated_by_tabs(tmp_path):
    path = tmp_path / "vectors.tsv"
    rows = {word: vector for word, vector in ROWS.items() if " " not in word}
    path.write_bytes(text(rows, separator="\t"))
    assert list(read_word_vectors(str(path), rows)) == list(rows)


def test_the_first_vector_of_a_repeated_word_is_used(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"a 1 2\nb 3 4\na 5 6\n")
    assert read_word_vectors(path, {"a": 7})["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no word vectors; expected lines such as 'the 0.41 0.24'"),
        (b"4 4\n", "holds no word vectors"),
        (b"the 0.1 0.2\nof 0.3\n", "line 2 of .*: 1 numbers, and 2 in the first line"),
        (b"the 0.1 0.2\nof 0.3 x\n", "line 2 of .*: something other than numbers"),
        (b"the 0.1 0.2\nof 0.3 nan\n", "line 2 of .*: a number that is NaN or infinite"),
        (b"the 0.1 0.2\nof 0.3 1e60\n", "line 2 of .*: a number that is NaN or infinite"),
        (b"id,text\n3,hello\n", "line 1 of .*: something other than numbers"),
        (b"some text that is no vector\n", "line 1 of .*: something other than numbers"),
        (text(header="9 4\n"), "says that it has 9 words but has 4; .* cut short"),
        (b"3 2\nthe \x00\x01\x02\x03", "is not a text file; .* A .bin of word2vec"),
        (gzip.compress(text(), mtime=0)[:-12], "is cut short or damaged after line"),
        (gzip.compress(text(), mtime=0)[:-9] + b"x" * 9, "is cut short or damaged after line"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_word_vectors(path, ["the", "of"])


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt does not exist; expected a file"):
        read_word_vectors(tmp_path / "none.txt", ["the"])


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a folder; expected a file"):
        read_word_vectors(tmp_path, ["the"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("the", "words is .*; expected a list with a string"),
        (3, "words is .*; expected a list with a string"),
        ([3], r"words\[0\] is an int: 3; expected a string"),
    ],
)
def test_wrong_words_are_refused(tmp_path, words, message):
    (tmp_path / "v.txt").write_bytes(text())
    with pytest.raises(TypeError, match=message):
        read_word_vectors(tmp_path / "v.txt", words)


@pytest.fixture
def model(small_config):
    return nf.SequenceClassifier(small_config(d_model=4), 2, vocab_size=6)


VOCABULARY = ["<pad>", "the", "of", "cat", "Zürich", "end"]


@pytest.mark.parametrize("words", [VOCABULARY, {w: i for i, w in enumerate(VOCABULARY)}], ids=type)
def test_rows_of_words_are_filled(model, words):
    table = model.parameters()["embed.tokens.weight"]
    before = table.copy()
    assert set_word_vectors(model, words, ROWS) == 3
    for row in (1, 2, 4):
        np.testing.assert_allclose(table[row], ROWS[VOCABULARY[row]], rtol=1e-6)
    for row in (0, 3, 5):
        np.testing.assert_array_equal(table[row], before[row])
    assert set_word_vectors(model, words, {}) == 0


@pytest.mark.parametrize(
    ("words", "vectors", "error", "message"),
    [
        (VOCABULARY, {"the": [1.0]}, ValueError, r"shape \(1,\) and the model d_model 4; expected"),
        (VOCABULARY, {"the": [np.nan] * 4}, ValueError, "vector of 'the' is .*; expected finite"),
        (VOCABULARY, {"the": ["a"] * 4}, ValueError, "vector of 'the' is .*; expected finite"),
        (VOCABULARY, [[1.0]], TypeError, "vectors is a list; expected a Mapping"),
        ([*VOCABULARY, "more"], ROWS, ValueError, "id of .more., .* vocab_size 6, is 6"),
        ({"the": 6}, ROWS, ValueError, "the id of 'the', .* vocab_size 6, is 6; expected"),
        ({"the": -1}, ROWS, ValueError, "the id of 'the', .* is -1; expected a whole number"),
        ({"the": "a"}, ROWS, ValueError, "the id of 'the', .* is 'a'; expected a whole number"),
        ("the", ROWS, TypeError, "words is a str; expected a list with a string"),
        ([1, 2], ROWS, TypeError, r"words\[0\] is an int: 1; expected a string"),
    ],
)
def test_a_refused_call_changes_no_row(model, words, vectors, error, message):
    before = model.parameters()["embed.tokens.weight"].copy()
    with pytest.raises(error, match=message):
        set_word_vectors(model, words, vectors)
    np.testing.assert_array_equal(model.parameters()["embed.tokens.weight"], before)


def test_models_without_tokens_are_refused(small_model):
    with pytest.raises(TypeError, match="without an embedding of tokens; expected a classifier"):
        set_word_vectors(small_model(n_features=3), VOCABULARY, ROWS)
