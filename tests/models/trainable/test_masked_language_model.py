"""A masked language model is trained as any: what it adds is which tokens it hides, and when."""

from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from npformer.data.masking import MaskedBatch
from npformer.functional import softmax_cross_entropy
from npformer.models.trainable import take_over
from tests.training.distributed.fake_ranks import run_threads

V = 30
CONFIG = nf.EncoderConfig(d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=9, dropout=0.1)


def texts(n=22, seed=0):
    """Return ids of sequences in which the next token is the last one plus 1, and their mask."""
    rng = np.random.default_rng(seed)
    mask = np.arange(9) < rng.integers(4, 10, n)[:, None]
    ids = 3 + (rng.integers(0, V - 3, (n, 1)) + np.arange(9)) % (V - 3)
    return np.where(mask, ids, 0), None, mask


def model_of(seed=1, **changes):
    config = replace(CONFIG, **{k: changes.pop(k) for k in [*changes] if hasattr(CONFIG, k)})
    defaults = {"mask_id": 2, "padding_id": 0, "special_ids": [1], "dtype": "float64"}
    return nf.MaskedLanguageModel(config, V, **(defaults | {"seed": seed} | changes))


def train(model=None, data=None, **changes):
    model = model or model_of()
    defaults = {"epochs": 3, "batch_size": 5, "lr": 1e-2, "seed": 3, "progress": False}
    defaults |= {"validation": texts(7, seed=1), "workers": 1}
    history = nf.fit(model, texts() if data is None else data, **(defaults | changes))
    return model, history


def assert_same(one, other, bound=0.0):
    for name, value in one.parameters().items():
        if bound == 0.0 or not name.endswith("key.bias"):  # a gradient of 0, but for rounding
            other_value = other.parameters()[name]
            np.testing.assert_allclose(other_value, value, rtol=0, atol=bound, err_msg=name)


@pytest.fixture
def hidden_steps(monkeypatch):
    """Return what is hidden in each step, once it is drawn."""
    steps = []
    anew = MaskedBatch.anew

    def record_step(batch, key, first):
        new = anew(batch, key, first)
        steps.append((new.inputs[0].x.copy(), new.y.copy()))
        return new

    monkeypatch.setattr(MaskedBatch, "anew", record_step)
    return steps


def test_only_the_hidden_tokens_count():
    ids, _, mask = texts()
    model = model_of(dropout=0.0)
    x, y = nf.data.mask_tokens(ids, mask, V, 2, np.random.default_rng(0), special_ids=[0, 1])
    loss, gradients = model.loss_and_gradients(x, y, mask)
    logits, cache = model.forward(x, nf.Context(mask=mask))
    assert logits.shape == (*ids.shape, V)
    by_hand, loss_cache = softmax_cross_entropy(logits, y)
    np.testing.assert_allclose(loss, by_hand, rtol=1e-12)
    of_all = nf.Gradients(model)
    model.backward(model.loss.backward(1.0, loss_cache), cache, of_all)
    for name, value in of_all.items():
        np.testing.assert_allclose(gradients[name], value, rtol=0, atol=1e-12, err_msg=name)
    for options in ({"workers": 2}, {"micro_batch": 3}):
        again, shared = model.loss_and_gradients(x, y, mask, **options)
        np.testing.assert_allclose(again, loss, rtol=1e-12)
        np.testing.assert_allclose(shared.flat, gradients.flat, rtol=0, atol=1e-12)
    with nf.use_kernels(False):
        plain, as_written = model.loss_and_gradients(x, y, mask)
    np.testing.assert_allclose(plain, loss, rtol=1e-12)
    np.testing.assert_allclose(as_written.flat, gradients.flat, rtol=0, atol=1e-12)
    tables = [name for name in model.parameters() if name.endswith("tokens.weight")]
    assert tables == ["embed.tokens.weight"], "the table is one parameter"


def train_five_steps(x, y, mask):
    return train(data=(x, y, mask), batch_size=6, epochs=5, batches="shuffled")


