"""What is true of published snippets; their numbers are compared in tests/parity."""

import doctest

import numpy as np
import pytest

import npformer as nf
from npformer.layers.feed_forward import MAPS
from npformer.learn.museum import published as published


# A convolution with kernel size 1 is a dense layer ------------------------------------------------
def test_the_keras_block_drops_before_the_residual_connection(rng):
    x = rng.normal(size=(2, 400, 8))
    block = published.KerasFeedForward(8, 12, 0.5, seed=0, dtype="float64")
    block.w_2.bias.value[...] = 100.0
    context = nf.Context(training=True, generator=np.random.default_rng(0))
    y, _ = block.forward(x, context)
    assert not np.allclose(y, block(x))
    block.w_2.weight.value[...] = block.w_2.bias.value[...] = 0.0
    y, _ = block.forward(x, context)
    np.testing.assert_array_equal(y, block(x))  # x itself is never dropped


def test_both_benchmarks_take_the_same_steps(rng):
    x = rng.normal(size=(16, 4, 8))
    y = rng.integers(0, 2, 16)
    losses = {}
    for ffn in MAPS:
        model = published.benchmark_model(4, 8, 32, ffn=ffn, dtype="float64")
        assert model(x).shape == (16, 1)
        assert model.parameters().flat is not None
        optimizer = nf.Adam(model.parameters(), lr=1e-2, eps=1e-7)
        losses[ffn] = []
        for _ in range(20):
            loss, gradients = published.benchmark_loss_and_gradients(model, x, y)
            optimizer.step(gradients)
            losses[ffn].append(loss)
    assert losses["linear"] == losses["conv1d"]
    assert losses["linear"][-1] < 0.3 * losses["linear"][0]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.ones((2, 1), int), ValueError, r"y has shape \(2, 1\); expected \(2,\)"),
        (np.array([0, 2]), ValueError, "y holds 2; expected whole numbers from 0 to 1"),
        (np.array([0.0, 1.0]), TypeError, "y has dtype float64; expected whole numbers"),
    ],
)
def test_labels_that_do_not_fit_are_refused(y, error, message):
    model = published.benchmark_model(4, 8, 32)
    with pytest.raises(error, match=message):
        published.benchmark_loss_and_gradients(model, np.ones((2, 4, 8), "float32"), y)


# The asker's synthesizer --------------------------------------------------------------------------
@pytest.fixture
def synthesizer():
    return published.AskersSynthesizer(4, 5, seed=0, dtype="float64")


def test_each_sequence_is_mixed_by_itself(synthesizer, rng):
    x, v = rng.normal(size=(2, 3, 4, 5))
    alone = [synthesizer(*pair) for pair in zip(x, v, strict=True)]
    np.testing.assert_allclose(synthesizer(x, v), alone, rtol=1e-13)


def test_each_row_is_an_average_of_values(synthesizer, rng):
    x = rng.normal(size=(3, 4, 5))
    np.testing.assert_allclose(synthesizer(x, np.ones((3, 4, 2))), 1.0, rtol=1e-14)


def test_padding_is_not_averaged(synthesizer, rng):
    x, v = rng.normal(size=(2, 2, 4, 5))
    mask = np.array([[True] * 4, [True, True, False, False]])
    y = synthesizer(x, v, (None, mask))
    other = np.where(mask[..., None], v, 9.0)
    np.testing.assert_array_equal(synthesizer(x, other, (None, mask)), y)
    assert not np.allclose(synthesizer(x, v), y)
    np.testing.assert_array_equal(synthesizer(x, v, (mask, None)), synthesizer(x, v))


def test_a_shorter_sequence_is_refused(synthesizer):
    with pytest.raises(ValueError, match=r"value has shape \(3, 5\); expected \(..., 4, d_value\)"):
        synthesizer(np.ones((3, 5)), np.ones((3, 5)))


# The blog's FNet ----------------------------------------------------------------------------------
def test_the_blogs_layers_are_one_layer():
    assert [published.blog_fnet(8, 12, 0.0, n_layers).n_parameters() for n_layers in (1, 2, 6)] == [
        2 * 8 + 2 * 8 * 12 + 12 + 8
    ] * 3


def test_the_blogs_block_adds_its_input_twice(rng):
    """Without a feed-forward network, y = norm(x): the mixing is lost."""
    block = published.BlogFNetBlock(8, 12, seed=0, dtype="float64")
    for name, array in block.parameters().items():
        if name.startswith("feed_forward"):
            array[...] = 0.0
    x = rng.normal(size=(2, 5, 8))
    expected, _ = block.norm.forward(x, nf.Context())
    np.testing.assert_array_equal(block(x), expected)


def test_what_the_blog_should_have_meant_is_a_configuration(rng):
    """The docstring's, at a smaller size: as many layers in one, but two norms."""
    config = nf.EncoderConfig(
        d_model=8,
        n_layers=2,
        d_ff=12,
        max_len=20,
        mixer="fourier",
        dropout=0.5,
        activation="gelu",
        share_layers=True,
    )
    meant = nf.Encoder(config, dtype="float64")
    written = published.blog_fnet(8, 12, 0.5, 2, dtype="float64")
    assert meant.n_parameters() == written.n_parameters() + 2 * 8
    x = rng.normal(size=(2, 5, 8))
    assert meant(x).shape == written(x).shape


def test_a_padding_mask_is_refused():
    block = published.BlogFNetBlock(8, 12, seed=0)
    with pytest.raises(ValueError, match="got a padding mask, and it mixes every position"):
        block(np.ones((2, 3, 8), "float32"), np.ones((2, 3), dtype=bool))


def test_the_examples_of_the_docstrings_run():
    results = doctest.testmod(published)
    assert results.attempted > 0
    assert results.failed == 0
