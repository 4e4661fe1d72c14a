"""What a model does before its encoder: tokens, positions, types, norm and projection."""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.models import InputEmbedding
from tests.passes import assert_same, both_passes

BERT = {"positions": "learned", "scale_embeddings": False}
BERT |= {"n_token_types": 3, "embedding_norm": True}
FNET = {**BERT, "embedding_projection": True}


@pytest.fixture
def embed(small_config):
    """Make a float64 embedding of seven token ids, all parameters away from where they began."""

    def make(vocab_size=7, n_features=None, **changes):
        layer = InputEmbedding(
            small_config(**changes),
            vocab_size=vocab_size,
            n_features=n_features,
            seed=0,
            dtype="float64",
        )
        rng = np.random.default_rng(1)
        for array in layer.parameters().values():
            array += 0.3 * rng.normal(size=array.shape)
        return layer

    return make


@pytest.fixture
def types(rng):
    return rng.integers(0, 3, (8, 6))


# What it computes ---------------------------------------------------------------------------------
def test_the_names_of_all_parts(embed):
    usual_names = ["tokens.weight", "positions.table"]
    further_names = [
        "types.weight",
        "norm.gamma",
        "norm.beta",
        "projection.weight",
        "projection.bias",
    ]
    assert list(embed(positions="learned").parameters()) == usual_names
    assert list(embed(**FNET).parameters()) == usual_names + further_names


def test_it_is_the_formula(embed, token_batch, types):
    layer = embed(**FNET, norm_eps=1e-12)
    ids = token_batch[0]
    assert layer.norm.eps == 1e-12
    y, _ = layer.forward(ids, nf.Context(types=types))
    named = layer.parameters()
    total = named["tokens.weight"][ids] + named["positions.table"] + named["types.weight"][types]
    normed, _ = F.layer_norm(total, named["norm.gamma"], named["norm.beta"], 1e-12)
    expected = normed @ named["projection.weight"] + named["projection.bias"]
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-13)


def test_no_types_means_type_0(embed, token_batch):
    layer = embed(**BERT)
    ids = token_batch[0]
    y_of_zeros, _, *gradients_of_zeros = both_passes(
        layer, ids, nf.Context(types=np.zeros_like(ids))
    )
    y_without, _, *gradients_without = both_passes(layer, ids)
    assert_same([y_of_zeros, *gradients_of_zeros], [y_without, *gradients_without])


def test_each_type_gets_the_gradient_of_its_tokens(embed, token_batch, types, rng):
    layer = embed(n_token_types=3)
    ids = token_batch[0]
    dy = rng.normal(size=(*ids.shape, 8))
    *_, of_types = both_passes(layer, ids, nf.Context(types=types), dy)
    expected = [layer.types.scale * dy[types == k].sum(axis=0) for k in range(3)]
    np.testing.assert_allclose(of_types, expected, rtol=1e-12)


def test_feature_vectors_have_types_too(embed, types, rng):
    layer = embed(None, 5, **FNET)
    x = rng.normal(size=(8, 6, 5))
    plain, _ = layer.forward(x, nf.Context())
    typed, _ = layer.forward(x, nf.Context(types=types))
    np.testing.assert_array_equal(plain[types == 0], typed[types == 0])
    assert (plain[types > 0] != typed[types > 0]).all()


SCALES = pytest.mark.parametrize(("scaled", "std"), [(True, 1.0), (False, 0.02)])


def embedding_with_types(scaled):
    config = nf.EncoderConfig(
        d_model=64,
        max_len=200,
        n_token_types=200,
        scale_embeddings=scaled,
        positions="learned",
    )
    return InputEmbedding(config, vocab_size=200, n_features=None, seed=0)


@SCALES
def test_types_are_drawn_as_large_as_tokens(scaled, std):
    layer = embedding_with_types(scaled)
    for embedding in (layer.tokens, layer.types):
        assert np.std(embedding.weight.value * embedding.scale) == pytest.approx(std, rel=0.05)


@SCALES
def test_positions_are_drawn_as_large_as_tokens(scaled, std):
    table = embedding_with_types(scaled).positions.table
    assert table.value.std() == pytest.approx(std, rel=0.05)


