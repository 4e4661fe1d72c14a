"""Looking inside: names, outputs, the first tensor that is not finite, the table."""

import math
import re

import numpy as np
import pytest

import npformer as nf
from npformer.inspection.non_finite import first_non_finite


@pytest.fixture
def ids(rng):
    return rng.integers(0, 7, (2, 5))


BLOCK = (
    "",
    ".mixer",
    ".mixer.query",
    ".mixer.key",
    ".mixer.value",
    ".mixer.output",
    ".mixer_dropout",
    ".mixer_norm",
    ".feed_forward",
    ".feed_forward.expand",
    ".feed_forward.activation",
    ".feed_forward.contract",
    ".feed_forward_dropout",
    ".feed_forward_norm",
)
NAMES = [
    *("", "embed", "embed.tokens", "embed.positions", "embed.dropout", "encoder"),
    *(f"encoder.blocks.{i}{part}" for i in range(2) for part in BLOCK),
    *("pool", "classify"),
]


@pytest.mark.parametrize("share_layers", [False, True])
def test_layers_are_named_in_the_order_in_which_they_act(small_model, ids, share_layers):
    model = small_model(share_layers=share_layers)
    assert [call.name for call in nf.trace(model, ids)] == NAMES


def test_a_shared_block_stands_in_each_of_its_places(small_model, ids):
    calls = {call.name: call for call in nf.trace(small_model(share_layers=True), ids)}
    first, second = calls["encoder.blocks.0"], calls["encoder.blocks.1"]
    assert first.layer is second.layer
    assert not np.array_equal(first.output, second.output)


def test_pre_norm_comes_before_what_it_norms(small_model, ids):
    names = [call.name for call in nf.trace(small_model(norm="pre"), ids)]
    assert names.index("encoder.blocks.0.mixer_norm") < names.index("encoder.blocks.0.mixer")
    assert names.index("encoder.final_norm") < names.index("pool")


def test_outputs_are_those_of_the_layers(small_model, token_batch):
    model, (ids, _, mask) = small_model(), token_batch
    calls = {call.name: call.output for call in nf.trace(model, ids, mask)}
    plain = nf.Context(mask=mask)
    outer = model.forward(ids, plain)[0]
    np.testing.assert_array_equal(calls[""], outer)
    np.testing.assert_allclose(outer, model(ids, mask), rtol=1e-12)
    inner = model.encoder.forward(calls["embed"], plain)[0]
    np.testing.assert_array_equal(calls["encoder"], inner)
    np.testing.assert_array_equal(
        calls["encoder.blocks.1"],
        model.encoder.blocks[1].forward(calls["encoder.blocks.0"], plain)[0],
    )


def test_any_layer_can_be_traced(rng):
    layer = nf.layers.Linear(3, 2, seed=0)
    (call,) = nf.trace(layer, rng.normal(size=(4, 3)).astype("float32"))
    assert (call.name, call.output.shape) == ("", (4, 2))


class Prepared(nf.layers.Linear):
    """A layer of a user's, with a method of a name that models have."""

    def prepare(self):
        raise AssertionError("not for tracing")


def test_a_layer_with_names_of_its_own_can_be_traced(rng):
    layer = Prepared(3, 2, seed=0, dtype="float64")
    assert [call.name for call in nf.trace(layer, rng.normal(size=(4, 3)))] == [""]


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


# What mixers mixed with ---------------------------------------------------------------------------


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_explain_gives_one_explanation_a_layer_from_the_bottom_up(small_model, token_batch, mixer):
    model, (ids, _, mask) = small_model(mixer=mixer, padding="per_length"), token_batch
    explanations = model.explain(ids, mask)
    assert [e.name for e in explanations] == [f"encoder.blocks.{i}.mixer" for i in range(2)]
    assert [e.kind for e in explanations] == [nf.MIXERS[mixer].__name__] * 2
    for e in explanations:
        assert e.matrices.shape[0] == 8
        assert e.matrices.shape[2:] == (6, 6)
        pairs = mask[:, None, :, None] & mask[:, None, None, :]
        np.testing.assert_array_equal(e.matrices[~np.broadcast_to(pairs, e.matrices.shape)], 0.0)


def test_explain_gives_what_each_layer_got_mixed_with(small_model, token_batch):
    model, (ids, _, mask) = small_model(), token_batch
    calls = {call.name: call for call in nf.trace(model, ids, mask)}
    for block, e in zip(model.encoder.blocks, model.explain(ids, mask), strict=True):
        by_hand = block.mixer.explain(calls[e.name].input, nf.Context(mask=mask))
        np.testing.assert_array_equal(e.matrices, by_hand)


