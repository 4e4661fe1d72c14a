"""A step and a weight of every kind of task, beside the package's gradients and its referees."""

import copy
import json

import numpy as np
import pytest

import npformer as nf
from npformer.core import Context
from npformer.learn.play.questions import ask
from npformer.proof.central_difference import STEP
from tests.learn.play.questions.conftest import begun

TASKS = ("digits", "sentences", "parity", "pointer", "text", "reverse")


@pytest.fixture(scope="module", params=TASKS)
def now(request):
    return begun(request.param, 4, dropout=0.0, mixers=["attention", "random_synthesizer"][:1])


def _gradients(now):
    """Return loss and gradients of sample 2 by the public way, without dropout."""
    model = copy.deepcopy(now.training.model)
    for _, layer in model.layers():
        if isinstance(layer, nf.layers.Dropout):  # a text classifier's embedding has one
            layer.rate = 0.0
    inputs, y, masks = now.work.sample(slice(2, 3))
    return model.loss_and_gradients(inputs, y, masks)


def _query(now):
    return next(name for name in now.training.model.trainable() if name.endswith("query.weight"))


def test_every_weight_has_a_box_with_its_gradient(now):
    answer = ask(now, "step", sample=2)
    json.dumps(answer, allow_nan=False)
    loss, gradients = _gradients(now)
    assert answer["loss"] == pytest.approx(loss, rel=1e-5)
    boxed = {p["name"]: p["gradient"] for box in answer["forward"] for p in box["parameters"]}
    assert boxed.keys() == gradients.keys()
    for name, tensor in boxed.items():
        largest = float(np.abs(gradients[name]).max())
        assert tensor["largest"] == pytest.approx(largest, rel=1e-3, abs=1e-6), name
        assert tensor["shape"] == [*gradients[name].shape]


def test_a_weight_in_three_ways(now):
    name = _query(now)
    answer = ask(now, "weight", name=name, index=[1, 2], sample=2)
    _, gradients = _gradients(now)
    scale = float(np.abs(gradients[name]).max())
    assert answer["gradient"] == pytest.approx(gradients[name][1, 2], abs=1e-4 * scale)
    assert answer["complex_step"] == pytest.approx(answer["gradient"], rel=1e-8, abs=1e-15)
    assert answer["no_complex_step"] is None
    best = min(abs(difference["error"]) for difference in answer["differences"])
    assert best < 1e-8
    for difference in answer["differences"]:
        assert difference["error"] == difference["value"] - answer["gradient"]


def test_the_differences_are_those_of_the_referee(digits):
    """With the referee's size of step, the loss of a float64 model moves as the page says."""
    name, at = "encoder.blocks.1.mixer_norm.gamma", 3
    answer = ask(digits, "weight", name=name, index=[at], sample=1)
    x, y = (array[1:2] for array in nf.data.digits().validation)
    model = copy.deepcopy(digits.training.model)
    config = model.config
    double = nf.SequenceClassifier(
        config, 10, n_features=8, pooling="flatten", seed=0, dtype="float64"
    )
    for key, value in model.parameters().items():
        double.parameters()[key][...] = value
    gamma = double.parameters()[name]

    def loss():
        logits, _ = double.forward(x.astype("float64"), Context())
        return float(double.loss.forward(logits, y)[0])

    before = gamma[at]
    sides = []
    for step in (STEP, -STEP):
        gamma[at] = before + step
        sides.append(loss())
    measured = (sides[0] - sides[1]) / (2.0 * STEP)
    assert answer["gradient"] == pytest.approx(measured, rel=1e-6, abs=1e-10)
    nearest = min(answer["differences"], key=lambda difference: abs(np.log(difference["h"] / STEP)))
    assert nearest["value"] == pytest.approx(measured, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_every_mixer_has_its_complex_step_even_beside_relu(mixer):
    run = begun("digits", 1, mixers=[mixer], activation="relu", d_model=8)
    answer = ask(run, "weight", name="embed.tokens.weight", index=[0, 0])
    assert answer["complex_step"] == pytest.approx(answer["gradient"], rel=1e-8, abs=1e-15)
    assert min(abs(difference["error"]) for difference in answer["differences"]) < 1e-8


class _Magnitude(nf.layers.ReLU):
    """|x|, which has no derivative by a complex step."""

    def forward(self, x, context):
        return np.abs(x), np.sign(x)

    def backward(self, dy, cache, gradients):
        return dy * cache


def test_where_a_complex_step_does_not_apply_words_say_so():
    run = begun("digits", 1, activation="relu")
    run.training.model.encoder.blocks[0].feed_forward.activation = _Magnitude()
    answer = ask(run, "weight", name="embed.tokens.weight", index=[0, 0])
    assert answer["complex_step"] is None
    assert answer["no_complex_step"].startswith("The complex step does not apply here: ")
    assert min(abs(difference["error"]) for difference in answer["differences"]) < 1e-8
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize("sizes", [("digits", 64), ("text", 64)])
def test_a_weight_takes_few_forward_passes(sizes):
    """Two passes for each size of step, one for the gradient, one for the complex step."""
    task, width = sizes
    run = begun(task, 1, d_model=width, mixers=["attention"] * 2)
    passes = []

    class _Counted(type(run.training.model.encoder)):
        def forward(self, x, context):
            passes.append(len(x))
            return super().forward(x, context)

    run.training.model.encoder.__class__ = _Counted
    answer = ask(run, "weight", name=_query(run), index=[0, 0])
    assert passes == [1] * (2 * len(answer["differences"]) + 2)
