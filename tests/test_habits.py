"""Habits of other libraries: an error or a warning says in a sentence what to write here."""

from collections import ChainMap, deque
from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer.data.series import read_series
from tests.needs import NEEDS

METHODS = "fit", "train", "eval", "evaluate", "save", "state_dict", "compile", "cuda"


@pytest.fixture
def model():
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=4)
    return nf.SequenceClassifier(config, 3, n_features=2)


@pytest.fixture
def data(rng):
    return rng.standard_normal((6, 4, 2), dtype="float32"), np.arange(6) % 3


def test_targets_beside_the_data(model, data):
    with pytest.raises(TypeError, match=r"^fit was given 3 arguments .* fit\(model, \(x, y\)\)"):
        nf.fit(model, *data)


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_other_models(model, name):
    with pytest.raises(AttributeError, match=rf"'SequenceClassifier' has no attribute '{name}'\. "):
        getattr(model, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'other'"):
        model.other  # noqa: B018


OTHERS = {
    "EncoderConfig": "layers=n_layers hidden_size=d_model num_attention_heads=n_heads",
    "Adam": "learning_rate=lr epsilon=eps",
    "SequenceClassifier": "num_labels=n_classes padding_idx=padding_id torch_dtype=dtype",
    "model": "attention_mask=mask key_padding_mask=mask token_type_ids=types",
    "fit": "learning_rate=lr validation_data=validation num_epochs=epochs max_grad_norm=clip_norm",
}


@pytest.mark.parametrize("what", OTHERS)
def test_arguments_under_other_names(model, data, what):
    classifier = "SequenceClassifier"
    call, kind = {
        "EncoderConfig": (nf.EncoderConfig, "EncoderConfig"),
        "Adam": (partial(nf.Adam, model.parameters()), "Adam"),
        classifier: (partial(nf.SequenceClassifier, model.config, 3), classifier),
        "model": (partial(model, data[0]), "SequenceClassifier.__call__"),
        "fit": (partial(nf.fit, model, data), "fit"),
    }[what]
    for pair in OTHERS[what].split():
        name, ours = pair.split("=")
        words = rf"^{kind} takes no '{name}'; it takes .*\b{ours}\b.*\. Did you mean '{ours}'\?$"
        with pytest.raises(TypeError, match=words):
            call(**{name: 3})
    with pytest.raises(
        TypeError, match=rf"^{kind} takes no 'colour'; it takes (?!.*misplaced)[\w, ]*$"
    ):
        call(colour=3)


def test_what_the_package_itself_has_not():
    with pytest.raises(AttributeError, match=r"no attribute 'Transformer'; write npformer.Encoder"):
        nf.Transformer  # noqa: B018
    assert not hasattr(nf, "Linear")


def test_parameters_hold_no_gradients(model, data):
    before = model.parameters().flat.copy()
    with pytest.raises(TypeError, match=r"^gradients is Parameters; expected what model\.loss_"):
        nf.clip_by_global_norm(model.parameters(), 1.0)
    np.testing.assert_array_equal(model.parameters().flat, before)
    nf.clip_by_global_norm(model.loss_and_gradients(*data)[1], 1.0)


def test_arrays_of_other_libraries(model, data):
    torch = pytest.importorskip("torch", reason=NEEDS["torch"])
    for call in (lambda x: model(x), model.predict, lambda x: nf.fit(model, (x, data[1]))):
        with pytest.raises(TypeError, match=r"^x( in data)? is a Tensor; .*numpy\.asarray"):
            call(torch.tensor(data[0]))


@pytest.mark.parametrize("name", ["relu2", "selu", "elu", "gelu_10", "swish", "gelu_fast"])
def test_another_function_is_not_a_misspelt_one(name):
    words = f"^activation is '{name}'; expected one of 'relu'"
    with pytest.raises(ValueError, match=words) as caught:
        nf.EncoderConfig(activation=name)
    assert "Did you mean" not in str(caught.value)


def test_labels_of_minus_100_mark_nothing():
    logits = np.zeros((2, 3))
    labels = np.array([1, -100])
    with pytest.raises(ValueError, match=r"holds -100; .* no label: write -1$"):
        nf.functional.softmax_cross_entropy(logits, labels)


def test_a_mask_that_is_added_to_scores(model, data):
    with pytest.raises(TypeError, match=r"mask = mask == 0 if .* added to scores \(0 and -inf\)"):
        model(data[0], np.where(np.arange(4) < 3, 0.0, -np.inf) + np.zeros((6, 1)))


def test_an_inverted_mask_leaves_sequences_without_a_token(model, data):
    padding = np.arange(4) >= np.array([4, 2, 4, 4, 3, 1])[:, None]
    words = r"^3 of 6 sequences in data have no token, .* write mask = ~mask$"
    with pytest.warns(UserWarning, match=words):
        nf.fit(model, (*data, padding), epochs=1, progress=False)
    nf.fit(model, (*data, ~padding), epochs=1, progress=False)  # which warns of nothing


def test_nan_in_the_data_is_not_blamed_on_the_learning_rate(model, data):
    x, y = data
    x[2, 1, 0] = np.nan
    with pytest.raises(nf.NonFiniteLossError, match=r"is the input x\. Samples with NaN") as caught:
        nf.fit(model, (x, y), progress=False)
    assert "lr" not in str(caught.value)


def test_a_check_of_nothing_does_not_pass():
    relu = nf.functional.relu
    with pytest.raises(ValueError, match=r"relu returned shape \(0, 3\), so there is nothing to c"):
        nf.gradcheck(relu, np.zeros((0, 3)))
    with pytest.raises(nf.GradcheckError, match="nothing was checked: no entry has a derivative"):
        nf.gradcheck(relu, np.zeros((2, 3)))
    assert nf.gradcheck(relu, np.array([0.0, 1.0])).passed


def test_a_temperature_near_nothing_is_none():
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8, causal=True)
    writer = nf.LanguageModel(config, vocab_size=5)
    coldest = writer.generate([1, 2], 5, temperature=0.0)
    np.testing.assert_array_equal(writer.generate([1, 2], 5, temperature=1e-320), coldest)


