"""evaluate: the loss and the accuracy, computed by hand."""

import math

import numpy as np
import pytest

import npformer as nf
from npformer.data import stored_samples
from npformer.models.trainable import model as trainable_model
from tests.kernels.cpu.test_memory import peak_of, trace_memory


def by_hand(rows):
    """Return loss and accuracy, one (scores, label) after the other."""
    losses, hits = [], []
    for scores, label in rows:
        losses.append(math.log(math.fsum(math.exp(score) for score in scores)) - scores[label])
        hits.append(max(range(len(scores)), key=lambda c: scores[c]) == label)
    return math.fsum(losses) / len(losses), sum(hits) / len(hits)


@pytest.mark.parametrize("batch_size", [1, 3, 256])
def test_evaluate_is_what_is_computed_by_hand(small_model, token_batch, batch_size):
    ids, labels, mask = token_batch
    model = small_model()
    loss, accuracy = by_hand(zip(model(ids, mask).tolist(), labels.tolist(), strict=True))
    evaluation = nf.evaluate(model, (ids, labels, mask), batch_size)
    assert evaluation.loss == pytest.approx(loss, rel=1e-12)
    assert (evaluation.accuracy, evaluation.labels) == (accuracy, 8)


def test_evaluate_of_tokens_counts_only_those_with_a_label(small_model, token_batch, rng):
    ids, _, mask = token_batch
    model = small_model(pooling="none")
    labels = np.where(mask, rng.integers(0, 3, ids.shape), -1)
    rows = zip(model(ids, mask)[mask].tolist(), labels[mask].tolist(), strict=True)
    loss, accuracy = by_hand(list(rows))
    evaluation = nf.evaluate(model, (ids, labels, mask))
    assert evaluation.loss == pytest.approx(loss, rel=1e-12)
    assert (evaluation.accuracy, evaluation.labels) == (accuracy, mask.sum())


@pytest.mark.parametrize("without", ["labels", "tokens"])
def test_data_without_any_label_are_refused(small_model, token_batch, without):
    ids, _, mask = token_batch
    model = small_model(pooling="none")
    labels = np.zeros(ids.shape, int)
    labels, mask = (labels - 1, mask) if without == "labels" else (labels, np.zeros_like(mask))
    with pytest.raises(ValueError, match="data has no labels; expected at least 1"):
        nf.evaluate(model, (ids, labels, mask))
    with pytest.raises(ValueError, match="data has no labels; expected at least 1"):
        nf.fit(model, (ids, labels, mask), progress=False)
    good = ids, np.zeros(ids.shape, int)
    with pytest.raises(ValueError, match="validation has no labels; expected at least 1"):
        nf.fit(model, good, validation=(ids, labels, mask), progress=False)


@pytest.mark.parametrize(
    "bad",
    [
        np.nan,
        np.inf,
    ],
)
@pytest.mark.parametrize(
    "output",
    [
        "softmax",
        "sigmoid",
        "mean_squared_error",
    ],
)
def test_outputs_that_are_no_numbers_are_refused_with_their_sample(make, data, bad, output):
    model = make(n_classes=2, output=output)
    x, y = data
    x[7, 1, 0] = bad
    y = np.zeros((20, 2)) if output == "mean_squared_error" else y
    wrong = "the outputs for sample 7 are NaN or infinite; expected numbers"
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=wrong):
        nf.evaluate(model, (x, y))


def test_a_class_of_probability_0_is_a_number(make, data):
    model = make(n_classes=3)
    model.parameters()["classify.bias"][2] = -np.inf
    x, y = data
    assert np.isfinite(nf.evaluate(model, (x, y)).loss)
    assert nf.evaluate(model, (x, np.full(20, 2))).accuracy == 0.0


