import numpy as np
import pytest

import npformer as nf
from npformer.training.inspection.non_finite import first_non_finite


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_explain_gives_one_explanation_a_layer_from_the_bottom_up(small_model, token_batch, mixer):
    model = small_model(mixer=mixer, padding="per_length")
    ids, _, mask = token_batch
    explanations = model.explain(ids, mask)
    assert [e.name for e in explanations] == [f"encoder.blocks.{i}.mixer" for i in range(2)]
    kinds = [type(block.mixer).__name__ for block in model.encoder.blocks]
    assert [e.kind for e in explanations] == kinds
    for e in explanations:
        assert e.matrices.shape[0] == 8
        assert e.matrices.shape[2:] == (6, 6)
        pairs = mask[:, None, :, None] & mask[:, None, None, :]
        np.testing.assert_array_equal(e.matrices[~np.broadcast_to(pairs, e.matrices.shape)], 0.0)


def test_explain_gives_what_each_layer_got_mixed_with(small_model, token_batch):
    model = small_model()
    ids, _, mask = token_batch
    calls = {call.name: call for call in nf.trace(model, ids, mask)}
    for block, e in zip(model.encoder.blocks, model.explain(ids, mask), strict=True):
        by_hand = block.mixer.explain(calls[e.name].input, nf.Context(mask=mask))
        np.testing.assert_array_equal(e.matrices, by_hand)


@pytest.fixture
def padded(small_model, token_batch, rng):
    """Return a model of features, its inputs with NaN at padding, and their mask."""
    _, _, mask = token_batch
    x = rng.normal(size=(8, 6, 5))
    x[~mask] = np.nan
    return small_model(n_features=5), x, mask


def test_nan_at_padding_does_not_change_explanations(padded):
    model, x, mask = padded
    expected = model.explain(np.nan_to_num(x), mask)
    for explanations in (model.explain(x, mask), nf.explain(model, x, mask)):
        for e, other in zip(expected, explanations, strict=True):
            np.testing.assert_array_equal(e.matrices, other.matrices)


def test_rows_of_padding_are_0_in_explanations(padded):
    model, x, mask = padded
    for e in model.explain(x, mask):
        tokens = np.broadcast_to(mask[:, None], e.matrices.shape[:3])
        np.testing.assert_allclose(e.matrices.sum(axis=-1)[tokens], 1.0)
        np.testing.assert_array_equal(e.matrices.sum(axis=-1)[~tokens], 0.0)


def test_a_trace_takes_nan_at_padding(padded):
    model, x, mask = padded
    np.testing.assert_allclose(nf.trace(model, x, mask)[0].output, model(x, mask), rtol=1e-12)


def test_nan_at_padding_is_not_reported(padded):
    model, x, mask = padded
    assert first_non_finite(model, x, mask) is None


def test_explain_names_the_mixer_of_each_layer(small_model, token_batch):
    names = nf.mixers.hybrid(3, 1)
    ids, _, mask = token_batch
    explanations = small_model(n_layers=3, mixer=names, padding="per_length").explain(ids, mask)
    assert [e.kind for e in explanations] == ["Fourier", "Fourier", "Attention"]
    assert [e.matrices.shape[1] for e in explanations] == [1, 1, 2]
    assert [e.matrices.dtype.kind for e in explanations] == ["c", "c", "f"]


@pytest.mark.parametrize(("mixer", "same"), [("attention", False), ("random_synthesizer", True)])
def test_explain_a_shared_layer_in_each_of_its_places(small_model, ids, mixer, same):
    first, second = small_model(share_layers=True, mixer=mixer).explain(ids)
    assert (first.name, second.name) == ("encoder.blocks.0.mixer", "encoder.blocks.1.mixer")
    assert np.array_equal(first.matrices, second.matrices) is same


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_explain_takes_an_encoder(small_model, rng, norm):
    explanations = nf.explain(small_model(norm=norm).encoder, rng.normal(size=(2, 5, 8)))
    assert [e.name for e in explanations] == ["blocks.0.mixer", "blocks.1.mixer"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_explain_takes_a_mixer(small_model, rng, norm):
    mixer = small_model(norm=norm).encoder.blocks[1].mixer
    x = rng.normal(size=(2, 5, 8))
    (explanation,) = nf.explain(mixer, x)
    assert (explanation.name, explanation.kind) == ("", "Attention")
    np.testing.assert_array_equal(explanation.matrices, mixer.explain(x, nf.Context()))


def test_a_layer_without_a_mixer_has_no_explanation(rng):
    layer = nf.layers.Linear(8, 2, seed=0, dtype="float64")
    assert nf.explain(layer, rng.normal(size=(2, 5, 8))) == []


def test_explain_in_blocks_is_explain_at_once(small_model, token_batch):
    ids, _, mask = token_batch
    stored, blocks = (small_model(memory=m).explain(ids, mask) for m in ("stored", "blocks"))
    for one, other in zip(stored, blocks, strict=True):
        np.testing.assert_allclose(other.matrices, one.matrices, rtol=0, atol=1e-12)