TEXTS, LABELS = ["good", "bad", "very good", "so bad"] * 3, [1, 0] * 6
SERIES = np.ones((12, 2, 1))
WEIGHTS = np.arange(1.0, 13.0)
SMALL = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8}
QUICK = {"epochs": 1, "progress": False}
IDS = np.arange(24).reshape(12, 2) % 5


def texts(x=TEXTS, y=LABELS, **more):
    return nf.TextClassifier(SMALL, members=1).fit(x, y, **QUICK, **more)


def translator(x=TEXTS, y=TEXTS, **more):
    return nf.TextTranslator(SMALL).fit(x, y, **QUICK, **more)


def through_sklearn(x, y=LABELS, weights=None):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    return nf.sklearn.EncoderClassifier(n_layers=1, max_iter=1).fit(x, y, weights)


def read(tmp_path, features):
    (tmp_path / "s.csv").write_text("id,a,b\n0,1,2\n0,3,4\n")
    return read_series(tmp_path / "s.csv", id="id", features=features).features


ENTRANCES = {
    "texts": (lambda v, _: texts(v), TEXTS),
    "labels": (lambda v, _: texts(y=v), LABELS),
    "labels of scores": (lambda v, _: texts().evaluate(TEXTS, v), LABELS),
    "weights": (lambda v, _: texts(sample_weight=v, validation=0.5), WEIGHTS),
    "class weights": (lambda v, _: nf.losses.SoftmaxCrossEntropy(class_weight=v), [1.0, 2.0]),
    "series": (lambda v, _: nf.SeriesClassifier(SMALL).fit(v, LABELS, **QUICK), SERIES),
    "one series": (lambda v, _: nf.SeriesClassifier(SMALL).fit([v] * 12, LABELS, **QUICK), [1, 2]),
    "validation": (lambda v, _: texts(validation=v), (TEXTS, LABELS)),
    "validation of pairs": (lambda v, _: translator(validation=v), (TEXTS, TEXTS)),
    "targets": (lambda v, _: translator(y=v), TEXTS),
    "targets shown": (
        lambda v, path: translator().report(TEXTS, v, path / "r.html", overwrite=True),
        TEXTS,
    ),
    "ids": (lambda v, _: translator().tokenizers_[0].decode(v), [4, 5]),
    "ids named": (lambda v, _: translator().tokenizers_[0].tokens(v), [4, 5]),
    "X": (lambda v, _: through_sklearn(v), IDS),
    "y": (lambda v, _: through_sklearn(IDS, v), LABELS),
    "sample_weight": (lambda v, _: through_sklearn(IDS, weights=v), WEIGHTS),
    "columns": (lambda v, path: read(path, v), ["a", "b"]),
}
ORDERLESS = {
    "a set": lambda v: {*map(str, v)},
    "a frozenset": lambda v: frozenset(map(str, v)),
    "a mapping": lambda v: dict(enumerate(v)),
    "keys": lambda v: {str(entry): 0 for entry in v}.keys(),
    "a chain of mappings": lambda v: ChainMap(dict(enumerate(v))),
    "hidden entries": lambda v: np.ma.masked_array(np.array(v), mask=np.array(v) == np.array(v)[0]),
}


@pytest.mark.parametrize("what", ORDERLESS)
@pytest.mark.parametrize("where", ENTRANCES)
@pytest.mark.filterwarnings("ignore:.*(few samples|labels to train|repeat)")
def test_what_has_no_order_is_no_list(where, what, tmp_path):
    call, right = ENTRANCES[where]
    call(right, tmp_path)
    words = r"whose entries have an order$|is a masked array; |; expected a fraction of the data, "
    with pytest.raises(TypeError, match=words):
        call(ORDERLESS[what](right), tmp_path)


@pytest.mark.parametrize(
    "made", [iter, tuple, deque, np.array, lambda v: dict(enumerate(v)).values()]
)
def test_what_has_an_order_is_a_list(tmp_path, made):
    expected = texts(validation=(TEXTS, LABELS), sample_weight=WEIGHTS)
    validation = made(TEXTS), made(LABELS)
    classifier = texts(made(TEXTS), made(LABELS), validation=validation, sample_weight=WEIGHTS)
    probabilities = classifier.predict_proba(made(TEXTS))
    np.testing.assert_array_equal(probabilities, expected.predict_proba(TEXTS))
    scores = classifier.evaluate(made(TEXTS), made(LABELS))
    assert str(scores) == str(expected.evaluate(TEXTS, LABELS))
    classifier.report(made(TEXTS), made(LABELS), tmp_path / "r.html", samples=1)
    translator().report(made(TEXTS[:2]), made(TEXTS[:2]), tmp_path / "pairs.html")


def test_half_a_character_is_no_text():
    with pytest.raises(ValueError, match=r"^samples\[12\] has half of a character, .* 'a\\ud800'"):
        nf.TextClassifier().fit([*TEXTS, "a\ud800"], [*LABELS, 1])


def test_a_matrix_is_no_array(model, data):
    """As sparse ones of SciPy become: its rows have two axes, and kernels would read past it."""
    x = data[0]
    mask = np.ones((6, 4), bool).view(np.matrix)
    for call in (lambda: model(x, mask), lambda: nf.to_numpy(mask), lambda: model.predict(x, mask)):
        with pytest.raises(TypeError, match=r"is a matrix; expected an array: numpy.asarray\("):
            call()
