"""What X may be, texts too, and what is said of an X that it may not be."""

import subprocess
import sys
from io import StringIO
from multiprocessing import current_process

import numpy as np
import pytest
from npformer.sklearn import EncoderClassifier
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import npformer as nf
from npformer.data.tokenizers import WordTokenizer
from npformer.tasks.estimators import defaults
from npformer.tasks.sklearn.samples import samples_of
from npformer.tasks.sklearn.training import shows_bar
from tests.needs import NEEDS

Y = np.arange(8) % 2
IDS = np.arange(24).reshape(8, 3) % 7
FLOATS = IDS * 0.5


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (IDS, "tokens"),
        (IDS.tolist(), "tokens"),
        (IDS.astype("uint8"), "tokens"),
        (IDS > 3, "tokens"),
        ([[1, 2], [3]], "tokens"),
        (FLOATS, "series"),
        (FLOATS.tolist(), "series"),
        (FLOATS[:, :, None], "series"),
        (IDS[:, :, None], "series"),
        ([np.ones((2, 3)), np.ones((4, 3))], "series"),
        (["a text", "another"], "text"),
        (("a text", "another"), "text"),
        (np.array(["a text", "another"]), "text"),
        (np.array([["a text"], ["another"]], object), "text"),
    ],
)
def test_the_kind_of_inputs_is_found(x, kind):
    kind_of_x, samples = samples_of(EncoderClassifier(), x, reset=True)
    assert kind_of_x == kind
    assert len(samples) == len(x)


@pytest.mark.parametrize(
    ("x", "changes", "match"),
    [
        # ragged lists
        ([[1.5, 2.0], [3.0]] * 4, {}, "ragged list: row 1 has length 1 and row 0 2.*one feature"),
        ([[1, 2], [3.0]] * 4, {}, "ragged list: row 1 has length 1"),
        ([[[1.0, 2.0]], [[1.0], [2.0]]] * 4, {}, r"X\[1\] has 1 features; expected 2"),
        ([[[1.0, 2.0], [3.0]], [[1.0, 2.0]]] * 4, {}, r"X\[0\] is object \(\); expected numbers"),
        ([[1, 2], []] * 4, {}, r"X\[1\] is empty"),
        # strings, and texts
        (IDS.astype(str), {}, r"strings in an array of shape \(8, 3\)"),
        (IDS.astype(str), {"inputs": "tokens"}, "holds strings and inputs is 'tokens'"),
        (IDS.astype(str).tolist(), {"inputs": "tokens"}, "holds strings and inputs is 'tokens'"),
        (["a"] * 8, {"inputs": "series"}, "holds strings and inputs is 'series'"),
        (IDS, {"inputs": "text"}, "holds no strings and inputs is 'text'"),
        ("a text", {}, "one text"),
        (["a", None] * 4, {}, r"X\[1\] is missing: None; expected a string"),
        (["a", float("nan")] * 4, {}, r"X\[1\] is missing: nan; expected a string"),
        # NaN
        (np.where(IDS == 3, np.nan, IDS), {}, "contains NaN"),
        (np.where(IDS == 3, np.inf, IDS)[:, :, None], {}, "contains infinity"),
        ([np.full((2, 3), np.nan), np.ones((4, 3))] * 4, {}, r"X\[0\] has NaN or inf.* step 0"),
        # ids
        (FLOATS, {"inputs": "tokens"}, "holds 0.5 in row 0, column 1, and inputs is 'tokens'"),
        (IDS[:, :, None], {"inputs": "tokens"}, r"samples of X have shape \(3, 1\)"),
        (IDS - 1, {}, r"Negative values in data: X holds -1 in row 0"),
        (IDS + 10**9, {}, "holds the token id 1000000006.*inputs='series'"),
        (IDS, {"vocab_size": 5}, "token id 6 in row 2; expected ids from 0 to 4"),
        # shapes and options
        (np.ones((8, 2, 2, 2)), {}, "dim 4"),
        (np.ones(8), {}, "Expected 2D array"),
        (csr_array(FLOATS), {}, "(?i)sparse"),
        (FLOATS, {"inputs": "numbers"}, "inputs"),
        (FLOATS, {"max_iter": 0}, "max_iter"),
        (FLOATS, {"batch_size": 0}, "batch_size"),
        (FLOATS, {"max_len": 2}, "max_len"),
        (FLOATS, {"mixer": "attentoin"}, "attention"),
        (FLOATS, {"d_model": 7}, "d_model"),
        (FLOATS, {"early_stopping": "yes"}, "early_stopping"),
        (FLOATS, {"early_stopping": True, "validation_fraction": 2.0}, "share is 2.0"),
        (FLOATS, {"class_weight": "equal"}, "class_weight"),
        (FLOATS, {"tol": -1.0}, "tol"),
    ],
)
def test_wrong_samples_are_refused(small, x, changes, match):
    with pytest.raises((ValueError, TypeError), match=match):
        small(**changes).fit(x, Y)


