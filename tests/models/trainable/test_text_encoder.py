import numpy as np
import pytest

import npformer as nf

BERT = {"positions": "learned", "scale_embeddings": False}
BERT |= {"n_token_types": 2, "embedding_norm": True}


@pytest.fixture
def encoder(small_config):

    def make(pooler=True, **changes):
        config = small_config(**BERT | changes)
        return nf.TextEncoder(config, 7, pooler=pooler, seed=1, dtype="float64")

    return make


@pytest.fixture
def batch(token_batch, rng):
    ids, _, mask = token_batch
    return ids, mask, rng.integers(0, 2, (8, 6))


def gradients_of(encoder, batch, dhidden, dpooled):
    ids, mask, types = batch
    _, cache = encoder.forward(ids, nf.Context(mask=mask, types=types))
    gradients = nf.Gradients(encoder)
    assert encoder.backward((dhidden, dpooled), cache, gradients) is None
    return gradients.flat


def test_it_gives_a_vector_for_each_token_or_sequence(encoder, batch):
    encoded = encoder()(*batch)
    hidden, pooled = encoded
    assert hidden is encoded.hidden
    assert pooled is encoded.pooled
    assert (hidden.shape, pooled.shape) == ((8, 6, 8), (8, 8))


def test_without_a_pooler_it_gives_vectors_of_tokens_alone(encoder, batch):
    without = encoder(pooler=False)
    assert without(*batch).pooled is None
    np.testing.assert_array_equal(without(*batch).hidden, encoder()(*batch).hidden)
    assert not [name for name in without.parameters() if name.startswith("pool")]


def test_its_weights_are_those_of_a_classifier_by_name(encoder, batch):
    text = encoder()
    model = nf.SequenceClassifier(
        text.config, 3, vocab_size=7, pooling="pooler", seed=1, dtype="float64"
    )
    for name, array in text.encoder.parameters().items():  # a seed gives both the same blocks
        np.testing.assert_array_equal(model.encoder.parameters()[name], array)
    model.parameters().flat[...] = 0.5
    named = model.parameters()
    assert [name for name in named if not name.startswith("classify")] == list(text.parameters())
    for name, array in text.parameters().items():
        named[name][...] = array
    expected = text(*batch).pooled @ named["classify.weight"] + named["classify.bias"]
    np.testing.assert_allclose(model(*batch), expected, rtol=1e-13)


def test_the_gradients_of_the_two_outputs_add_up(encoder, batch, rng):
    model = encoder()
    dhidden = rng.normal(size=(8, 6, 8))
    dpooled = rng.normal(size=(8, 8))
    through_hidden = gradients_of(model, batch, dhidden, None)
    through_pooled = gradients_of(model, batch, None, dpooled)
    total = gradients_of(model, batch, dhidden, dpooled)
    np.testing.assert_allclose(total, through_hidden + through_pooled, rtol=1e-10, atol=1e-12)
    assert not np.allclose(total, through_hidden)


def test_the_backward_pass_does_not_change_the_gradients_of_the_outputs(encoder, batch, rng):
    dhidden = rng.normal(size=(8, 6, 8))
    dpooled = rng.normal(size=(8, 8))
    dhidden_before = dhidden.copy()
    dpooled_before = dpooled.copy()
    model = encoder()
    gradients_of(model, batch, dhidden, dpooled)
    gradients_of(model, batch, dhidden, None)
    gradients_of(model, batch, None, dpooled)
    np.testing.assert_array_equal(dhidden, dhidden_before)
    np.testing.assert_array_equal(dpooled, dpooled_before)


def test_a_gradient_without_its_output_is_refused(encoder, batch):
    with pytest.raises(ValueError, match=r"no pooler; expected \(dhidden, None\)"):
        gradients_of(encoder(pooler=False), batch, np.ones((8, 6, 8)), np.ones((8, 8)))
    with pytest.raises(ValueError, match="both None; expected at least one"):
        gradients_of(encoder(), batch, None, None)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"vocab_size": 0}, ValueError, "vocab_size is 0; expected a whole number"),
        ({"vocab_size": None}, ValueError, "vocab_size is None; expected a whole number"),
        ({"vocab_size": 7, "pooler": 1}, TypeError, "pooler is 1; expected True or False"),
        ({"vocab_size": 7, "seed": -1}, TypeError, "seed is -1"),
        ({"vocab_size": 7, "dtype": "float16"}, ValueError, "dtype is 'float16'"),
    ],
)
def test_wrong_arguments_are_refused(small_config, arguments, error, message):
    with pytest.raises(error, match=message):
        nf.TextEncoder(small_config(), **arguments)
    with pytest.raises(TypeError, match="config is a dict; expected an EncoderConfig"):
        nf.TextEncoder({"d_model": 8}, 7)
