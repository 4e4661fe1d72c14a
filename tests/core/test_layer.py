import copy
import dataclasses
import pickle

import numpy as np
import pytest

import npformer as nf
from npformer import Gradients
from npformer import layers as L
from npformer.core.parameters import ALIGNMENT
from npformer.layers import Linear


@pytest.fixture
def chain():
    """A flattened chain whose parameters have sizes that are no multiples of anything."""
    return L.Sequential(L.Linear(3, 5, seed=0), L.LayerNorm(5), L.Linear(5, 2, seed=1)).flatten()


# Names --------------------------------------------------------------------------------------------
def test_a_parameter_is_called_by_the_first_path_that_leads_to_it(chain):
    names = "0.weight 0.bias 1.gamma 1.beta 2.weight 2.bias"
    assert list(chain.parameters()) == [f"chain.{name}" for name in names.split()]
    tied = L.Linear(4, 4, seed=0)
    chain = L.Sequential(L.Tanh(), tied, tied)
    assert [name for name, _ in chain.layers()] == ["", "chain.0", "chain.1", "chain.2"]
    assert list(chain.parameters()) == ["chain.1.weight", "chain.1.bias"]


def test_the_number_of_parameters_counts_no_padding(chain):
    assert chain.n_parameters() == 3 * 5 + 5 + 5 + 5 + 5 * 2 + 2


def test_the_number_of_parameters_counts_no_constant():
    assert L.Positions(9, 4, seed=0).n_parameters() == 0


# One flat buffer ----------------------------------------------------------------------------------
def test_parameters_are_writable_views_of_one_flat_buffer(chain):
    parameters = chain.parameters()
    for array in parameters.values():
        assert np.shares_memory(array, parameters.flat)
    parameters.flat[...] = 7.0
    assert all((array == 7.0).all() for array in parameters.values())
    parameters["chain.0.bias"][1] = 3.0
    assert chain.chain[0].bias.value[1] == 3.0
    parameters.flat = np.full_like(parameters.flat, 5.0)
    assert all((array == 5.0).all() for array in parameters.values())


def test_views_do_not_overlap_and_begin_at_multiples_of_64_bytes(chain):
    parameters = chain.parameters()
    begin = parameters.flat.__array_interface__["data"][0]
    end = begin
    for array in parameters.values():
        address = array.__array_interface__["data"][0]
        assert address >= end
        assert (address - begin) % (ALIGNMENT * array.itemsize) == 0
        end = address + array.nbytes


def test_flattening_keeps_every_value():
    chain = L.Sequential(L.Linear(3, 5, seed=0), L.Linear(5, 2, seed=1))
    before = {name: array.copy() for name, array in chain.parameters().items()}
    assert chain.parameters().flat is None
    chain.flatten()
    for name, array in chain.parameters().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_part_of_a_model_has_no_flat_buffer_to_itself(chain):
    assert chain.parameters().flat is not None
    assert chain.chain[0].parameters().flat is None


def test_constants_lie_outside_of_the_buffer_and_are_passed_over():
    positions = L.Positions(9, 4, seed=0)
    chain = L.Sequential(positions, L.Linear(4, 4, seed=0)).flatten()
    chain.parameters().flat[...] = 0.0
    assert (positions.table.value != 0.0).any()
    nf.Gradients(positions).add(positions.table, np.ones((9, 4), dtype="float32"))


def pickled(layer):
    return pickle.loads(pickle.dumps(layer))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_computes_the_same(chain, duplicate, rng):
    x = rng.normal(size=(4, 3)).astype("float32")
    y = chain(x)
    np.testing.assert_array_equal(duplicate(chain)(x), y)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_is_independent(chain, duplicate, rng):
    x = rng.normal(size=(4, 3)).astype("float32")
    y = chain(x)  # looks at the views once: a copy must not keep these
    twin = duplicate(chain)
    twin.parameters().flat[...] = 0.0
    assert all((array == 0.0).all() for array in twin.parameters().values())
    np.testing.assert_array_equal(twin(x), 0.0)
    np.testing.assert_array_equal(chain(x), y)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_is_flat_again(chain, duplicate):
    twin = duplicate(chain)
    twin.parameters()  # makes the buffer
    with pytest.raises(ValueError, match="move the whole model"):
        twin.chain[0].to("numpy")


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_keeps_its_ties(duplicate):
    tied = L.Linear(4, 4, seed=0)
    twin = duplicate(L.Sequential(tied, tied).flatten())
    assert twin.chain[0] is twin.chain[1]
    assert len(twin.parameters()) == 2


