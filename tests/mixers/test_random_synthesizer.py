import numpy as np
import pytest

from npformer import Context, Gradients
from npformer import functional as F
from npformer.mixers import (
    FactorizedRandomScores,
    FactorizedRandomSynthesizer,
    FixedRandomSynthesizer,
    RandomScores,
    RandomSynthesizer,
)

KINDS = [RandomSynthesizer, FixedRandomSynthesizer, FactorizedRandomSynthesizer]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def test_one_head_is_the_papers_equation(either, rng):
    mixer, x = (
        either(RandomSynthesizer(8, max_len=6, seed=0, dtype="float64")),
        rng.normal(size=(2, 5, 8)),
    )
    assert mixer.scores.R.shape == (1, 6, 6)
    y, _ = F.random_synthesizer(mixer.value(x), mixer.scores.R.value[0])
    np.testing.assert_allclose(mixer(x), mixer.output(y), rtol=1e-12)


def test_factorized_one_head_is_the_papers_equation(either, rng):
    mixer = either(FactorizedRandomSynthesizer(8, max_len=6, rank=3, seed=0, dtype="float64"))
    x, own = rng.normal(size=(2, 5, 8)), mixer.scores
    assert own.R1.shape == own.R2.shape == (1, 6, 3)
    y, _ = F.factorized_random_synthesizer(mixer.value(x), own.R1.value[0], own.R2.value[0])
    np.testing.assert_allclose(mixer(x), mixer.output(y), rtol=1e-12)


def test_the_tokens_have_no_say_in_the_weights(either, kind, rng):
    mixer = either(kind(8, 2, 6, seed=0, dtype="float64"))
    one, other = (mixer.explain(rng.normal(size=(2, 5, 8)), Context()) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one[0], one[1])


def test_the_gradient_goes_through_the_values_alone(either, kind, rng):
    mixer, x = either(kind(8, 2, 6, seed=0, dtype="float64")), rng.normal(size=(2, 5, 8))
    (_, cache), (_, other) = (mixer.forward(a, Context()) for a in (x, 2.0 * x))
    dy, gradients = rng.normal(size=x.shape), Gradients(mixer)
    # a map that is linear in x: its derivative is the same everywhere
    np.testing.assert_array_equal(
        mixer.backward(dy, cache, gradients), mixer.backward(dy, other, gradients)
    )


def test_where_a_token_stands_matters(either, kind, rng):
    mixer, x = either(kind(8, 2, 6, seed=0, dtype="float64")), rng.normal(size=(2, 5, 8))
    order = np.array([1, 2, 3, 4, 0])
    assert np.abs(mixer(x[:, order]) - mixer(x)[:, order]).max() > 1e-3


def test_a_fixed_table_has_no_gradient_and_is_still_a_parameter():
    mixer = FixedRandomSynthesizer(8, 2, 6, seed=0)
    assert "R" in mixer.named_parameters()
    assert "R" not in mixer.parameters()
    assert "R" not in Gradients(mixer)
    assert set(mixer.parameters()) == {"value.weight", "value.bias", "output.weight", "output.bias"}


def test_a_fixed_table_is_drawn_as_a_trained_one():
    fixed, trained = (kind(8, 2, 6, seed=3) for kind in (FixedRandomSynthesizer, RandomSynthesizer))
    np.testing.assert_array_equal(fixed.scores.R.value, trained.scores.R.value)


def test_a_table_sums_the_gradients_of_its_batch(either, rng):
    mixer, x = (
        either(RandomSynthesizer(8, 2, 6, seed=0, dtype="float64")),
        rng.normal(size=(3, 5, 8)),
    )
    dy, both = rng.normal(size=x.shape), Gradients(mixer)
    mixer.backward(dy, mixer.forward(x, Context())[1], both)
    single = Gradients(mixer)
    for n in range(3):
        _, cache = mixer.forward(x[n : n + 1], Context())
        mixer.backward(dy[n : n + 1], cache, single)
    np.testing.assert_allclose(single["R"], both["R"], rtol=0, atol=1e-13)


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_scores_have_at_most_rank_k_and_variance_1(rank):
    scores = FactorizedRandomScores(2, 200, rank, seed=0, dtype="float64")
    table, _ = scores.forward(np.zeros((1, 200, 1)), Context())
    assert (np.linalg.matrix_rank(table) == rank).all()
    assert 0.8 < table.std() < 1.2


def test_a_table_of_scores_has_variance_1():
    assert 0.98 < RandomScores(2, 200, seed=0).R.value.std() < 1.02