# In a model ---------------------------------------------------------------------------------------
def test_types_reach_every_call_of_a_classifier(small_model, token_batch, types):
    model = small_model(**BERT)
    ids, _, mask = token_batch
    # A constant added to a token's features would be undone by the norm.
    model.embed.types.weight.value[...] = np.random.default_rng(2).normal(size=(3, 8))
    logits = model(ids, mask, types)
    assert not np.allclose(logits, model(ids, mask))
    np.testing.assert_array_equal(logits, model(ids, mask, types=types))
    expected, _ = F.softmax(logits)
    probabilities = model.predict_probabilities(ids, mask, batch_size=3, types=types)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
    predicted = model.predict(ids, mask, types=types)
    np.testing.assert_array_equal(predicted, expected.argmax(axis=-1))
    typed = model.explain(ids, mask, types)[0].matrices
    assert not np.allclose(typed, model.explain(ids, mask)[0].matrices)


def test_a_model_with_types_is_trained_without_them(small_model, token_batch):
    model = small_model(**FNET, pooling="pooler")
    before = model.embed.types.weight.value.copy()
    nf.fit(model, token_batch, validation=token_batch, epochs=2, progress=False)
    changed = (model.embed.types.weight.value != before).any(axis=1)
    assert changed.tolist() == [True, False, False]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_types_may_be_any_whole_numbers(small_model, token_batch, types, dtype):
    model = small_model(**BERT)
    of_int64, logits = (model(token_batch[0], types=t) for t in (types, types.astype(dtype)))
    np.testing.assert_array_equal(logits, of_int64)


# Wrong calls --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("types", "error", "message"),
    [
        (np.full((8, 6), 3), ValueError, "types holds 3; expected whole numbers from 0 to 2"),
        (np.full((8, 6), -1), ValueError, "types holds -1; expected whole numbers from 0 to 2"),
        (np.zeros((8, 5), int), ValueError, r"types has shape \(8, 5\); expected \(8, 6\)"),
        (np.zeros((6,), int), ValueError, r"types has shape \(6,\); expected \(8, (6|length)\)"),
        (np.zeros((8, 6)), TypeError, "types has dtype float64; expected whole numbers"),
        (np.zeros((8, 6), bool), TypeError, "types has dtype bool; expected whole numbers"),
        ([[0] * 6] * 8, TypeError, "types is a list; expected an array"),
    ],
)
def test_wrong_types_are_refused(small_model, token_batch, types, error, message):
    model = small_model(**BERT)
    ids, y, mask = token_batch
    calls = [
        lambda: model(ids, mask, types),
        lambda: model.predict(ids, mask, types=types),
        lambda: model.explain(ids, mask, types),
        lambda: model.loss_and_gradients(ids, y, mask, types=types, workers=2),
        lambda: nf.TextEncoder(model.config, 7)(ids, mask, types),
    ]
    for call in calls:
        with pytest.raises(error, match=message):
            call()


def test_types_for_a_model_without_types_are_refused(small_model, token_batch):
    model = small_model()
    ids, y, mask = token_batch
    message = r"the model has no token types\. Leave types out, or build .*n_token_types=2"
    for call in (
        lambda: model(ids, mask, np.zeros_like(ids)),
        lambda: model.loss_and_gradients(ids, y, mask, types=np.zeros_like(ids)),
        lambda: nf.TextEncoder(model.config, 7)(ids, types=np.zeros_like(ids)),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("name", ["mask", "types"])
def test_predict_refuses_rows_that_belong_to_no_sequence(small_model, token_batch, types, name):
    """Also where the last batch ends with x, so that no batch would be too long."""
    model = small_model(**BERT)
    ids, _, mask = token_batch
    argument = {"mask": mask, "types": types}[name]
    with pytest.raises(ValueError, match=rf"{name} has shape \(8, 6\); expected \(4, 6\)"):
        model.predict(ids[:4], batch_size=2, **{name: argument})


def test_inputs_are_either_ids_or_features(small_config):
    for sizes in ((None, None), (3, 4)):
        with pytest.raises(ValueError, match="expected exactly one"):
            InputEmbedding(small_config(), vocab_size=sizes[0], n_features=sizes[1], seed=0)
