import numpy as np
import pytest

from npformer.interop import ARCHITECTURES
from npformer.layers import ACTIVATIONS

NAMES = {item for each in ARCHITECTURES.values() for item in each.activations.items()}


def test_a_name_that_is_read_means_the_same_function():
    torch = pytest.importorskip("torch")
    theirs_by_name = pytest.importorskip("transformers.activations").ACT2FN
    x = np.linspace(-6.0, 6.0, 201)
    assert len(NAMES) >= 7
    for theirs, ours in sorted(NAMES):
        expected = theirs_by_name[theirs](torch.tensor(x)).numpy()
        found = ACTIVATIONS.make(ours)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11, err_msg=theirs)
