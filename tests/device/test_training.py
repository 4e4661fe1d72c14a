"""Weights, types, frozen layers and word vectors on the fake device: the numbers of NumPy."""

from typing import Any

import numpy as np
import pytest

from npformer import to_numpy
from npformer.interop import set_word_vectors
from npformer.models.losses import SoftmaxCrossEntropy
from tests.device.cases import IDS, LABELS, MASK, classifier, fit, same

pytestmark = pytest.mark.usefixtures("plain")

WEIGHTS = np.linspace(0.0, 2.0, len(LABELS))


@pytest.mark.parametrize("micro_batch", [None, 1])
@pytest.mark.parametrize("pooling", ["mean", "none"])
def test_a_weighted_step(micro_batch: int | None, pooling: str) -> None:
    results: list[Any] = []
    labels = LABELS if pooling == "mean" else np.broadcast_to(LABELS[:, None], IDS.shape).copy()
    for name in ("numpy", "fake"):
        model = classifier("float64", pooling=pooling).to(name)
        loss = SoftmaxCrossEntropy(0.1, [0.5] + [2.0] * (model.n_classes - 1))
        loss, gradients = model.loss_and_gradients(
            IDS, labels, MASK, sample_weight=WEIGHTS, loss=loss, micro_batch=micro_batch
        )
        results.append({"loss": np.array(loss), **gradients})
    same(*results)


def test_a_weighted_step_stays_float32() -> None:
    model = classifier("float32").to("fake")
    loss = SoftmaxCrossEntropy(np.float64(0.1), np.ones(model.n_classes))
    _, gradients = model.loss_and_gradients(IDS, LABELS, MASK, sample_weight=WEIGHTS, loss=loss)
    assert gradients.flat.dtype == "float32"


def test_fit_with_everything() -> None:
    histories, models = [], []
    for name in ("numpy", "fake"):
        model = classifier("float64", dropout=0.2, n_token_types=2).to(name)
        model.freeze("embed.tokens*", "encoder.blocks.0.*")
        data = IDS, LABELS, MASK, IDS % 2
        history = fit(
            model,
            data,
            validation=data,
            sample_weight=WEIGHTS,
            class_weight="balanced",
            metric="macro_f1",
            accumulate=2,
        )
        histories.append({"loss": history.train_loss, "metric": history.validation_metric})
        models.append({name: p.value for name, p in model.named_parameters().items()})
    same(histories[0], histories[1])
    same(models[0], models[1])


def test_word_vectors_are_set_on_the_device() -> None:
    model = classifier("float32").to("fake")
    words = [f"w{i}" for i in range(model.vocab_size)]
    vector = np.arange(model.config.d_model, dtype="float64")
    assert set_word_vectors(model, words, {"w2": vector}) == 1
    table = to_numpy(model.embed.tokens.weight.value)
    np.testing.assert_array_equal(table[2], vector.astype("float32"))


def test_a_frozen_table_moves_with_its_model() -> None:
    model = classifier("float32").to("fake")
    expected = to_numpy(model.embed.tokens.weight.value)
    model.freeze("embed.tokens*")
    table = model.to("numpy").frozen()["embed.tokens.weight"].value
    np.testing.assert_array_equal(table, expected)
    assert model.parameters().flat is not None
