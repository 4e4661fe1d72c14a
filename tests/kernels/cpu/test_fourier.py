import numpy as np
import pytest

from npformer.engine import EngineContext
from npformer.engine.cpu.fourier import fourier_mixing
from tests.kernels.cpu import helpers
from tests.kernels.cpu.helpers import assert_parity, run


@pytest.mark.parametrize("length", [1, 2, 3, 13, 64])
def test_of_any_shape_in_pieces(length, piece):
    for d in (1, 2, 3, 4, 64, 257):
        assert_parity(helpers.fourier_mixing((5, length, d)))


@pytest.mark.parametrize("shape", [(7, 5), (2, 3, 4, 6)])
def test_of_any_number_of_axes(shape, piece):
    assert_parity(helpers.fourier_mixing(shape))


def test_no_sequence_at_all():
    y, dx = run(helpers.fourier_mixing((0, 4, 3)))
    assert y.shape == dx.shape == (0, 4, 3)


def test_what_is_no_real_sequence_is_refused():
    with pytest.raises(TypeError, match="complex128"):
        fourier_mixing(np.ones((2, 4, 4), dtype="complex128"), context=EngineContext())
    with pytest.raises(ValueError, match="x has shape"):
        fourier_mixing(np.ones(4), context=EngineContext())