@pytest.mark.parametrize(
    ("y", "weights", "match"),
    [
        (None, None, "requires y"),
        (Y[:5], None, "inconsistent numbers of samples"),
        (Y * 0, None, "one class, 0, in"),
        (np.full(8, "a"), None, "one class, 'a', in"),
        (np.where(Y, "a", "nan"), None, r"of y\[1\] is 'nan', a word for a missing label"),
        (Y + 0.5, None, "continuous"),
        (np.where(Y, np.nan, 1.0), None, "NaN"),
        (Y, np.zeros(8), "(?i)weight.*zero"),
        (Y, -np.ones(8), "(?i)negative"),
        (Y, np.ones(7), "sample_weight.shape"),
        (Y, np.where(Y, np.nan, 1.0), "NaN"),
        (Y, Y.astype(float), "one class"),
    ],
)
def test_an_error_says_what_is_wrong_with_y_or_weights(small, y, weights, match):
    with pytest.raises(ValueError, match=match):
        small().fit(FLOATS, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("train", "other", "match"),
    [
        (IDS, IDS[:, :2], "X has 2 features, but EncoderClassifier is expecting 3"),
        (IDS, IDS + 1, r"token id 7 in row 2; expected ids from 0 to 6.*vocab_size=8"),
        (IDS, IDS - 1, "Negative values"),
        (IDS, FLOATS, "holds 0.5 in row 0"),
        (IDS, ["a text"], "holds strings"),
        (FLOATS, FLOATS[:, :2], "X has 2 features"),
        (FLOATS, ["a text"], "holds strings"),
        (FLOATS[:, :, None], FLOATS[:, :, None].repeat(2, axis=2), "X has 2 features.*expecting 1"),
        (FLOATS[:, :, None], FLOATS[:, :2, None], "length 2; expected max_len = 3"),
        (["a text"] * 4 + ["another"] * 4, IDS, "holds no strings"),
    ],
)
def test_samples_unlike_those_of_the_training_are_refused(small, train, other, match):
    classifier = small(max_iter=1).fit(train, Y)
    with pytest.raises(ValueError, match=match):
        classifier.predict(other)


def test_an_untrained_one_says_so(small):
    for method in ("predict", "predict_proba", "predict_log_proba"):
        with pytest.raises(NotFittedError):
            getattr(small(), method)(FLOATS)


def test_without_the_library_the_error_names_the_extra():
    code = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
import npformer
assert "npformer.tasks.sklearn" not in sys.modules
try:
    from npformer.sklearn import EncoderClassifier
except ImportError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 'python -m pip install "npformer[sklearn]"' in process.stdout


@pytest.fixture
def of_texts(small):
    """Make a small estimator without dropout, which is for more texts and larger models."""
    return lambda **changes: small(**({"dropout": 0.0, "learning_rate": 0.03} | changes))


def test_texts_in_any_container(of_texts, texts):
    x, y = texts
    classifier = of_texts(max_iter=40).fit(x, y)
    assert classifier.inputs_ == "text"
    assert not hasattr(classifier, "n_features_in_")
    assert classifier.score(x, y) == 1.0
    p = classifier.predict_proba(x)
    brief = of_texts(max_iter=2).fit(x, y).predict_proba(x)
    for same in (tuple(x), np.array(x), np.array(x, object), np.array(x)[:, None]):
        np.testing.assert_array_equal(classifier.predict_proba(same), p)
        np.testing.assert_array_equal(of_texts(max_iter=2).fit(same, y).predict_proba(x), brief)


