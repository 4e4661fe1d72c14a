import subprocess
import sys

import numpy as np
import pytest

import npformer as nf
from npformer.core import arrays

WITHOUT_CUPY = """
import sys

class Refused:
    def find_spec(self, name, *rest):
        assert not name.startswith("cupy"), f"{name} is imported"

sys.meta_path.insert(0, Refused())
import numpy, npformer as nf
model = nf.SequenceClassifier(nf.EncoderConfig(), 2, vocab_size=5).to("numpy")
model.loss_and_gradients(numpy.ones((2, 3), int), numpy.zeros(2, int))
"""


def test_a_model_on_numpy_never_imports_cupy():
    subprocess.run([sys.executable, "-c", WITHOUT_CUPY], check=True)


def test_the_names_that_a_user_may_write():
    assert nf.backends()[:2] == ["numpy", "cupy"]


@pytest.mark.parametrize("x", [np.zeros(3), np.float64(1.0), np.zeros((), dtype=bool)])
def test_arrays_of_numpy_belong_to_numpy(x):
    assert arrays.array_module(x) is np
    assert arrays.is_array(x)


@pytest.mark.parametrize("x", [[1.0], 1.0, None, "x"])
def test_objects_of_python_are_no_arrays(x):
    assert not arrays.is_array(x)


def test_an_array_is_not_copied():
    x = np.arange(3.0)
    assert nf.asarray(x) is x
    assert nf.to_numpy(x) is x


def test_lists_become_arrays():
    np.testing.assert_array_equal(nf.asarray([1, 2]), [1, 2])
    np.testing.assert_array_equal(nf.to_numpy([[1.0], [2.0]]), [[1.0], [2.0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_libraries_spell_differently_keeps_its_dtype(dtype):
    x = np.linspace(-1.0, 1.0, 8).astype(dtype)
    assert arrays.erfcx(x).dtype == dtype
    assert arrays.fft_module(x).fft(x).real.dtype == dtype


def test_add_at_adds_once_for_every_time_that_an_index_occurs():
    target = np.zeros(4)
    arrays.add_at(target, np.array([1, 1, 3, 1]), np.array([1.0, 2.0, 4.0, 8.0]))
    np.testing.assert_array_equal(target, [0.0, 11.0, 0.0, 4.0])
