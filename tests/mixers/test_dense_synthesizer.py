import math

import numpy as np
import pytest

from npformer import Context
from npformer import functional as F
from npformer.mixers import DenseSynthesizer, FactorizedDenseScores, FactorizedDenseSynthesizer


def test_one_head_is_the_papers_equation(either, rng):
    mixer, x = (
        either(DenseSynthesizer(8, max_len=6, seed=0, dtype="float64")),
        rng.normal(size=(2, 5, 8)),
    )
    own = mixer.scores
    W1, b1, W2, b2 = (p.value for p in (own.W1, own.b1, own.W2, own.b2))
    assert W1.shape == (8, 8)
    assert W2.shape == (1, 8, 6)
    y, _ = F.dense_synthesizer(x, mixer.value(x), W1, b1, W2[0], b2[0])
    np.testing.assert_allclose(mixer(x), mixer.output(y), rtol=1e-12)


def test_a_longer_max_len_draws_other_weights_and_keeps_the_shape_of_the_result(either, rng):
    x = rng.normal(size=(2, 5, 8))
    for max_len in (5, 50):
        assert either(DenseSynthesizer(8, 2, max_len, seed=0, dtype="float64"))(x).shape == x.shape


def test_where_a_token_stands_matters_unlike_in_attention(either, rng):
    mixer, x = (
        either(DenseSynthesizer(8, 2, 6, seed=0, dtype="float64")),
        rng.normal(size=(2, 5, 8)),
    )
    order = np.array([1, 2, 3, 4, 0])
    assert np.abs(mixer(x[:, order]) - mixer(x)[:, order]).max() > 1e-3


# Factorized ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_len", [1, 2, 3, 5, 6, 9, 10, 100, 128, 130])
def test_two_short_rows_make_one_that_is_long_enough_and_hardly_longer(max_len):
    scores = FactorizedDenseScores(4, 2, max_len, seed=0)
    a, b = scores.W2.shape[-1], scores.V2.shape[-1]
    assert (a - 1) * b < max_len <= a * b
    assert a == math.ceil(math.sqrt(max_len))
    assert a * (b - 1) < max_len


def test_factorized_one_head_is_the_function(either, rng):
    mixer, x = (
        either(FactorizedDenseSynthesizer(8, max_len=6, seed=0, dtype="float64")),
        rng.normal(size=(2, 5, 8)),
    )
    own = mixer.scores
    first = own.W1.value, own.b1.value, own.W2.value[0], own.b2.value[0]
    second = own.V1.value, own.c1.value, own.V2.value[0], own.c2.value[0]
    y, _ = F.factorized_dense_synthesizer(x, mixer.value(x), *first, *second)
    np.testing.assert_allclose(mixer(x), mixer.output(y), rtol=1e-12)


@pytest.mark.parametrize("kind", [DenseSynthesizer, FactorizedDenseSynthesizer])
def test_a_tokens_weights_are_its_own(either, rng, kind):
    mixer, x = either(kind(8, 2, 6, seed=0, dtype="float64")), rng.normal(size=(2, 5, 8))
    before = mixer.explain(x, Context())
    x[:, 3] += 1.0
    after = mixer.explain(x, Context())
    np.testing.assert_array_equal(after[:, :, [0, 1, 2, 4]], before[:, :, [0, 1, 2, 4]])
    assert np.abs(after[:, :, 3] - before[:, :, 3]).max() > 1e-3


def test_long_sequences_cost_fewer_parameters_factorized():
    whole, factorized = (
        kind(32, 4, 512, seed=0).scores.n_parameters()
        for kind in (DenseSynthesizer, FactorizedDenseSynthesizer)
    )
    assert factorized < whole / 3