def test_explain_takes_feature_vectors_and_shows_no_padding(small_model, token_batch, rng):
    model, (_, _, mask) = small_model(n_features=5), token_batch
    x = rng.normal(size=(8, 6, 5))
    explanations = model.explain(x, mask)
    x[~mask] = np.nan  # padding may hold anything
    for e, other in zip(explanations, model.explain(x, mask), strict=True):
        np.testing.assert_array_equal(e.matrices, other.matrices)
        tokens = np.broadcast_to(mask[:, None], e.matrices.shape[:3])
        np.testing.assert_allclose(e.matrices.sum(axis=-1)[tokens], 1.0)
        np.testing.assert_array_equal(e.matrices.sum(axis=-1)[~tokens], 0.0)


def test_padding_may_hold_anything_in_a_trace(small_model, token_batch, rng):
    model, (_, _, mask) = small_model(n_features=5), token_batch
    x = rng.normal(size=(8, 6, 5))
    x[~mask] = np.nan
    np.testing.assert_allclose(nf.trace(model, x, mask)[0].output, model(x, mask), rtol=1e-12)
    for e, other in zip(nf.explain(model, x, mask), model.explain(x, mask), strict=True):
        np.testing.assert_array_equal(e.matrices, other.matrices)
    assert first_non_finite(model, x, mask) is None


def test_explain_names_the_mixer_of_each_layer(small_model, token_batch):
    names = nf.mixers.hybrid(3, 1)
    model, (ids, _, mask) = (
        small_model(n_layers=3, mixer=names, padding="per_length"),
        token_batch,
    )
    explanations = model.explain(ids, mask)
    assert [e.kind for e in explanations] == ["Fourier", "Fourier", "Attention"]
    assert [e.matrices.shape[1] for e in explanations] == [1, 1, 2]
    assert [e.matrices.dtype.kind for e in explanations] == ["c", "c", "f"]


def test_explain_a_shared_layer_in_each_of_its_places(small_model, ids):
    first, second = small_model(share_layers=True).explain(ids)
    assert (first.name, second.name) == ("encoder.blocks.0.mixer", "encoder.blocks.1.mixer")
    assert not np.array_equal(first.matrices, second.matrices)


def test_explain_of_shared_tables_is_the_same_in_each_place(small_model, ids):
    first, second = small_model(share_layers=True, mixer="random_synthesizer").explain(ids)
    np.testing.assert_array_equal(first.matrices, second.matrices)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_explain_of_an_encoder_and_of_a_mixer_alone(small_model, rng, norm):
    encoder, x = small_model(norm=norm).encoder, rng.normal(size=(2, 5, 8))
    assert [e.name for e in nf.explain(encoder, x)] == ["blocks.0.mixer", "blocks.1.mixer"]
    (alone,) = nf.explain(encoder.blocks[1].mixer, x)
    assert (alone.name, alone.kind) == ("", "Attention")
    np.testing.assert_array_equal(alone.matrices, encoder.blocks[1].mixer.explain(x, nf.Context()))


def test_explain_of_layers_without_a_mixer_is_empty(rng):
    assert (
        nf.explain(nf.layers.Linear(3, 2, seed=0, dtype="float64"), rng.normal(size=(4, 3))) == []
    )


def test_explain_in_blocks_is_explain_at_once(small_model, token_batch):
    ids, _, mask = token_batch
    stored, blocks = (small_model(memory=way).explain(ids, mask) for way in ("stored", "blocks"))
    for one, other in zip(stored, blocks, strict=True):
        np.testing.assert_allclose(other.matrices, one.matrices, rtol=0, atol=1e-12)


def test_explain_refuses_what_the_model_refuses(small_model, ids):
    with pytest.raises(ValueError, match=r"x holds 7; expected .* from 0 to 6"):
        small_model().explain(ids * 0 + 7)
    with pytest.raises(ValueError, match="got a padding mask"):
        small_model(mixer="fourier").explain(ids, np.ones((2, 5), dtype=bool))


# The first tensor that is not finite --------------------------------------------------------------


def test_a_healthy_model_has_none(small_model, ids):
    assert first_non_finite(small_model(), ids) is None


