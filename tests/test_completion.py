"""Tab completion shows what users need: inner steps and the hooks of subclasses are left out."""

import pytest

import npformer as nf
from npformer.models.trainable import model as models
from npformer.tasks.estimators import estimator

CONFIG = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=4)
METHODS_OF_CLASSIFIERS = [
    "evaluate",
    "fit",
    "get_params",
    "history_",
    "model",
    "predict",
    "predict_proba",
    "report",
    "score",
    "set_params",
    "to",
]


def methods_of(shown):
    """Return the public names that completion shows, without settings."""
    settings = vars(shown) if isinstance(shown, nf.Model) else shown.get_params()
    return {name for name in dir(shown) if name[0] != "_" and name not in settings}


@pytest.fixture
def model():
    return nf.SequenceClassifier(CONFIG, 3, n_features=2)


def test_a_series_classifier_shows_its_methods():
    assert methods_of(nf.SeriesClassifier()) == {*METHODS_OF_CLASSIFIERS}


def test_a_text_classifier_also_explains():
    expected = {*METHODS_OF_CLASSIFIERS, "explain", "tokenizer_"}
    assert methods_of(nf.TextClassifier()) == expected


def test_a_model_shows_what_users_call(model):
    shown = {"predict", "predict_probabilities", "explain", "freeze", "parameters", "to"}
    assert shown <= methods_of(model)


@pytest.mark.parametrize("name", sorted(estimator.HOOKS))
def test_each_hidden_name_of_an_estimator_exists(name):
    assert hasattr(nf.TextClassifier, name)


@pytest.mark.parametrize("name", sorted(models.HOOKS))
def test_each_hidden_name_of_a_model_exists(name):
    assert hasattr(nf.SequenceClassifier, name)


def test_completion_shows_no_hook_of_a_model(model):
    assert not models.HOOKS & {*dir(model)}


def public(module):
    """Return the names without underscores that completion shows of a module."""
    return {name for name in dir(module) if not name.startswith("_")}


def test_the_package_shows_its_public_names_alone():
    assert public(nf) == {*nf.__all__}


@pytest.mark.parametrize("name", sorted({*nf.MODULES} - {"sklearn"}))
def test_a_public_module_shows_its_public_names_alone(name):
    module = getattr(nf, name)
    assert public(module) == {*module.__all__}