@pytest.mark.parametrize("kind", ["Series", "DataFrame"])
def test_texts_of_polars(of_texts, texts, kind):
    polars = pytest.importorskip("polars", reason=NEEDS["polars"])
    x, y = texts
    p = of_texts().fit(x, y).predict_proba(x)
    values = {"Series": x, "DataFrame": {"text": x}}[kind]
    column = getattr(polars, kind)(values)
    classifier = of_texts().fit(column, polars.Series(y))
    np.testing.assert_array_equal(classifier.predict_proba(column), p)


@pytest.mark.parametrize("kind", ["array", "chunked_array", "table"])
def test_texts_of_pyarrow(of_texts, texts, kind):
    pyarrow = pytest.importorskip("pyarrow", reason=NEEDS["pyarrow"])
    x, y = texts
    p = of_texts().fit(x, y).predict_proba(x)
    values = {"array": x, "chunked_array": [x[:10], x[10:]], "table": {"text": x}}[kind]
    column = getattr(pyarrow, kind)(values)
    classifier = of_texts().fit(column, pyarrow.array(y))
    np.testing.assert_array_equal(classifier.predict_proba(column), p)


def test_a_text_classifier_reads_columns_of_pyarrow():
    pyarrow = pytest.importorskip("pyarrow", reason=NEEDS["pyarrow"])
    column = pyarrow.chunked_array([["good", None], ["bad"]])
    with pytest.raises(TypeError, match=r"^samples\[1\] is missing: None; expected a string$"):
        nf.TextClassifier().fit(column, [0, 1, 0])
    with pytest.raises(ValueError, match=r"^samples has 2 axes; .* such as table\['text'\]$"):
        nf.TextClassifier().fit(pyarrow.table({"text": column}), [0, 1, 0])


class Terminal(StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("verbose", "stream", "process", "shown"),
    [
        ("auto", Terminal(), "MainProcess", True),
        ("auto", Terminal(), "LokyProcess-1", False),
        ("auto", StringIO(), "MainProcess", False),
        ("auto", None, "MainProcess", False),
        (False, Terminal(), "MainProcess", False),
        (True, StringIO(), "MainProcess", True),
    ],
)
def test_a_bar_is_shown_on_a_terminal(monkeypatch, verbose, stream, process, shown):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(current_process(), "name", process)
    assert shows_bar(verbose) is shown


@pytest.mark.parametrize("n", [400, 600, 5000])
def test_texts_are_seen_as_often_as_by_a_text_classifier(n):
    expected = defaults.training("text", n)["epochs"]
    assert defaults.settings_with_stop("text", n, batch_size=32)["epochs"] == expected


def test_texts_in_a_frame(of_texts, texts):
    pandas = pytest.importorskip("pandas", reason=NEEDS["pandas"])
    x, y = texts
    frame = pandas.DataFrame({"text": x, "label": y})
    p = of_texts().fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(of_texts().fit(frame["text"], y).predict_proba(frame["text"]), p)
    classifier = of_texts().fit(frame[["text"]], frame["label"])
    assert classifier.feature_names_in_.tolist() == ["text"]
    np.testing.assert_array_equal(classifier.predict_proba(frame[["text"]]), p)
    with pytest.raises(ValueError, match="Choose the column"):
        of_texts().fit(frame, y)
    chosen = make_pipeline(make_column_transformer(("passthrough", ["text"])), of_texts())
    np.testing.assert_array_equal(chosen.fit(frame, y).predict_proba(frame), p)


def test_a_tokenizer_of_ones_own_is_used_as_it_is(of_texts, texts):
    x, y = texts
    tokenizer = WordTokenizer(["great", "fine", "lovely", "awful"])
    classifier = of_texts(tokenizer=tokenizer).fit(x, y)
    assert classifier.model_.vocab_size == 6
    assert classifier.reader_.tokenizer is tokenizer
    assert of_texts(vocab_size=5).fit(x, y).model_.vocab_size == 5
    with pytest.raises(ValueError, match="wordpiece"):
        of_texts(tokenizer="words").fit(x, y)