def test_the_input_is_looked_at_first(small_model, rng):
    model, x = small_model(n_features=2), rng.normal(size=(2, 5, 2))
    x[1, 2, 0] = math.inf
    model.parameters()["classify.bias"][0] = math.nan
    assert first_non_finite(model, x) == "the input x"


@pytest.mark.parametrize("name", ["embed.tokens.weight", "encoder.blocks.1.mixer.key.bias"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_parameter_is_looked_at_before_the_outputs(small_model, ids, name, value):
    model = small_model()
    model.parameters()[name][..., -1] = value
    model.parameters()["classify.bias"][0] = math.nan
    assert first_non_finite(model, ids) == f"parameter {name}"


@pytest.mark.parametrize("share_layers", [False, True])
@pytest.mark.parametrize(
    ("parameter", "culprit"),
    [
        ("encoder.blocks.0.mixer.query.weight", "encoder.blocks.0.mixer.query (Linear)"),
        ("encoder.blocks.0.mixer_norm.gamma", "encoder.blocks.0.mixer_norm (LayerNorm)"),
        ("encoder.blocks.0.feed_forward.expand.weight", "encoder.blocks.0.feed_forward.expand"),
        ("embed.tokens.weight", "embed.tokens (Embedding)"),
        ("classify.weight", "classify (Linear)"),
    ],
)
def test_of_nested_outputs_the_innermost_is_named(
    small_model, ids, parameter, culprit, share_layers
):
    model = small_model(share_layers=share_layers)
    model.parameters()[parameter][...] = 1.7e308
    with np.errstate(all="ignore"):
        found = first_non_finite(model, ids)
    assert found.startswith(f"the output of {culprit}")


def test_a_layer_whose_parts_are_finite_is_named_itself(small_model, ids):
    class Overflowing(nf.layers.Sequential):
        def forward(self, x, context):
            y, cache = super().forward(x, context)
            return y * math.inf, cache

    model = small_model()
    model.encoder.blocks[1].feed_forward = Overflowing(
        nf.layers.Linear(8, 8, seed=0, dtype="float64")
    )
    with np.errstate(all="ignore"):
        found = first_non_finite(model, ids)
    assert found == "the output of encoder.blocks.1.feed_forward (Overflowing)"


# The table ----------------------------------------------------------------------------------------


def counted(table):
    """Return the sum of the column of numbers and the number in the last line."""
    *rows, _, last = table.splitlines()[2:]
    numbers = [re.search(r"  ([\d,]+)(?:  runs as written)?$", row) for row in rows]
    total = sum(int(found[1].replace(",", "")) for found in numbers if found)
    return total, int(last.split()[0].replace(",", ""))


@pytest.mark.parametrize(
    "changes",
    [
        *({"mixer": mixer} for mixer in nf.MIXERS),
        {"mixer": ["fourier", "attention"], "positions": "learned"},
        {"share_layers": True},
        {"norm": "pre", "ffn": "conv1d"},
        {"pooling": "flatten", "d_model": 32, "d_ff": 128},
    ],
    ids=str,
)
def test_the_parameters_in_the_table_add_up(small_model, rng, changes):
    model = small_model(**changes)
    total, last = counted(nf.summary(model, rng.integers(0, 7, (1, 6))))
    assert total == last == model.n_parameters()


def test_the_table_shows_names_kinds_and_shapes(small_model, ids):
    table = nf.summary(small_model(), ids)
    assert re.search(r"^model +SequenceClassifier +\(2, 3\)$", table, re.M)
    assert re.search(r"^    tokens +Embedding +\(2, 5, 8\) +56$", table, re.M)
    assert re.search(r"^    blocks\.1 +EncoderBlock +\(2, 5, 8\)$", table, re.M)
    assert re.search(r"^        query +Linear +\(2, 5, 8\) +72$", table, re.M)
    assert table.endswith("trained parameters, float64")


def test_the_table_has_a_line_for_each_layer(small_model, ids):
    model = small_model()
    rows = nf.summary(model, ids).splitlines()[2:-2]
    assert len(rows) == len(list(model.layers()))


def test_the_table_says_which_parameters_are_shared(small_model, ids):
    rows = nf.summary(small_model(share_layers=True), ids).splitlines()
    assert [row.split()[-1] for row in rows if "query" in row] == ["72", "shared"]
    counted_twice = sum("Linear" in row or "LayerNorm" in row for row in rows) // 2
    assert sum("shared" in row for row in rows) == counted_twice
