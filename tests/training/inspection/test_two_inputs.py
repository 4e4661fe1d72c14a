import numpy as np
import pytest

import npformer as nf
from npformer.mixers import Mixer
from npformer.training.inspection.calls import arrays_of
from npformer.training.inspection.non_finite import first_non_finite
from npformer.training.inspection.trace_table import mean_and_spread, number
from tests.two_inputs import Bilinear, CrossAttention, Twice, WordsToVectors

OF_A = np.arange(4) < np.array([[4], [2]])
OF_B = np.arange(3) < np.array([[1], [3]])
MASKS = OF_A, OF_B


@pytest.fixture
def pair(rng):
    return rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 3, 3))


@pytest.fixture
def layer():
    return Twice(CrossAttention(3, 3)).flatten()


def by_hand(layer, pair, dy):
    y, cache = layer.forward(*pair, nf.Context(mask=OF_A, memory_mask=OF_B))
    gradients = nf.Gradients(layer)
    return y, layer.backward(dy, cache, gradients), gradients


def test_the_calls_are_those_of_the_passes(layer, pair):
    dy = np.ones((2, 4, 3))
    trace = nf.trace(layer, pair, MASKS, dy=dy)
    y, (da, db), gradients = by_hand(layer, pair, dy)
    once = ["layer", "layer.query", "layer.key", "layer.value"]
    assert [call.name for call in trace] == ["", *once, *once]
    np.testing.assert_array_equal(trace[0].output, y)
    outer, inner = trace[0], trace[5]
    assert (outer.input[0] is pair[0], outer.input[1] is pair[1]) == (True, True)
    np.testing.assert_array_equal(inner.input[0], trace[1].output)
    assert inner.input[1] is pair[1]
    assert trace[2].input is pair[0]  # of a layer with one input, no tuple
    np.testing.assert_array_equal(trace.backward[0].dx[0], da)
    np.testing.assert_array_equal(trace.backward[0].dx[1], db)
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(trace.gradients[name], gradient)
    assert [back.name for back in trace.backward[:3]] == ["", "layer", "layer.value"]


def test_each_call_has_the_context_of_its_inputs(layer, pair):
    types = OF_A * 1, OF_B * 1
    call, of_query, of_key = (nf.trace(layer, pair, MASKS, types)[i].context for i in (0, 2, 3))
    for context in (call, of_query):
        assert (context.mask is OF_A, context.memory_mask is OF_B) == (True, True)
        assert (context.types is types[0], context.memory_types is types[1]) == (True, True)
    assert (of_key.mask is OF_B, of_key.memory_mask) == (True, None)
    assert (of_key.types is types[1], of_key.memory_types) == (True, None)


def test_forward_may_be_called_with_keywords(pair):
    class Named(Twice):
        def forward(self, a, b, context):
            y, cache = self.layer.forward(a, memory=b, context=context)
            return y, cache

        def backward(self, dy, cache, gradients):
            return self.layer.backward(dy, cache, gradients)

    outer, inner, *_ = nf.trace(Named(CrossAttention(3, 3)), pair, dy=np.ones((2, 4, 3)))
    assert inner.input == outer.input
    assert inner.context is outer.context


def test_the_bytes_of_both_inputs_are_counted(pair):
    (call,) = nf.trace(Bilinear(3, 3), pair, MASKS)
    assert call.bytes_cached == pair[0].nbytes + pair[1].nbytes


def test_the_arrays_that_inputs_are_views_of_are_not_counted():
    wide = np.zeros((2, 4, 300))
    a = wide[..., :3]
    b = wide.copy()[:, 1:, :3]
    (call,) = nf.trace(Bilinear(3, 3), (a, b))
    assert call.bytes_cached == a.nbytes + b.nbytes


