"""Models move to the device and back, and training goes on there."""

import copy

import numpy as np
import pytest

import npformer as nf
from tests.device import cases
from tests.device.cases import IDS, LABELS, classifier, same
from tests.fake_device import FakeArray, count

pytestmark = pytest.mark.usefixtures("plain")


def test_parameters_are_views_of_one_buffer_after_a_move_also_those_taken_before() -> None:
    model = classifier("float32").to("fake")
    model.parameters().flat[...] = 0.5
    assert all((nf.to_numpy(x) == 0.5).all() for x in model.parameters().values())
    model = classifier("float32")
    parameters = model.parameters()
    model.to("fake")
    assert all(isinstance(x, FakeArray) for x in parameters.values())


@pytest.mark.parametrize("mixer", ["attention", "fixed_random_synthesizer", "random"])
def test_all_arrays_of_a_model_move_there_and_back(mixer) -> None:
    """Also those that are not trained: sinusoids, and the tables of a mixer."""
    model = classifier("float32", mixer=mixer)
    tables = model.named_parameters()
    assert mixer == "attention" or any("mixer" in n for n, p in tables.items() if not p.trainable)
    before = {name: p.value.copy() for name, p in tables.items()}
    model.to("fake")
    assert all(type(p.value) is FakeArray for p in (*tables.values(), model.embed.positions.table))
    model.to("numpy")
    for name, p in tables.items():
        np.testing.assert_array_equal(p.value, before[name])
        assert p.value.flags.writeable


def test_the_model_on_the_device_has_memory_of_its_own() -> None:
    model = classifier("float32")
    host = model.parameters().flat
    model.to("fake")
    host[...] = 7.0
    assert not (nf.to_numpy(model.parameters().flat) == 7.0).any()


def test_moving_to_where_it_is_does_nothing() -> None:
    model = classifier("float32").to("fake")
    with count() as counted:
        model.to("fake")
    assert (counted.uploads, counted.synchronisations) == (0, 0)


@pytest.mark.parametrize("moves", [{2: "fake"}, {2: "fake", 4: "numpy"}], ids=["there", "and back"])
def test_training_continues_where_the_model_moves(moves) -> None:
    stayed = cases.train("numpy", "float64", steps=6)
    same(cases.train("numpy", "float64", steps=6, moves=moves), stayed)


def test_adam_that_was_made_before_the_move_continues() -> None:
    results = []
    for moves in (False, True):
        model = classifier("float64")
        optimizer = nf.Adam(model.parameters(), lr=0.01)
        for step in range(4):
            if moves and step == 2:
                model.to("fake")
            _, gradients = model.loss_and_gradients(IDS, LABELS)
            optimizer.step(gradients)
        results.append(model.parameters())
    same(*results)


def test_a_copy_of_a_model_stays_on_the_device() -> None:
    model = classifier("float32").to("fake")
    twin = copy.deepcopy(model)
    twin.parameters().flat[...] = 0.0
    assert twin.backend == "fake"
    assert (nf.to_numpy(model.parameters().flat) != 0.0).any()


def test_a_file_from_the_device_loads_on_the_host(tmp_path) -> None:
    model = classifier("float32").to("fake")
    nf.save(model, tmp_path / "model.safetensors")
    loaded = nf.load(tmp_path / "model.safetensors")
    same(loaded.parameters(), model.parameters())


def test_a_file_from_the_host_loads_onto_the_device(tmp_path) -> None:
    nf.save(classifier("float32"), tmp_path / "model.safetensors")
    assert nf.load(tmp_path / "model.safetensors", backend="fake").backend == "fake"


def model_and_adam(
    backend: str, dtype: str, by_name: bool
) -> tuple[nf.SequenceClassifier, nf.Adam]:
    """Return a model, and an optimizer of its parameters by name or in one buffer."""
    model = classifier(dtype).to(backend)
    parameters = dict(model.parameters()) if by_name else model.parameters()
    return model, nf.Adam(parameters, lr=0.01)


def constant_step(model: nf.SequenceClassifier, optimizer: nf.Adam) -> None:
    """Make a step with gradients that are all 0.5."""
    gradients = nf.Gradients(model)
    gradients.flat[...] = 0.5
    optimizer.step(gradients)


backends_of_adam = pytest.mark.parametrize(
    ("here", "there"), [("fake", "numpy"), ("numpy", "fake"), ("fake", "fake")]
)
by_name_or_not = pytest.mark.parametrize("by_name", [False, True])
both_dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.parametrize("backend", ["fake", "numpy"])
@by_name_or_not
@both_dtypes
def test_the_state_of_adam_is_on_the_host(by_name, dtype, backend) -> None:
    model, optimizer = model_and_adam(backend, dtype, by_name)
    constant_step(model, optimizer)
    _, arrays = optimizer.state()
    assert all(type(array) is np.ndarray for array in arrays.values())
    assert {array.dtype.name for array in arrays.values()} == {dtype}


@backends_of_adam
@by_name_or_not
@both_dtypes
def test_the_state_of_adam_is_restored_without_waiting(by_name, dtype, here, there) -> None:
    model, optimizer = model_and_adam(here, dtype, by_name)
    constant_step(model, optimizer)
    values, arrays = optimizer.state()
    _, restored = model_and_adam(there, dtype, by_name)
    with count() as counted:
        restored.restore(values, arrays)
    assert counted.synchronisations == 0
    for name, array in restored.state()[1].items():
        np.testing.assert_array_equal(array, arrays[name])


@backends_of_adam
@by_name_or_not
@both_dtypes
def test_adam_continues_on_any_backend(by_name, dtype, here, there) -> None:
    model, optimizer = model_and_adam(here, dtype, by_name)
    constant_step(model, optimizer)
    other_model, restored = model_and_adam(there, dtype, by_name)
    restored.restore(*optimizer.state())
    constant_step(model, optimizer)
    other_model.parameters().flat[...] = 0.0
    constant_step(other_model, restored)
    for name, array in restored.state()[1].items():
        np.testing.assert_array_equal(array, optimizer.state()[1][name])


def test_a_copy_of_adam_updates_the_copy_of_its_model() -> None:
    model = classifier("float64").to("fake")
    optimizer = nf.Adam(model.parameters(), lr=0.01)
    optimizer.step(model.loss_and_gradients(IDS, LABELS)[1])
    other, its_optimizer = copy.deepcopy((model, optimizer))
    optimizer.step(model.loss_and_gradients(IDS, LABELS)[1])
    its_optimizer.step(other.loss_and_gradients(IDS, LABELS)[1])
    same(other.parameters(), model.parameters())
    assert other.parameters().flat is not model.parameters().flat
