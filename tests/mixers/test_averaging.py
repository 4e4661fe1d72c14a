"""Attention and synthesizers are one mixer around scores of different kinds."""

from dataclasses import replace

import numpy as np
import pytest

from npformer import Context
from npformer import functional as F
from npformer.mixers import MIXERS, SCORES, AveragingMixer, MixerSettings, MixtureScores
from tests.passes import both_passes

D, N, K = 16, 24, 3
SYNTHESIZERS = ["dense", "factorized_dense", "random", "factorized_random"]
AVERAGING = [name for name, kind in MIXERS.items() if issubclass(kind, AveragingMixer)]


SETTINGS = MixerSettings(D, 1, N, rank=K)


def build(name, **settings):
    return MIXERS[name].build(replace(SETTINGS, **settings), seed=0, dtype="float64")


def score_parameters(mixer):
    """The parameters of a mixer that its scores have."""
    named = mixer.named_parameters().items()
    return {key: p for key, p in named if not key.startswith(("value.", "output."))}


@pytest.mark.parametrize("name", AVERAGING)
def test_outputs_are_averages_of_the_values_by_the_scores(either, name, rng, padding):
    mixer = either(build(name, n_heads=4))
    x = rng.normal(size=(3, 4, D))
    scores, _ = mixer.scores(x, Context())
    heads, _ = F.average(scores, F.split_heads(mixer.value(x), 4), padding[:, None, None])
    np.testing.assert_allclose(mixer(x, padding), mixer.output(F.merge_heads(heads)), rtol=1e-12)


@pytest.mark.parametrize("name", AVERAGING)
def test_the_output_of_a_row_of_padding_is_the_bias(either, name, rng, padding):
    mixer = either(build(name, n_heads=4))
    x = rng.normal(size=(3, 4, D))
    mixer.output.bias.value[...] = rng.normal(size=D)
    np.testing.assert_array_equal(mixer(x, padding)[2], np.tile(mixer.output.bias.value, (4, 1)))


@pytest.mark.parametrize("name", [f"{kind}_synthesizer" for kind in SYNTHESIZERS], ids=SYNTHESIZERS)
def test_one_head_is_the_papers_equation(either, rng, name):
    mixer = either(build(name))
    x = rng.normal(size=(2, 5, D))
    shared_by_heads = {"W1", "b1", "V1", "c1"}
    arrays = [
        p.value if k in shared_by_heads else p.value[0] for k, p in score_parameters(mixer).items()
    ]
    synthesizer = getattr(F, name)
    value = mixer.value(x)
    if "dense" in name:
        y, _ = synthesizer(x, value, *arrays)
    else:
        y, _ = synthesizer(value, *arrays)
    np.testing.assert_allclose(mixer(x), mixer.output(y), rtol=1e-12)
    shifted = mixer(np.roll(x, 1, axis=1))  # unlike in attention, it matters where a token is
    assert np.abs(shifted - np.roll(mixer(x), 1, axis=1)).max() > 1e-3


@pytest.mark.parametrize("name", AVERAGING)
def test_parameters_of_the_scores_are_the_first_of_the_mixer(name):
    mixer = build(name)
    scores = SCORES.get(name, MixtureScores)(SETTINGS, seed=0, dtype="float64")
    assert list(mixer.named_parameters()) == [
        *scores.named_parameters(),
        "value.weight",
        "value.bias",
        "output.weight",
        "output.bias",
    ]
    for key, parameter in scores.named_parameters().items():
        np.testing.assert_array_equal(mixer.named_parameters()[key].value, parameter.value)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("attention", 2 * D**2),
        ("random_synthesizer", N**2),
        ("fixed_random_synthesizer", N**2),
        ("factorized_random_synthesizer", 2 * N * K),
        ("dense_synthesizer", D**2 + D * N),
    ],
)
def test_a_head_has_as_many_weights_as_in_the_papers_table(name, count):
    parameters = score_parameters(build(name))
    biases = {"query.bias", "key.bias", "b1", "b2"}
    assert sum(p.size for key, p in parameters.items() if key not in biases) == count


@pytest.mark.parametrize("name", AVERAGING)
def test_heads_share_the_weights_of_one_except_for_tables(name):
    one, four = (
        {k: p.size for k, p in score_parameters(build(name, n_heads=n)).items()} for n in (1, 4)
    )
    for key in one:
        a_table_each = key.rpartition(".")[-1] in ("R", "R1", "R2", "b2", "c2")
        assert four[key] == (4 if a_table_each else 1) * one[key], key


def test_scores_of_ones_own_make_a_mixer(either, rng):
    class Neighbours(AveragingMixer):
        """Neighbours, and no parameters: S_ij = -|i - j|."""

        def scores(self, x, context):
            place = np.arange(x.shape[1])
            return -np.abs(place[:, None] - place).astype(x.dtype)[None], None

        def scores_backward(self, dscores, cache, gradients):
            return None

    mixer = either(Neighbours(MixerSettings(8), seed=0, dtype="float64"))
    x = rng.normal(size=(2, 5, 8))
    (weights,) = mixer.explain(x[:1], Context())[0]
    assert (weights.argmax(axis=-1) == np.arange(5)).all()
    assert both_passes(mixer, x)[1].shape == x.shape
