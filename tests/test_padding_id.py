"""A mask is never forgotten: a model knows its padding, or that it was trained with masks."""

import copy
import warnings

import numpy as np
import pytest

import npformer as nf

MASK_MADE = "tokens with the id 0, the model's padding_id, are taken for padding"
MASK_MISSING = "there is no mask, and the model was trained with masks"


def data(n=24, length=7, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.arange(length) < rng.integers(2, length, size=n)[:, None]
    x = np.where(mask, rng.integers(1, 12, size=(n, length)), 0)
    return x, rng.integers(0, 2, size=n), mask


def model_of(**more):
    config = nf.EncoderConfig(d_model=16, n_layers=1, n_heads=2, d_ff=16, max_len=7)
    settings = {"vocab_size": 12, "dtype": "float64"} | more
    return nf.SequenceClassifier(config, 2, **settings)


def test_a_mask_is_made_of_the_padding_id():
    x, y, mask = data()
    model = model_of(padding_id=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(model(x), model(x, mask), rtol=1e-12)
        assert nf.evaluate(model, (x, y)) == nf.evaluate(model, (x, y, mask))
        loss, gradients = model.loss_and_gradients(x, y)
        expected_loss, expected = model.loss_and_gradients(x, y, mask)
    assert loss == expected_loss
    assert all((gradients[name] == expected[name]).all() for name in gradients)


def test_one_warning_tells_that_a_mask_is_made():
    x, y, mask = data()
    model = model_of(padding_id=0)
    with pytest.warns(UserWarning, match=MASK_MADE):
        probabilities = model.predict_probabilities(x)
    expected = model_of().predict_probabilities(x, mask)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(x)
        nf.evaluate(model, (x, y))
        model.loss_and_gradients(x, y)


@pytest.mark.filterwarnings("error")
def test_a_mask_that_is_given_counts():
    x, _, mask = data()
    probabilities = model_of(padding_id=0).predict_probabilities(x, np.ones_like(mask))
    expected = model_of().predict_probabilities(x)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_full_sequences_need_no_mask():
    x, _, _ = data()
    model = model_of(padding_id=0)
    full = np.maximum(x, 1)
    np.testing.assert_array_equal(model.predict(full), model.predict(full, full > 0))


def test_fit_remembers_the_padding_of_its_data():
    x, y, mask = data()
    model = model_of()
    nf.fit(model, (x, y, mask), epochs=1, progress=False)
    assert (model.padding_id, model.expects_mask) == (0, True)
    ambiguous = model_of()
    nf.fit(ambiguous, (np.where(mask, x, 1), y, mask), epochs=1, progress=False)
    assert (ambiguous.padding_id, ambiguous.expects_mask) == (None, True)
    without = model_of()
    nf.fit(without, (np.maximum(x, 1), y), epochs=1, progress=False)
    assert (without.padding_id, without.expects_mask) == (None, False)


def test_a_model_that_was_trained_with_masks_misses_one(tmp_path):
    rng = np.random.default_rng(0)
    _, y, mask = data()
    x = rng.normal(size=(24, 7, 3))
    model = model_of(vocab_size=None, n_features=3)
    nf.fit(model, (x, y, mask), epochs=1, progress=False)
    nf.save(model, tmp_path / "model.safetensors")
    for same_model in (model, copy.deepcopy(model), nf.load(tmp_path / "model.safetensors")):
        with pytest.warns(UserWarning, match=MASK_MISSING):
            same_model.predict(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same_model.predict(x)


def test_a_model_that_has_said_so_can_be_saved(tmp_path):
    x, _, _ = data()
    model = model_of(padding_id=0)
    with pytest.warns(UserWarning, match=MASK_MADE):
        expected = model(x)
    nf.save(model, tmp_path / "model.safetensors")
    again = nf.load(tmp_path / "model.safetensors")
    with pytest.warns(UserWarning, match=MASK_MADE):
        np.testing.assert_array_equal(again(x), expected)


def test_the_padding_id_is_in_the_file(tmp_path):
    nf.save(model_of(padding_id=3), tmp_path / "model.safetensors")
    again = nf.load(tmp_path / "model.safetensors")
    assert (again.padding_id, again.expects_mask) == (3, False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"padding_id": 12}, "padding_id is 12; expected a token id from 0 to 11"),
        ({"padding_id": -1}, "padding_id is -1"),
        ({"padding_id": 0, "vocab_size": None, "n_features": 3}, "takes feature vectors"),
        ({"expects_mask": 1}, "expects_mask is 1"),
    ],
)
def test_what_it_cannot_be(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        model_of(**settings)