def test_other_tokens_are_hidden_in_each_epoch(hidden_steps):
    ids, _, mask = texts(6)
    train_five_steps(ids, None, mask)
    hidden = []
    for inputs, targets in hidden_steps:
        rows = zip(inputs, targets, strict=True)
        hidden.append({tuple(np.where(y >= 0, y, x)): tuple(y) for x, y in rows})
    assert all(set(targets_of_row) == {tuple(row) for row in ids} for targets_of_row in hidden)
    for row in ids:
        assert len({targets_of_row[tuple(row)] for targets_of_row in hidden}) > 1


def test_a_second_training_hides_the_same_tokens(hidden_steps):
    ids, _, mask = texts(6)
    train_five_steps(ids, None, mask)
    train_five_steps(ids, None, mask)
    assert len(hidden_steps) == 10
    np.testing.assert_array_equal(hidden_steps[5:], hidden_steps[:5])


def test_tokens_that_the_user_has_hidden_stay_hidden(hidden_steps):
    ids, _, mask = texts(6)
    x, y = nf.data.mask_tokens(ids, mask, V, 2, np.random.default_rng(0))
    train_five_steps(x, y, mask)
    assert len(hidden_steps) == 5
    for step in hidden_steps:
        for rows, user_rows in zip(step, (x, y), strict=True):
            assert sorted(map(tuple, rows)) == sorted(map(tuple, user_rows))


def test_every_evaluation_hides_the_same_tokens():
    ids, _, mask = texts(6)
    model = model_of()
    assert nf.evaluate(model, texts(7)) == nf.evaluate(model, texts(7))
    evaluations = [
        nf.evaluate(model, (ids[i : i + 3], ids[i : i + 3], mask[i : i + 3])) for i in (0, 3)
    ]
    evaluation_of_all = nf.evaluate(model, (ids, None, mask), batch_size=2)
    assert evaluation_of_all.labels == sum(evaluation.labels for evaluation in evaluations)
    total = sum(evaluation.loss * evaluation.labels for evaluation in evaluations)
    np.testing.assert_allclose(evaluation_of_all.loss * evaluation_of_all.labels, total, rtol=1e-12)


def test_resumed_it_is_the_training_that_was_not_stopped(tmp_path):
    once, history = train(epochs=4)

    def stop(state):
        if state.epoch == 2:
            state.stop("enough")

    class InTheMiddle(nf.Callback):
        def after_step(self, state):
            if state.step == 7:
                state.stop("enough")

    for name, callback in (("epoch", stop), ("step", InTheMiddle())):
        folder = tmp_path / name
        train(epochs=4, checkpoint=folder, callbacks=[callback])
        model, resumed = train(epochs=4, checkpoint=folder, resume=True)
        assert_same(model, once)
        assert resumed.train_loss == history.train_loss
        assert resumed.validation_loss == history.validation_loss


CHANGES = pytest.mark.parametrize(
    "changes",
    [
        {"batches": "shuffled"},
        {"mixer": "fourier", "padding": "per_length"},
        {"continues": range(5, V, 2)},  # of whole words, not always equally many tokens are hidden,
    ],
)


def train_with(changes, **options):
    """Train; some of the changes are of the model, the others of fit."""
    of_model = {n: changes[n] for n in ("mixer", "padding", "continues") if n in changes}
    of_fit = {name: value for name, value in changes.items() if name not in of_model}
    return train(model_of(**of_model), **of_fit, **options)


@CHANGES
@pytest.mark.parametrize("sharing", [{"workers": 2}, {"micro_batch": 2}], ids=str)
def test_workers_hide_the_same_tokens(changes, sharing):
    expected, _ = train_with(changes)
    model, _ = train_with(changes, **sharing)
    assert_same(model, expected, 1e-9)


