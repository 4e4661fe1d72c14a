"""Wrong models, and wrong calls of models from outside: the error says what to do."""

import re
from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer.models.losses import MeanSquaredError, SoftmaxCrossEntropy
from tests.models.trainable.outside import FEATURES, Regressor, Similarity, Tagger, data_of
from tests.models.trainable.outside import MODELS as OUTSIDE

X, Y, MASK = data_of("regressor")
IDS, NEXT, OF_IDS = data_of("next token")
(A, B), SIMILAR, (OF_A, OF_B) = data_of("similarity")

WITH_NAN = B.copy()
WITH_NAN[4, 2, 1] = np.nan


S = "similarity"
R = "regressor"
N = "next token"
PAIR = (A, B)
T, V, NON_FINITE = TypeError, ValueError, nf.NonFiniteLossError
COUNTS_ALL = "counts the targets of all tokens, and there is a padding mask"


@pytest.mark.parametrize(("name", "data", "options", "error", "message"), [
    (S, (A, SIMILAR), {}, T, "x is an ndarray; expected a tuple of 2"),
        (R, ((X, X), Y), {}, T, "x is a tuple of 2; expected one array"),
        (S, (PAIR, SIMILAR, OF_A), {}, T, "mask is an ndarray; expected a tuple of 2"),
        (S, (PAIR, SIMILAR, (OF_B, OF_A)), {}, V,
         "in data, mask[0] has shape (20, 5); expected (20, 6)"),
        (S, (PAIR, SIMILAR, (None, OF_A)), {}, V,
         "in data, mask[1] has shape (20, 6); expected (20, 5)"),
        (S, (PAIR, SIMILAR, (OF_A, OF_B), (OF_A * 1,) * 2), {}, V,
         "types[1] has shape (20, 6); expected (20, 5)"),
        (R, (X, Y, MASK[:, :4]), {}, V, "mask has shape (20, 4)"),
        (S, ((A, B[:3]), SIMILAR), {}, V, "x[1] in data has 3 samples and x has 20"),
        (S, (PAIR, SIMILAR, (OF_A, OF_B[:3])), {}, V, "mask[1] in data has 3 samples"),
        (R, (X, Y[:, :1].copy()), {}, V, "y has shape (20, 1); expected"),
        (N, (IDS, NEXT + 5), {}, V, "y holds 11; expected whole numbers from 0"),
        ("tagger", ((A, IDS[:, :5]), IDS), {}, V, "y has shape (20, 6); expected (20, 5)"),
        (R, (X, Y), {"label_smoothing": 0.1}, T, "has no labels; expected 0"),
        (R, (X, Y), {"metric": "closeness"}, V, "expected one of 'accuracy'"),
        (R, (X, Y), {"loss": SoftmaxCrossEntropy()}, V, "if this is one-hot"),
        (N, (X, Y), {"loss": MeanSquaredError()}, V, "y has shape"),
        (N, (IDS, np.eye(7)[NEXT], OF_IDS), {"loss": MeanSquaredError()}, V, COUNTS_ALL),
        (S, ((A, WITH_NAN), SIMILAR), {}, NON_FINITE,
         "the first tensor that holds NaN or infinity is the input b"),
        (S, ((WITH_NAN, A), SIMILAR), {}, NON_FINITE, "is the input a. Samples with NaN"),
])  # fmt: skip
def test_wrong_calls_are_refused(name, data, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        nf.fit(OUTSIDE[name](), data, progress=False, **options)


def test_outputs_that_are_not_numbers_are_told():
    with pytest.raises(ValueError, match=r"the outputs for sample 4 are NaN or infinite"):
        nf.evaluate(Similarity(), ((A, WITH_NAN), SIMILAR))


def test_a_model_without_classes_predicts_no_labels(tmp_path):
    with pytest.raises(TypeError, match="kind is 'labels' and a MeanSquaredError has no classes"):
        nf.predict_to_file(tmp_path / "p.npy", Regressor(), X, kind="labels")
    assert not list(tmp_path.iterdir())


def test_a_model_without_classes_predicts_no_probabilities(tmp_path):
    with pytest.raises(TypeError, match=r"has no classes; .* kind='outputs'"):
        nf.predict_to_file(tmp_path / "p.npy", Regressor(), X)
    with pytest.raises(TypeError, match=r"has no classes; .* outputs are model\(x\)"):
        Regressor().predict_probabilities(X)
    assert not list(tmp_path.iterdir())


class Nothing(nf.Model):
    def __init__(self):
        self.read = nf.layers.Linear(FEATURES, 2, seed=0, dtype="float64")
        self.flatten()

    def forward(self, x, context):
        return self.read.forward(x, context)

    def backward(self, dy, cache, gradients):
        return self.read.backward(dy, cache, gradients)


def test_a_model_without_a_loss_computes_outputs():
    assert Nothing()(X).shape == (20, 6, 2)


def test_a_model_without_a_loss_says_that_it_needs_one():
    model = Nothing()
    expected = r"Nothing has no loss; expected one\. Set self\.loss in __init__"
    for call in (nf.fit, nf.evaluate):
        with pytest.raises(AttributeError, match=expected):
            call(model, (X, Y))
    for method in (model.predict, model.predict_probabilities):
        with pytest.raises(AttributeError, match=expected):
            method(X)
    with pytest.raises(AttributeError, match=expected):
        model.loss_and_gradients(X, Y)


def test_a_loss_of_classes_needs_their_number():
    model = Nothing()
    model.loss = SoftmaxCrossEntropy()
    with pytest.raises(TypeError, match="Nothing has no n_classes"):
        nf.fit(model, (X, np.zeros(len(X), int)), progress=False)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"loss": MeanSquaredError}, TypeError, "loss of Own is the class MeanSquaredError"),
        ({"loss": "mean_squared_error"}, TypeError, "loss of Own is a str; expected a Loss"),
        ({"n_inputs": 3}, ValueError, "n_inputs of Own is 3; expected 1 or 2"),
        ({"targets_of": 1}, ValueError, "targets_of of Own is 1, and n_inputs is 1"),
        ({"targets_of": "tokens"}, ValueError, "targets_of of Own is 'tokens'"),
        ({"figures": {"mine": 3}}, TypeError, r"figures\['mine'\] of Own is 3; expected a func"),
        ({"figures": {"loss": len}}, ValueError, "figures of Own has 'loss', which every"),
    ],
)
def test_what_a_model_says_is_checked(changes, error, message):
    model = type("Own", (Regressor,), changes)()
    for call in (partial(nf.fit, validation=(X, Y)), nf.evaluate):
        with pytest.raises(error, match=message):
            call(model, (X, Y))


