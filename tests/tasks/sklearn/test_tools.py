"""scikit-learn's own checks, and its tools: pipelines, searches, copies, files, routing."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from joblib.externals.loky import get_reusable_executor
from npformer.sklearn import EncoderClassifier
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import (
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from tests.needs import NEEDS
from tests.tasks.sklearn.conftest import SMALL


@pytest.fixture
def table(rng):
    """A table (90, 3) with two classes."""
    x = rng.standard_normal((90, 3))
    return x, np.where(x[:, 0] - x[:, 1] > 0, "yes", "no")


@pytest.fixture
def pipeline(small):
    return make_pipeline(StandardScaler(), small(max_iter=3))


def test_a_pipeline_is_cross_validated(pipeline, table):
    pipeline.set_params(encoderclassifier__max_iter=60)
    assert cross_val_score(pipeline, *table, cv=3).mean() > 0.75


def test_a_pipeline_gives_probabilities_in_cross_validation(pipeline, table):
    p = cross_val_predict(pipeline, *table, cv=2, method="predict_proba")
    assert p.shape == (90, 2)


def test_a_pipeline_is_scored_by_several_metrics(pipeline, table):
    scoring = ["accuracy", "roc_auc", "neg_log_loss", "f1_macro"]
    scores = cross_validate(pipeline, *table, cv=2, scoring=scoring)
    assert all(np.isfinite(scores[f"test_{name}"]).all() for name in scoring)


def test_every_argument_can_be_searched(small):
    estimator = small()
    names = set(estimator.get_params())
    assert {"mixer", "max_iter", "learning_rate", "class_weight", "random_state"} <= names
    for name in names:
        estimator.set_params(**{name: estimator.get_params()[name]})
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        estimator.set_params(depth=3)


@pytest.fixture
def no_idle_processes():
    """End joblib's processes, which would wait for more work beside the tests that follow."""
    yield
    get_reusable_executor().shutdown(wait=True)


@pytest.mark.processes
@pytest.mark.usefixtures("no_idle_processes")
def test_a_search_in_processes(small, table):
    distributions = {"learning_rate": [1e-3, 1e-2], "pooling": ["mean", "flatten"]}
    search = RandomizedSearchCV(
        small(max_iter=3), distributions, n_iter=2, cv=2, n_jobs=2, random_state=0
    )
    assert 0.0 <= search.fit(*table).best_score_ <= 1.0


@pytest.fixture(params=["float32", "float64"])
def fitted(request, small, table):
    return small(dtype=request.param, early_stopping=True).fit(*table)


def test_a_clone_is_not_trained(fitted):
    assert not hasattr(clone(fitted), "model_")


def test_a_clone_trains_to_the_same(fitted, table):
    x, y = table
    again = clone(fitted).fit(x, y)
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))


def test_a_pickle_predicts_the_same(fitted, table):
    x, _ = table
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))


def test_a_file_of_joblib_predicts_the_same(fitted, table, tmp_path):
    x, _ = table
    joblib.dump(fitted, tmp_path / "classifier.joblib")
    again = joblib.load(tmp_path / "classifier.joblib")
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))
    assert again.get_params() == fitted.get_params()
    assert again.loss_curve_ == fitted.loss_curve_


def test_frames_keep_their_names(small, table):
    pandas = pytest.importorskip("pandas", reason=NEEDS["pandas"])
    x, y = table
    frame = pandas.DataFrame(x, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), small()).set_output(transform="pandas")
    pipeline.fit(frame, pandas.Series(y))
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipeline.score(frame, y) > 0.7
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline[-1].predict(frame.rename(columns={"a": "z"}))


def test_sample_weights_are_routed(small, table):
    x, y = table
    weights = np.where(y == "yes", 1.0, 1e-3)
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = small().set_fit_request(sample_weight=True)
        classifier.set_score_request(sample_weight=True).set_partial_fit_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), classifier)
        pipeline.fit(x, y, sample_weight=weights)
        assert (pipeline.predict(x) == "yes").mean() > 0.7
        scores = cross_validate(classifier, x, y, cv=2, params={"sample_weight": weights})
        assert scores["test_score"].min() > 0.7


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
    """It says so itself; tests of texts stand in test_samples.py."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        checks = list(estimator_checks_generator(EncoderClassifier(inputs="text")))
    assert len(checks) <= 2


@pytest.mark.parametrize("inputs", ["auto", "series"])
def test_nothing_is_expected_to_fail_for_an_estimator_as_it_comes(inputs):
    assert expected(EncoderClassifier(inputs=inputs)) == {}
