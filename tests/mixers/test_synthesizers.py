import math

import numpy as np
import pytest

from npformer import Context, Gradients, mixers
from npformer import mixers as M
from tests.passes import both_passes


@pytest.mark.parametrize("max_len", [1, 2, 3, 5, 6, 9, 10, 100, 128, 130])
def test_two_short_rows_make_one_of_just_the_length(max_len):
    scores = mixers.FactorizedDenseScores(mixers.MixerSettings(4, 2, max_len), seed=0)
    a, b = scores.W2.shape[-1], scores.V2.shape[-1]
    assert (a - 1) * b < max_len <= a * b
    assert a == math.ceil(math.sqrt(max_len))
    assert a * (b - 1) < max_len


@pytest.mark.parametrize("kind", [mixers.DenseSynthesizer, mixers.FactorizedDenseSynthesizer])
def test_a_tokens_weights_are_its_own(either, rng, kind):
    mixer = either(kind(8, 2, 6, seed=0, dtype="float64"))
    x = rng.normal(size=(2, 5, 8))
    before = mixer.explain(x, Context())
    x[:, 3] += 1.0
    after = mixer.explain(x, Context())
    np.testing.assert_array_equal(after[:, :, [0, 1, 2, 4]], before[:, :, [0, 1, 2, 4]])
    assert np.abs(after[:, :, 3] - before[:, :, 3]).max() > 1e-3


KINDS = [M.RandomSynthesizer, M.FixedRandomSynthesizer, M.FactorizedRandomSynthesizer]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def mixer(request, either):
    return either(request.param(8, 2, 6, seed=0, dtype="float64"))


def test_the_weights_do_not_depend_on_the_tokens(mixer, rng):
    weights = mixer.explain(rng.normal(size=(2, 5, 8)), Context())
    other_weights = mixer.explain(rng.normal(size=(2, 5, 8)), Context())
    np.testing.assert_array_equal(weights, other_weights)
    np.testing.assert_array_equal(weights[0], weights[1])


def test_the_map_is_linear_in_x(mixer, rng):
    x = rng.normal(size=(2, 5, 8))
    _, dx, *_ = both_passes(mixer, x)
    _, dx_of_double, *_ = both_passes(mixer, 2.0 * x)
    np.testing.assert_array_equal(dx, dx_of_double)  # the derivative is the same everywhere


def test_a_fixed_table_is_a_parameter_that_is_not_trained():
    mixer = M.FixedRandomSynthesizer(8, 2, 6, seed=0)
    assert "R" in mixer.named_parameters()
    assert "R" not in mixer.parameters()
    assert "R" not in Gradients(mixer)
    assert set(mixer.parameters()) == {"value.weight", "value.bias", "output.weight", "output.bias"}


def test_a_table_sums_the_gradients_of_its_batch(either, rng):
    mixer = either(M.RandomSynthesizer(8, 2, 6, seed=0, dtype="float64"))
    x = rng.normal(size=(3, 5, 8))
    dy = rng.normal(size=x.shape)
    batch_gradients = Gradients(mixer)
    mixer.backward(dy, mixer.forward(x, Context())[1], batch_gradients)
    summed_gradients = Gradients(mixer)
    for n in range(3):
        _, cache = mixer.forward(x[n : n + 1], Context())
        mixer.backward(dy[n : n + 1], cache, summed_gradients)
    np.testing.assert_allclose(summed_gradients["R"], batch_gradients["R"], rtol=0, atol=1e-13)


@pytest.fixture(params=[1, 3, 8])
def table(request):
    """Return a rank, and the scores of that rank."""
    settings = M.MixerSettings(2, 2, 200, rank=request.param)
    scores = M.FactorizedRandomScores(settings, seed=0, dtype="float64")
    return request.param, scores.forward(np.zeros((1, 200, 1)), Context())[0]


def test_scores_have_rank_k(table):
    rank, scores = table
    assert (np.linalg.matrix_rank(scores) == rank).all()


def test_scores_have_variance_1_whatever_their_rank(table):
    _, scores = table
    assert 0.8 < scores.std() < 1.2


def test_a_fixed_table_is_drawn_as_a_trained_one_with_variance_1():
    kinds = M.FixedRandomScores, M.RandomScores
    fixed, trained = (kind(M.MixerSettings(2, 2, 200), seed=3).R.value for kind in kinds)
    np.testing.assert_array_equal(fixed, trained)
    assert 0.98 < trained.std() < 1.02
