import numpy as np
import pytest

from npformer import Context, Gradients
from npformer.mixers import SCORES, Attention, MixerSettings, Mixture, RandomSynthesizer
from tests.passes import both_passes

SIX = tuple(SCORES)


def build(*names, **settings):
    chosen = {"d_model": 8, "n_heads": 2, "max_len": 6} | settings
    return Mixture(MixerSettings(**chosen, mixture=names), seed=0, dtype="float64")


def test_starts_with_equal_shares_the_mean_of_its_parts(either, rng):
    mixer = either(build(*SIX))
    x = rng.normal(size=(2, 5, 8))
    all_scores = [layer_scores.forward(x, Context())[0] for layer_scores in mixer.parts]
    scores, _ = mixer.scores(x, Context())
    mean = sum(np.broadcast_to(layer_scores, scores.shape) for layer_scores in all_scores) / 6.0
    np.testing.assert_allclose(scores, mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize("chosen", range(6))
def test_a_huge_logit_is_that_part_alone(either, chosen, rng):
    mixer = either(build(*SIX))
    x = rng.normal(size=(2, 5, 8))
    mixer.logits.value[chosen] = 1e4
    scores, _ = mixer.scores(x, Context())
    alone, _ = mixer.parts[chosen].forward(x, Context())
    np.testing.assert_array_equal(scores, np.broadcast_to(alone, scores.shape))


@pytest.mark.parametrize(("chosen", "kind"), [(0, Attention), (1, RandomSynthesizer)])
def test_with_the_same_weights_it_is_the_mixer_of_its_only_part(either, chosen, kind, rng, padding):
    mixer = either(build("attention", "random_synthesizer"))
    x = rng.normal(size=(3, 4, 8))
    mixer.logits.value[chosen] = 1e4
    alone = kind.build(MixerSettings(8, 2, 6), seed=1, dtype="float64")
    for target, source in alone.named_parameters().items():
        name = target if target.startswith(("value.", "output.")) else f"parts.{chosen}.{target}"
        source.value[...] = mixer.named_parameters()[name].value
    np.testing.assert_allclose(mixer(x, padding), alone(x, padding), rtol=1e-12)


def test_parameters_are_named_by_the_index_of_their_part():
    names = set(build("attention", "random_synthesizer").parameters())
    assert {"logits", "parts.0.query.weight", "parts.1.R", "value.weight"} <= names


def test_a_fixed_table_in_a_mixture_is_not_trained():
    mixer = build("attention", "fixed_random_synthesizer")
    assert "parts.1.R" in mixer.named_parameters()
    assert "parts.1.R" not in mixer.parameters()


def test_two_parts_of_one_kind_have_different_weights():
    first, second = build("attention", "attention").parts
    assert np.abs(first.query.weight.value - second.query.weight.value).max() > 0.1


def test_tables_alone_give_x_a_gradient_through_the_values(either, rng):
    mixer = either(build("random_synthesizer", "factorized_random_synthesizer"))
    x = rng.normal(size=(2, 5, 8))
    assert mixer.scores_backward(*mixer.scores(x, Context()), Gradients(mixer)) is None
    assert np.abs(both_passes(mixer, x)[1]).max() > 0.0


def test_shares_learn(either, rng):
    mixer = either(build(*SIX))
    x = rng.normal(size=(2, 5, 8))
    _, _, dlogits, *_ = both_passes(mixer, x)
    assert np.abs(dlogits).max() > 0.0
    assert abs(dlogits.sum()) < 1e-13  # shares sum to 1: what one gains, others lose
