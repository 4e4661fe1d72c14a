"""Habits of other libraries: an error or a warning says in a sentence what to write here."""

import numpy as np
import pytest

import npformer as nf


@pytest.fixture
def model():
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=4)
    return nf.SequenceClassifier(config, 3, n_features=2)


@pytest.fixture
def data(rng):
    return rng.standard_normal((6, 4, 2), dtype="float32"), np.arange(6) % 3


def test_targets_beside_the_data(model, data):
    with pytest.raises(TypeError, match=r"^fit was given 3 arguments .* fit\(model, \(x, y\)\)"):
        nf.fit(model, *data)


@pytest.mark.parametrize("name", ["fit", "train", "eval", "state_dict", "predict_proba"])
def test_methods_of_other_models(model, name):
    with pytest.raises(AttributeError, match=rf"'SequenceClassifier' has no attribute '{name}'\. "):
        getattr(model, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'other'"):
        model.other  # noqa: B018


@pytest.mark.parametrize(
    ("name", "ours"), [("layers", "n_layers"), ("hidden_size", "d_model"), ("num_heads", "n_heads")]
)
def test_settings_under_other_names(name, ours):
    with pytest.raises(TypeError, match=rf"has no setting '{name}'; it has .*mean '{ours}'\?$"):
        nf.EncoderConfig(**{name: 3})
    with pytest.raises(TypeError, match=r"has no setting 'colour'; it has \[[^]]*\]$"):
        nf.EncoderConfig(colour=3)


@pytest.mark.parametrize("name", ["relu2", "selu", "elu", "gelu_10", "swish", "gelu_fast"])
def test_another_function_is_not_a_misspelt_one(name):
    words = f"^activation is '{name}'; expected one of 'relu'"
    with pytest.raises(ValueError, match=words) as found:
        nf.EncoderConfig(activation=name)
    assert "Did you mean" not in str(found.value)


def test_labels_of_minus_100_mark_nothing():
    logits, labels = np.zeros((2, 3)), np.array([1, -100])
    with pytest.raises(ValueError, match=r"holds -100; .* no label: write -1$"):
        nf.functional.softmax_cross_entropy(logits, labels)


def test_a_mask_that_is_added_to_scores(model, data):
    with pytest.raises(TypeError, match=r"mask = mask == 0 if .* added to scores \(0 and -inf\)"):
        model(data[0], np.where(np.arange(4) < 3, 0.0, -np.inf) + np.zeros((6, 1)))


def test_an_inverted_mask_leaves_sequences_without_a_token(model, data):
    padding = np.arange(4) >= np.array([4, 2, 4, 4, 3, 1])[:, None]
    words = r"^3 of 6 sequences in data have no token, .* write mask = ~mask$"
    with pytest.warns(UserWarning, match=words):
        nf.fit(model, (*data, padding), epochs=1, progress=False)
    nf.fit(model, (*data, ~padding), epochs=1, progress=False)  # which warns of nothing


def test_nan_in_the_data_is_not_blamed_on_the_learning_rate(model, data):
    x, y = data
    x[2, 1, 0] = np.nan
    with pytest.raises(nf.NonFiniteLossError, match=r"is the input x\. Samples with NaN") as caught:
        nf.fit(model, (x, y), progress=False)
    assert "lr" not in str(caught.value)


def test_a_check_of_nothing_does_not_pass():
    relu = nf.functional.relu
    with pytest.raises(ValueError, match=r"relu returned shape \(0, 3\), so there is nothing to c"):
        nf.gradcheck(relu, np.zeros((0, 3)))
    with pytest.raises(nf.GradcheckError, match="nothing was checked: no entry has a derivative"):
        nf.gradcheck(relu, np.zeros((2, 3)))
    assert nf.gradcheck(relu, np.array([0.0, 1.0])).passed


def test_a_temperature_near_nothing_is_none():
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8, causal=True)
    writer = nf.LanguageModel(config, vocab_size=5)
    coldest = writer.generate([1, 2], 5, temperature=0.0)
    np.testing.assert_array_equal(writer.generate([1, 2], 5, temperature=1e-320), coldest)


def test_what_has_no_order_is_no_list_and_half_a_character_no_text():
    texts, labels = ["good", "bad", "very good", "so bad"] * 3, [1, 0] * 6
    for x, y in ((set(texts), labels), (dict(enumerate(texts)), labels), (texts, {0, 1})):
        with pytest.raises(TypeError, match=r"is a (set|dict); expected a list, whose en"):
            nf.TextClassifier().fit(x, y)
    with pytest.raises(ValueError, match=r"^samples\[12\] has half of a character, .* 'a\\ud800'"):
        nf.TextClassifier().fit([*texts, "a\ud800"], [*labels, 1])