def test_a_parameter_copies_its_initial_value():
    value = np.ones(3)
    parameter = nf.Parameter(value)
    value[...] = 5.0
    np.testing.assert_array_equal(parameter.value, 1.0)


# Gradients ----------------------------------------------------------------------------------------
def test_gradients_begin_at_0_under_the_names_and_shapes_of_the_parameters(chain):
    gradients, parameters = nf.Gradients(chain), chain.parameters()
    assert list(gradients) == list(parameters)
    for name, gradient in gradients.items():
        assert gradient.shape == parameters[name].shape
        assert gradient.dtype == parameters[name].dtype
        assert np.shares_memory(gradient, gradients.flat)
    assert gradients.flat.shape == parameters.flat.shape
    assert not gradients.flat.any()


def test_two_layers_tied_to_one_parameter_add_up(rng):
    def two(tied):
        first, second = (L.Linear(4, 4, bias=False, seed=0, dtype="float64") for _ in range(2))
        if tied:
            second.weight = first.weight
        return L.Sequential(first, L.Tanh(), second)

    x, dy = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    gradients_of_chains = []
    for model in (two(tied=True), two(tied=False)):
        _, cache = model.forward(x, nf.Context())
        gradients = nf.Gradients(model)
        model.backward(dy, cache, gradients)
        gradients_of_chains.append(dict(gradients))
    tied, separate = gradients_of_chains
    assert list(tied) == ["chain.0.weight"]
    expected = separate["chain.0.weight"] + separate["chain.2.weight"]
    np.testing.assert_allclose(tied["chain.0.weight"], expected, rtol=1e-13)


# What belongs to a call ---------------------------------------------------------------------------
def test_a_context_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        nf.Context().training = True


def test_a_layer_says_which_pass_it_lacks():
    class Half(nf.Layer):
        pass

    with pytest.raises(NotImplementedError, match="Half does not define forward"):
        Half()(np.zeros(1))
    with pytest.raises(NotImplementedError, match="Half does not define backward"):
        Half().backward(np.zeros(1), None, nf.Gradients(Half()))


def test_a_layer_without_parameters_is_a_layer_too():
    layer = L.Tanh().flatten().to("numpy")
    assert len(layer.parameters()) == 0
    assert len(nf.Gradients(layer)) == 0
    assert (layer.backend, layer.dtype) == ("numpy", "float32")


def test_moving_to_where_it_is_changes_nothing(chain):
    flat = chain.parameters().flat
    assert chain.to("numpy") is chain
    assert chain.parameters().flat is flat


def test_reprs_say_what_is_there(chain):
    assert "chain.1.gamma: (5,)" in repr(chain.parameters())
    assert "chain.1.gamma: (5,)" in repr(nf.Gradients(chain))
    assert repr(chain.chain[0].weight) == "Parameter(3, 5), float32"
    assert repr(L.Positions(9, 4, seed=0).table) == "Parameter(9, 4), float32, constant"
    assert repr(L.Dropout(0.5)) == "Dropout(rate=0.5)"


COPIES = {"copy()": Gradients.copy, "deepcopy": copy.deepcopy}
COPIES["pickle"] = lambda gradients: pickle.loads(pickle.dumps(gradients))


@pytest.fixture
def layer():
    return Linear(3, 2, seed=0)


@pytest.fixture
def gradients(layer):
    sums = Gradients(layer)
    sums["weight"][...], sums["bias"][...] = 1.0, 2.0
    return sums


def assert_all(gradients, **expected):
    """Assert that all entries of a gradient are one number."""
    for name, number in expected.items():
        np.testing.assert_array_equal(gradients[name], number)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_has_a_buffer_of_its_own(gradients, copied):
    other = copied(gradients)
    assert_all(other, weight=1.0, bias=2.0)
    other["bias"][...] = 7.0
    gradients["weight"][...] = -1.0
    assert_all(gradients, weight=-1.0, bias=2.0)
    assert_all(other, weight=1.0, bias=7.0)
    other.flat[...] = 5.0
    assert_all(other, weight=5.0, bias=5.0)


def test_zero_empties_the_views_and_a_copy_keeps_its_sums(gradients):
    copied = gradients.copy()
    gradients.zero()
    assert_all(gradients, weight=0.0, bias=0.0)
    assert_all(copied, weight=1.0, bias=2.0)