def test_another_layer_is_no_model():
    for call in (nf.fit, nf.evaluate):
        with pytest.raises(TypeError, match=r"model is a Linear; expected a Model\. Seq"):
            call(nf.layers.Linear(2, 2, seed=0), (X, Y))
        with pytest.raises(
            TypeError, match=r"expected a Model\. A TextClassifier has its own methods"
        ):
            call(nf.TextClassifier(), (["a"], [0]))


@pytest.mark.parametrize("kind", [Similarity, Tagger])
def test_gradcheck_tells_that_there_is_one_gradient_for_two_inputs(kind):
    """A training does not ask for the gradients of its data, so it cannot tell."""

    class Forgetful(kind):
        def backward(self, dy, cache, gradients):
            return super().backward(dy, cache, gradients)[0]

    b = B if kind is Similarity else IDS
    with pytest.raises(TypeError, match=r"Forgetful returned an ndarray; expected \(da, db\)"):
        nf.gradcheck(Forgetful(), A[:3], b[:3])


def test_a_model_of_numbers_need_not_say_how_many():
    quiet = type("Quiet", (Regressor,), {"n_classes": None})
    expected = nf.fit(Regressor(), (X, Y, MASK), progress=False).train_loss
    assert nf.fit(quiet(), (X, Y, MASK), progress=False).train_loss == expected
    with pytest.raises(ValueError, match=r"y has shape \(20,\); expected \(20, n_outputs\)"):
        nf.fit(quiet(), (X, Y[:, 0].copy()), progress=False)
    with pytest.raises(ValueError, match=r"target has shape \(20, 1\); expected \(20, 2\)"):
        nf.fit(quiet(), (X, Y[:, :1].copy()), progress=False)
