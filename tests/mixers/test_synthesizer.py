import numpy as np

from npformer import functional as F
from npformer.mixers import DenseSynthesizer


def test_one_head_is_the_papers_equation(rng):
    mixer, x = DenseSynthesizer(8, max_len=6, seed=0, dtype="float64"), rng.normal(size=(2, 5, 8))
    W1, b1, W2, b2 = (p.value for p in (mixer.W1, mixer.b1, mixer.W2, mixer.b2))
    assert W1.shape == (8, 8)
    assert W2.shape == (1, 8, 6)
    y, _ = F.dense_synthesizer(x, mixer.value(x), W1, b1, W2[0], b2[0])
    np.testing.assert_allclose(mixer(x), mixer.output(y), rtol=1e-12)


def test_a_longer_max_len_draws_other_weights_and_keeps_the_shape_of_the_result(rng):
    x = rng.normal(size=(2, 5, 8))
    for max_len in (5, 50):
        assert DenseSynthesizer(8, 2, max_len, seed=0, dtype="float64")(x).shape == x.shape


def test_where_a_token_stands_matters_unlike_in_attention(rng):
    mixer, x = DenseSynthesizer(8, 2, 6, seed=0, dtype="float64"), rng.normal(size=(2, 5, 8))
    order = np.array([1, 2, 3, 4, 0])
    assert np.abs(mixer(x[:, order]) - mixer(x)[:, order]).max() > 1e-3
