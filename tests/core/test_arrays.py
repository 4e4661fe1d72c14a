import subprocess
import sys
import types

import numpy as np
import pytest

import npformer as nf
from npformer.core import arrays as backend


def imported_by(statement):
    """Return the top-level names that a fresh interpreter has imported after a statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_npformer_imports_no_other_array_library():
    found = imported_by("import npformer")
    assert "numpy" in found
    assert not found & {"cupy", "torch", "jax", "tensorflow", "scipy", "matplotlib"}


def test_a_model_on_numpy_never_imports_cupy():
    found = imported_by(
        "import numpy, npformer as nf\n"
        "model = nf.SequenceClassifier(nf.EncoderConfig(), 2, vocab_size=5).to('numpy')\n"
        "model.loss_and_gradients(numpy.ones((2, 3), int), numpy.zeros(2, int))"
    )
    assert "cupy" not in found


def test_the_names_that_a_user_may_write():
    assert nf.backends()[:2] == ["numpy", "cupy"]


def test_numpy_arrays_and_scalars_belong_to_numpy():
    for x in (np.zeros(3), np.float64(1.0), np.zeros((), dtype=bool)):
        assert backend.array_module(x) is np
        assert backend.is_array(x)
    for x in ([1.0], 1.0, None, "x"):
        assert not backend.is_array(x)


def test_asarray_hands_on_what_is_there_and_converts_the_rest():
    x = np.arange(3.0)
    assert nf.asarray(x) is x
    np.testing.assert_array_equal(nf.asarray([1, 2]), [1, 2])
    assert nf.to_numpy(x) is x
    np.testing.assert_array_equal(nf.to_numpy([[1.0], [2.0]]), [[1.0], [2.0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_libraries_spell_differently_keeps_its_dtype(dtype):
    x = np.linspace(-1.0, 1.0, 8).astype(dtype)
    assert backend.erf(x).dtype == dtype
    assert backend.fft_module(x).fft(x).real.dtype == dtype


def test_add_at_adds_once_for_every_time_that_an_index_occurs():
    target = np.zeros(4)
    backend.add_at(target, np.array([1, 1, 3, 1]), np.array([1.0, 2.0, 4.0, 8.0]))
    np.testing.assert_array_equal(target, [0.0, 11.0, 0.0, 4.0])


# Without a GPU ------------------------------------------------------------------------------------


class FakeRuntimeError(Exception):
    pass


def fake_cupy(get_device_count):
    """Return a module that is enough of CuPy to be asked how many devices there are."""
    cupy = types.ModuleType("cupy")
    cupy.__version__ = "14.0"
    cupy.ndarray = type("ndarray", (), {})
    runtime = types.SimpleNamespace(
        getDeviceCount=get_device_count, CUDARuntimeError=FakeRuntimeError
    )
    cupy.cuda = types.SimpleNamespace(runtime=runtime)
    return cupy


@pytest.fixture
def cupy_is(monkeypatch):
    """Put something in the place of CuPy, None for nothing."""

    def put(cupy):
        monkeypatch.delitem(backend._backends, "cupy", raising=False)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        special = types.ModuleType("cupyx.scipy.special")
        for name in ("cupyx", "cupyx.scipy"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setitem(sys.modules, "cupyx.scipy.special", special)

    return put


def test_without_cupy_the_error_says_how_to_get_it(cupy_is):
    cupy_is(None)
    with pytest.raises(nf.BackendUnavailableError) as caught:
        backend.get_backend("cupy")
    assert "backend 'cupy' needs CuPy" in str(caught.value)
    assert "npformer[cuda13]" in str(caught.value)
    assert "npformer[cuda12]" in str(caught.value)


def test_without_a_driver_the_error_hands_on_what_cuda_says(cupy_is):
    def fails():
        raise FakeRuntimeError("cudaErrorInsufficientDriver")

    cupy_is(fake_cupy(fails))
    with pytest.raises(nf.BackendUnavailableError) as caught:
        backend.get_backend("cupy")
    assert "cudaErrorInsufficientDriver" in str(caught.value)
    assert "nvidia-smi" in str(caught.value)


def test_without_a_device_the_error_says_so(cupy_is):
    cupy_is(fake_cupy(lambda: 0))
    with pytest.raises(nf.BackendUnavailableError, match="finds no device"):
        backend.get_backend("cupy")


def test_a_model_that_cannot_move_stays_as_it_was(cupy_is, small_model, token_batch):
    cupy_is(None)
    model, (ids, _, _) = small_model(), token_batch
    y = model(ids)
    with pytest.raises(nf.BackendUnavailableError):
        model.to("cupy")
    assert model.backend == "numpy"
    np.testing.assert_array_equal(model(ids), y)


def test_the_unavailable_backend_is_a_runtime_error():
    assert issubclass(nf.BackendUnavailableError, RuntimeError)
