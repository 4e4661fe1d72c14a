import numpy as np

from npformer.mixers import Identity


def test_every_token_stays_by_itself_with_and_without_padding(rng, padding):
    x = rng.normal(size=(3, 4, 8))
    np.testing.assert_array_equal(Identity()(x), x)
    np.testing.assert_array_equal(Identity()(x, padding), x)