@CHANGES
def test_ranks_hide_the_same_tokens(changes):
    expected, history = train_with(changes)
    for model, history_of_rank in run_threads(3, lambda r: train_with(changes, communicator=r)):
        assert_same(model, expected, 1e-9)
        for name in ("train_loss", "validation_loss", "validation_accuracy"):
            value = getattr(history_of_rank, name)
            np.testing.assert_allclose(value, getattr(history, name), rtol=0, atol=1e-9)


def test_texts_in_files_are_learned_as_those_in_memory(tmp_path):
    stored = []
    for name, array in zip("xym", texts(), strict=True):
        if array is not None:
            np.save(tmp_path / f"{name}.npy", array)
            array = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        stored.append(array)
    _, history = train()
    model, of_files = train(data=tuple(stored), validation=tuple(stored))
    assert of_files.train_loss == history.train_loss
    again, of_memory = train(validation=texts())
    np.testing.assert_allclose(of_files.validation_loss, of_memory.validation_loss, rtol=1e-12)
    assert_same(model, again)


@pytest.fixture(scope="module")
def learned():
    """Return a model that was trained for 30 epochs, and its history."""
    return train(model_of(dropout=0.0), texts(200), epochs=30, batch_size=20)


def test_it_learns(learned):
    _, history = learned
    assert max(history.validation_accuracy) > 0.5  # the most frequent token: about 0.04


def test_it_expects_a_mask(learned):
    model, _ = learned
    assert model.expects_mask


def test_it_is_saved_with_its_choice_of_hidden_tokens(learned, tmp_path):
    model, _ = learned
    nf.save(model, tmp_path / "model.safetensors")
    loaded = nf.load(tmp_path / "model.safetensors")
    assert loaded.arguments() == model.arguments()
    assert_same(loaded, model)
    assert nf.evaluate(loaded, texts(9)) == nf.evaluate(model, texts(9))
    ids, _, mask = texts(3)
    np.testing.assert_array_equal(loaded.predict(ids, mask), model.predict(ids, mask))


def test_it_is_saved_with_the_tokens_that_continue_words(tmp_path):
    words = model_of(continues=[4, 7], mask_share=0.3)
    nf.save(words, tmp_path / "words.safetensors")
    assert nf.load(tmp_path / "words.safetensors").hiding.continues == [4, 7]


def test_an_encoder_is_handed_on():
    pretrained = model_of()
    config = replace(pretrained.config, dropout=0.3)
    model = nf.SequenceClassifier(config, 3, vocab_size=V, dtype="float64", seed=5)
    before = {name: value.copy() for name, value in model.parameters().items()}
    assert take_over(model, pretrained) is model
    for name, value in model.parameters().items():
        same = name.startswith(("embed.", "encoder."))
        expected = pretrained.parameters()[name] if same else before[name]
        np.testing.assert_array_equal(value, expected, err_msg=name)
    for changes, message in (
        ({"norm": "pre"}, "norm is 'pre', there 'post'"),
        ({"d_ff": 16}, "d_ff is 16, there 12"),
    ):
        other = nf.SequenceClassifier(replace(config, **changes), 3, vocab_size=V, dtype="float64")
        with pytest.raises(ValueError, match=message):
            take_over(other, pretrained)
    other = nf.SequenceClassifier(config, 3, vocab_size=V + 1, dtype="float64")
    with pytest.raises(ValueError, match="the tokenizer with which it was trained"):
        take_over(other, pretrained)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda: nf.MaskedLanguageModel(replace(CONFIG, causal=True), V), ValueError, "both sides"),
        (lambda: model_of(mask_id=V), ValueError, "mask_id is 30"),
        (lambda: model_of(mask_share=1.5), ValueError, "mask_share is 1.5"),
        (lambda: train(data=texts()[0]), TypeError, r"needs no y: \(x, None, mask\)"),
        (lambda: train(data=(texts()[0] + 20, None)), ValueError, "vocab_size is 30"),
        (lambda: train(data=(texts()[0] * 1.0, None)), TypeError, "float64"),
        (lambda: train(data=(texts()[0] * 0, None, texts()[2])), ValueError, "no labels"),
    ],
)
def test_wrong_arguments_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        change()
