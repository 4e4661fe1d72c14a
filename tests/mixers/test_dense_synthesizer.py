import math

import numpy as np
import pytest

from npformer import Context
from npformer.mixers import (
    DenseSynthesizer,
    FactorizedDenseScores,
    FactorizedDenseSynthesizer,
    MixerSettings,
)


@pytest.mark.parametrize("max_len", [1, 2, 3, 5, 6, 9, 10, 100, 128, 130])
def test_two_short_rows_make_one_that_is_long_enough_and_hardly_longer(max_len):
    scores = FactorizedDenseScores(MixerSettings(4, 2, max_len), seed=0)
    a, b = scores.W2.shape[-1], scores.V2.shape[-1]
    assert (a - 1) * b < max_len <= a * b
    assert a == math.ceil(math.sqrt(max_len))
    assert a * (b - 1) < max_len


@pytest.mark.parametrize("kind", [DenseSynthesizer, FactorizedDenseSynthesizer])
def test_a_tokens_weights_are_its_own(either, rng, kind):
    mixer, x = either(kind(8, 2, 6, seed=0, dtype="float64")), rng.normal(size=(2, 5, 8))
    before = mixer.explain(x, Context())
    x[:, 3] += 1.0
    after = mixer.explain(x, Context())
    np.testing.assert_array_equal(after[:, :, [0, 1, 2, 4]], before[:, :, [0, 1, 2, 4]])
    assert np.abs(after[:, :, 3] - before[:, :, 3]).max() > 1e-3
