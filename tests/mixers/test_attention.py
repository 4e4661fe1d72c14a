import numpy as np

from npformer.mixers import Attention


def test_permuting_the_tokens_permutes_the_result(rng):
    mixer, x = Attention(8, 2, seed=0, dtype="float64"), rng.normal(size=(2, 5, 8))
    order = rng.permutation(5)
    np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-12)


def test_a_single_token_is_its_own_value(rng):
    mixer, x = Attention(8, 4, seed=0, dtype="float64"), rng.normal(size=(2, 1, 8))
    np.testing.assert_allclose(mixer(x), mixer.output(mixer.value(x)), rtol=1e-13)


def test_equal_tokens_stay_equal(rng):
    mixer = Attention(8, 2, seed=0, dtype="float64")
    y = mixer(np.tile(rng.normal(size=8), (1, 5, 1)))
    np.testing.assert_allclose(y, np.tile(y[:, :1], (1, 5, 1)), rtol=1e-13)


def test_a_head_is_attention_over_its_own_columns(rng):
    mixer, x = Attention(8, 2, seed=0, dtype="float64"), rng.normal(size=(1, 5, 8))
    query, key, value = (layer(x)[0] for layer in (mixer.query, mixer.key, mixer.value))
    heads = []
    for columns in (slice(0, 4), slice(4, 8)):
        scores = np.exp(query[:, columns] @ key[:, columns].T / 2.0)
        heads.append(scores / scores.sum(axis=-1, keepdims=True) @ value[:, columns])
    by_hand = mixer.output(np.concatenate(heads, axis=-1))
    np.testing.assert_allclose(mixer(x)[0], by_hand, rtol=1e-12)


def test_a_sequence_of_padding_alone_attends_to_nothing(rng, padding):
    mixer, x = Attention(8, 2, seed=0, dtype="float64"), rng.normal(size=(3, 4, 8))
    mixer.output.bias.value[...] = rng.normal(size=8)
    np.testing.assert_array_equal(mixer(x, padding)[2], np.tile(mixer.output.bias.value, (4, 1)))
