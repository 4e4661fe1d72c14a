import numpy as np
import pytest

import npformer as nf
from npformer.training.inspection.non_finite import first_non_finite

BLOCK = """
    .mixer .mixer.query .mixer.key .mixer.value .mixer.output .mixer_dropout .mixer_norm
    .feed_forward .feed_forward.expand .feed_forward.activation .feed_forward.contract
    .feed_forward_dropout .feed_forward_norm
"""
NAMES = [
    *("", "embed", "embed.tokens", "embed.positions", "embed.dropout", "encoder"),
    *(f"encoder.blocks.{i}{part}" for i in range(2) for part in ["", *BLOCK.split()]),
    *("pool", "classify"),
]


@pytest.mark.parametrize("share_layers", [False, True])
def test_layers_are_named_in_the_order_in_which_they_act(small_model, ids, share_layers):
    model = small_model(share_layers=share_layers)
    assert [call.name for call in nf.trace(model, ids)] == NAMES


def test_outputs_are_those_of_the_layers(small_model, token_batch):
    model, (ids, _, mask) = small_model(), token_batch
    calls = {call.name: call.output for call in nf.trace(model, ids, mask)}
    plain = nf.Context(mask=mask)
    outer = model.forward(ids, plain)[0]
    np.testing.assert_array_equal(calls[""], outer)
    np.testing.assert_allclose(outer, model(ids, mask), rtol=1e-12)
    np.testing.assert_array_equal(calls["encoder"], model.encoder.forward(calls["embed"], plain)[0])
    second = model.encoder.blocks[1].forward(calls["encoder.blocks.0"], plain)[0]
    np.testing.assert_array_equal(calls["encoder.blocks.1"], second)


class Prepared(nf.layers.Linear):
    """A user's layer with a method that is called as one of a model's."""

    def prepare(self):
        raise AssertionError("not for tracing")


@pytest.mark.parametrize("kind", [nf.layers.Linear, Prepared])
def test_any_layer_can_be_traced(rng, kind):
    (call,) = nf.trace(kind(3, 2, seed=0, dtype="float64"), rng.normal(size=(4, 3)))
    assert (call.name, call.output.shape) == ("", (4, 2))


def test_calling_a_traced_layer_afterwards_adds_no_call(small_model, ids):
    calls = nf.trace(small_model(), ids)
    before = len(calls)
    calls[0].layer(ids)
    assert len(calls) == before


@pytest.mark.parametrize("look", [nf.trace, nf.summary, nf.explain, first_non_finite])
def test_the_model_is_not_touched(small_model, ids, look):
    model = small_model(share_layers=True)
    before = {id(layer): dict(vars(layer)) for _, layer in model.layers()}
    kept = model.parameters().flat.copy()
    look(model, ids)
    assert {id(layer): dict(vars(layer)) for _, layer in model.layers()} == before
    assert all("forward" not in vars(layer) for _, layer in model.layers())
    np.testing.assert_array_equal(model.parameters().flat, kept)