def test_means_leave_out_the_padding_of_each_side(pair):
    dy = np.random.default_rng(1).normal(size=(2, 4, 3))
    trace = nf.trace(CrossAttention(3, 3), pair, MASKS, dy=dy)
    _, (title, rows), _ = trace.tables()
    da, db = trace.backward[0].dx
    expected = [mean_and_spread(da, OF_A), mean_and_spread(db, OF_B)]
    assert "backward" in title
    assert rows[1][2] == "(2, 4, 3), (2, 3, 3)"
    assert rows[1][3] == ", ".join(number(mean) for mean, _ in expected)
    assert rows[1][4] == ", ".join(number(spread) for _, spread in expected)
    assert expected != [mean_and_spread(da), mean_and_spread(db)]
    key = next(row for row in rows if row[0].strip() == "key")
    assert key[4] == number(mean_and_spread(trace.backward[2].dx, OF_B)[1])
    assert trace.tables()[0][1][1][4] == number(mean_and_spread(trace[0].output, OF_A)[1])


def test_an_input_without_a_gradient_shifts_no_mask(rng):
    ids = np.ones((2, 4), dtype=int)
    vectors = rng.normal(size=(2, 3, 3))
    trace = nf.trace(WordsToVectors(5, 3), (ids, vectors), MASKS, dy=rng.normal(size=(2, 4, 3)))
    da, db = trace.backward[0].dx
    assert da is None
    assert trace.tables()[1][1][1][2:] == ("(2, 3, 3)", *map(number, mean_and_spread(db, OF_B)))
    assert mean_and_spread(db, OF_B) != mean_and_spread(db)
    assert len(arrays_of(trace.backward[0].dx)) == 1


def test_an_error_names_the_shapes_of_both(pair):
    class Failing(nf.TwoInputLayer):
        def forward(self, a, b, context):
            raise ArithmeticError("no")

    with pytest.raises(ArithmeticError) as caught:
        nf.trace(Twice(Failing()), pair)
    (note,) = caught.value.__notes__
    assert note == "This was in layer (Failing), whose input has shape (2, 4, 3), (2, 3, 3)"


class CrossMixer(CrossAttention, Mixer):
    """It says what each token of x takes from each of the memory."""

    def explain(self, x, memory, context):
        weights = np.ones((len(x), 1, x.shape[1], memory.shape[1]))
        return (
            weights if context.memory_mask is None else weights * context.memory_mask[:, None, None]
        )


def test_matrices_may_go_from_one_input_to_the_other(pair):
    CrossMixer.__abstractmethods__ = frozenset()
    first, second = nf.explain(Twice(CrossMixer(3, 3)), pair, MASKS)
    assert (first.name, first.kind, first.matrices.shape) == ("layer", "CrossMixer", (2, 1, 4, 3))
    np.testing.assert_array_equal(second.matrices[:, 0, 0], OF_B)


@pytest.mark.parametrize(("place", "name"), [(0, "a"), (1, "b")])
def test_the_inputs_are_looked_at_first(layer, pair, place, name):
    pair[place][1, 2, 0] = np.inf
    layer.layer.key.bias.value[0] = np.nan
    assert first_non_finite(layer, pair) == f"the input {name}"


def test_a_twin_gets_both_inputs(pair, monkeypatch):
    class Overflowing(Bilinear):
        def forward(self, a, b, context):
            y, cache = super().forward(a, b, context)
            return y * np.inf, cache

    def twin(layer):
        return Overflowing(3, 3) if type(layer) is Bilinear else layer

    monkeypatch.setattr("npformer.training.inspection.non_finite.fast", twin)
    trace = first_non_finite(Bilinear(3, 3), pair)
    assert trace.startswith("the output of Bilinear, computed by the engine only")


@pytest.mark.parametrize("look", [nf.trace, nf.summary, nf.explain, first_non_finite])
def test_wrong_inputs_are_refused(look):
    a, b = np.ones((2, 4, 3)), np.ones((2, 3, 3))
    with pytest.raises(TypeError, match="x is an ndarray; expected a tuple of 2, because Bilinear"):
        look(Bilinear(3, 3), a)
    with pytest.raises(ValueError, match=r"mask\[1\] has shape \(2, 4\); expected \(2, 3\)"):
        look(Bilinear(3, 3), (a, b), (None, OF_A))