@pytest.mark.parametrize("kept", ["none", "some"])
def test_a_sequence_without_tokens_is_pooled_to_0(small_model, token_batch, kept):
    """Its logits are the bias of the classifier, in predictions, evaluations and gradients."""
    ids, labels, mask = token_batch
    mask = mask.copy()
    mask[3 if kept == "some" else slice(None)] = False
    model = small_model()
    model.parameters()["classify.bias"][...] = [1.0, 3.0, 2.0]
    np.testing.assert_allclose(model(ids, mask)[3], [1.0, 3.0, 2.0])
    assert model.predict(ids, mask)[3] == 1
    empty = "8 of 8" if kept == "none" else "1 of 8"
    with pytest.warns(UserWarning, match=f"^{empty} sequences in data have no token"):
        assert np.isfinite(nf.evaluate(model, (ids, labels, mask)).loss)
    loss, gradients = model.loss_and_gradients(ids, labels, mask)
    assert np.isfinite(loss)
    assert np.isfinite(gradients.flat).all()
    if kept == "none":
        np.testing.assert_array_equal(gradients["encoder.blocks.0.mixer.query.weight"], 0.0)


def test_evaluate_of_a_single_logit_is_what_is_computed_by_hand(make, data):
    model = make(n_classes=2, output="sigmoid")
    z = model(data[0])[:, 0].tolist()
    loss, accuracy = by_hand(([0.0, s], y) for s, y in zip(z, data[1].tolist(), strict=True))
    evaluation = nf.evaluate(model, data)
    assert evaluation.loss == pytest.approx(loss, rel=1e-12)
    assert evaluation.accuracy == accuracy


@pytest.mark.parametrize(
    ("tokens_at_once", "bytes_at_once"),
    [(1, 1), (12, 1), (18, 2 * 8 * 6 * 3), (1, 4 * 8 * 6 * 3)],
    ids=["one sample", "two computed, one measured", "three and two", "four"],
)
def test_parts_of_the_samples_change_no_evaluation(
    small_model, token_batch, rng, monkeypatch, tokens_at_once, bytes_at_once
):
    ids, _, mask = token_batch
    model = small_model(pooling="none")
    labels = np.where(mask, rng.integers(0, 3, ids.shape), -1)
    whole = nf.evaluate(model, (ids, labels, mask))
    monkeypatch.setattr(trainable_model, "TOKENS_AT_ONCE", tokens_at_once)
    monkeypatch.setattr(stored_samples, "BYTES_AT_ONCE", bytes_at_once)
    parts = nf.evaluate(model, (ids, labels, mask))
    assert parts.loss == pytest.approx(whole.loss, rel=1e-12)
    assert parts.macro_f1 == pytest.approx(whole.macro_f1, rel=1e-12)
    assert (parts.accuracy, parts.labels) == (whole.accuracy, whole.labels)


def test_parts_name_the_sample_that_is_nan(small_model, monkeypatch):
    model = small_model(n_features=2, pooling="none", dtype="float64")
    monkeypatch.setattr(trainable_model, "TOKENS_AT_ONCE", 18)
    monkeypatch.setattr(stored_samples, "BYTES_AT_ONCE", 1)
    x = np.zeros((8, 6, 2))
    x[4] = np.nan
    with pytest.raises(ValueError, match="for sample 4 are NaN"):
        nf.evaluate(model, (x, np.zeros((8, 6), int)))


def test_an_evaluation_holds_the_logits_of_some_tokens(monkeypatch):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8, causal=True)
    model = nf.LanguageModel(config, vocab_size=1000)
    ids = np.random.default_rng(0).integers(0, 1000, (128, 9))
    monkeypatch.setattr(trainable_model, "TOKENS_AT_ONCE", 64)
    monkeypatch.setattr(stored_samples, "BYTES_AT_ONCE", 1 << 17)
    nf.evaluate(model, (ids[:8, :-1], ids[:8, 1:]))
    with trace_memory():
        peak = peak_of(lambda: nf.evaluate(model, (ids[:, :-1], ids[:, 1:])))
    assert peak < 4 * ids[:, 1:].size * 1000 / 2, "half of the logits of all tokens, in float32"
