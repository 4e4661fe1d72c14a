"""scikit-learn's own checks of an estimator, for each kind of inputs and for several mixers."""

import warnings

import pytest
from npformer.sklearn import EncoderClassifier
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from tests.tasks.sklearn.conftest import SMALL

NOT_IDS = "its X are floats between the whole numbers, which are no token ids: {}"
MASKS = "dropout draws a mask for each sample, and a repeated sample gets two"

EXPECTED = {
    "tokens": {
        "check_sample_weight_equivalence_on_dense_data": NOT_IDS.format("rng.rand"),
        "check_classifiers_one_label_sample_weights": NOT_IDS.format("rng.uniform"),
        "check_class_weight_classifiers": NOT_IDS.format("make_blobs"),
    },
    "dropout": {"check_sample_weight_equivalence_on_dense_data": MASKS},
}
"""What may fail, and why, in estimators that are not as they come. Nothing else may."""

QUICK = {**SMALL, "max_iter": 20, "learning_rate": 2e-2, "batch_size": 64}


def expected(estimator):
    name = estimator.inputs if estimator.inputs in EXPECTED else ""
    name = "dropout" if estimator.dropout == 0.1 else name
    return EXPECTED.get(name, {})


@pytest.mark.slow
@parametrize_with_checks([EncoderClassifier(**QUICK, mixer="fourier", class_weight="balanced")])
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        EncoderClassifier(max_iter=20),
        EncoderClassifier(**QUICK, inputs="tokens"),
        EncoderClassifier(**QUICK, inputs="series", dropout=0.1, early_stopping=True),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn_finds_nothing_wrong_with_other_settings(estimator, check):
    check(estimator)


def test_of_texts_scikit_learn_has_no_data_to_check_with():
    """It says so itself; tests of texts stand in test_texts.py."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        checks = list(estimator_checks_generator(EncoderClassifier(inputs="text")))
    assert len(checks) <= 2


@pytest.mark.parametrize("inputs", ["auto", "series"])
def test_nothing_is_expected_to_fail_for_an_estimator_as_it_comes(inputs):
    assert expected(EncoderClassifier(inputs=inputs)) == {}
