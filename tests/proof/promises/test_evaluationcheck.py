"""evaluationcheck: the same output twice, alone as in a batch, and without traces of others."""

import numpy as np
import pytest

import npformer as nf
from tests.proof.promises.attention import Attention

X = np.random.default_rng(0).normal(size=(3, 5, 8))


class BatchNorm:
    def __init__(self):
        self.training = True
        self.mean = 0.0

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(axis=(0, 1))
            return x - x.mean(axis=(0, 1))
        return x - self.mean


class MeanOfTheBatch(BatchNorm):
    def forward(self, x):
        return x - x.mean(axis=(0, 1))


class MovesAtEvaluation(BatchNorm):
    def forward(self, x):
        y = x - self.mean
        self.mean = 0.9 * self.mean + 0.1 * x.mean(axis=(0, 1))
        return y


class RemembersOthers(BatchNorm):
    def __init__(self):
        super().__init__()
        self.largest = 0.0

    def forward(self, x):
        self.largest = max(self.largest, float(np.abs(x).max()))
        return x / self.largest


class Draws(BatchNorm):
    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)

    def forward(self, x):
        return x * (self.rng.random(x.shape) > 0.2)


class ChangesItsInput(BatchNorm):
    def forward(self, x):
        x += 1.0
        return x.copy()


class DropsAnAxisAlone(BatchNorm):
    def forward(self, x):
        return x.squeeze()


@pytest.mark.parametrize(
    "layer",
    [
        BatchNorm(),
        Attention(),
        nf.layers.Dropout(0.5),
        nf.layers.LayerNorm(8, dtype="float64"),
        nf.layers.LayerNorm(8),
    ],
)
def test_a_right_evaluation_passes(layer):
    dtype = "float32" if "float32" in str(getattr(layer, "gamma", "")) else "float64"
    assert nf.evaluationcheck(layer, X.astype(dtype)).passed


class AlmostAlone(BatchNorm):
    def forward(self, x):
        return x * x.dtype.type(1.0 + 1e-6 * len(x))


def test_rounding_passes_in_float32():
    assert nf.evaluationcheck(AlmostAlone(), X.astype("float32")).passed


def test_a_small_part_of_the_batch_does_not_pass_in_float64():
    with pytest.raises(nf.PromiseError, match="does it use the mean of the batch"):
        nf.evaluationcheck(AlmostAlone(), X)


def test_a_mask_goes_with_its_sample():
    mask = np.arange(5) < np.array([[5], [3], [2]])
    assert nf.evaluationcheck(Attention(), X, mask=mask).passed


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (MeanOfTheBatch, "does it use the mean of the batch?"),
        (MovesAtEvaluation, "the same output twice: they differ by"),
        (RemembersOthers, "other samples leave no trace: afterwards the output differs"),
        (Draws, "the same output twice: they differ by"),
        (ChangesItsInput, "inputs are left as they were: a forward pass changes its input"),
        (DropsAnAxisAlone, "alone it has shape (5, 8), not (1, 5, 8)"),
    ],
)
def test_a_broken_promise_of_evaluation_is_named(kind, words):
    with pytest.raises(nf.PromiseError) as error:
        nf.evaluationcheck(kind(), X)
    assert words in str(error.value)


def test_a_layer_stays_as_it_is():
    layer = BatchNorm()
    nf.evaluationcheck(layer, X)
    assert layer.training


@pytest.mark.parametrize("inputs", [(), (X[:1],), (X.tolist(),)])
def test_inputs_without_two_samples_are_refused_in_words(inputs):
    with pytest.raises((TypeError, ValueError), match="expected"):
        nf.evaluationcheck(Attention(), *inputs)
