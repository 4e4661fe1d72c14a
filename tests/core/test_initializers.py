import math

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer import mixers as M
from npformer.core import generators, initializers


def test_a_kernel_multiplies_both_fans():
    weights = initializers.xavier_uniform(np.random.default_rng(0), (5, 40, 60))
    assert 0.99 < np.abs(weights).max() / math.sqrt(6.0 / (5 * 100)) <= 1.0


def test_each_head_has_its_own_fans():
    draw = initializers.per_head(initializers.xavier_uniform)
    weights = draw(np.random.default_rng(0), (3, 20, 40))
    assert 0.98 < np.abs(weights).max() / math.sqrt(6.0 / 60) <= 1.0
    assert (weights[0] != weights[1]).any()


def test_float32_is_float64_rounded():
    draw, rng = initializers.normal(0.02), np.random.default_rng
    drawn = [initializers.draw(draw, rng(0), (9, 9), dtype) for dtype in ("float32", "float64")]
    np.testing.assert_array_equal(drawn[0], drawn[1].astype("float32"))
    assert (drawn[1] != drawn[0]).any()
    assert drawn[1].std() == pytest.approx(0.02, rel=0.2)


def test_a_generator_is_its_own_seed():
    generator = np.random.default_rng(0)
    assert generators.from_seed(generator) is generator


@pytest.mark.parametrize("seed", [7, np.int64(7)])
def test_a_number_is_a_seed(seed):
    assert generators.from_seed(seed).random() == np.random.default_rng(7).random()


def test_without_a_seed_generators_differ():
    assert generators.from_seed(None).random() != generators.from_seed(None).random()


def test_he_normal_counts_all_inputs_of_a_convolution():
    drawn = initializers.he_normal(np.random.default_rng(0), (5, 40, 100))
    assert drawn.std() == pytest.approx(np.sqrt(2.0 / (5 * 40)), rel=0.02)


@pytest.mark.parametrize(
    "make",
    [
        lambda: L.Linear(4, 3),
        lambda: L.Embedding(5, 4),
        lambda: M.Attention(4, 2),
        lambda: M.DenseSynthesizer(4, 2),
        lambda: nf.Encoder(nf.EncoderConfig(d_model=4, n_heads=2), seed=None),
    ],
)
def test_without_a_seed_no_two_layers_are_alike(make):
    one, other = (next(iter(layer.parameters().values())) for layer in (make(), make()))
    assert not np.array_equal(one, other)
