"""Rotary positions as a setting of models."""

import numpy as np
import pytest

import npformer as nf

SIZES = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 24, "max_len": 20}
TODAY = {"norm": "pre", "norm_kind": "rms", "ffn": "gated", "activation": "silu"}


def writer(**options):
    config = nf.EncoderConfig(**SIZES, **{"positions": "rotary", "causal": True, **options})
    return nf.LanguageModel(config, 9, seed=0, dtype="float64")


def test_nothing_is_added_and_order_counts(rng):
    model = writer()
    assert model.embed.positions is None
    ids = rng.integers(0, 9, (1, 12))
    swapped = ids[:, [1, 0, *range(2, 12)]]
    assert abs(model(ids) - model(swapped))[:, 2:].max() > 1e-3


def test_what_stands_behind_padding_is_what_stands_at_the_beginning(rng):
    """Only differences of positions count, so tokens may stand anywhere."""
    model = nf.SequenceClassifier(
        nf.EncoderConfig(**SIZES, positions="rotary"), 3, vocab_size=9, seed=0, dtype="float64"
    )
    ids = rng.integers(0, 9, (2, 8))
    moved = np.concatenate([np.zeros((2, 5), int), ids], axis=1)
    mask = np.arange(13) >= 5
    np.testing.assert_allclose(
        model(moved, mask=np.stack([mask, mask])), model(ids), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("options", [{}, TODAY, {"memory": "blocks", "rope_theta": 30.0}])
def test_a_cache_changes_no_token_in_rows_of_unequal_length(options, rng):
    model = writer(**options)
    for value in model.parameters().values():
        value += 0.3 * rng.normal(size=value.shape)
    prompts = [rng.integers(0, 9, n) for n in (1, 7, 4)]
    written = model.generate(prompts, 9, temperature=0)
    np.testing.assert_array_equal(written, model.generate(prompts, 9, temperature=0, cache=False))
    for prompt, row in zip(prompts, written, strict=True):
        np.testing.assert_array_equal(row, model.generate(prompt, 9, temperature=0))


def test_a_translator_turns_its_own_tokens_and_not_those_of_the_memory(rng):
    config = nf.EncoderConfig(**SIZES, positions="rotary")
    model = nf.EncoderDecoder(config, 9, 9, seed=0)
    turned = {name for name, layer in model.layers() if getattr(layer, "rope_theta", None)}
    assert len(turned) == 4
    assert all(name.endswith("mixer") for name in turned)
    source, target = rng.integers(3, 9, (4, 6)), rng.integers(3, 9, (4, 5))
    loss, gradients = model.loss_and_gradients((source, target[:, :-1]), target[:, 1:])
    assert np.isfinite(loss)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())


@pytest.mark.parametrize("workers", [1, 2])
def test_training_is_the_plain_one_and_a_file_holds_it(workers, tmp_path, rng):
    x, y = rng.integers(0, 9, (6, 12)), rng.integers(0, 9, (6, 12))
    model = writer(**TODAY)
    loss, gradients = model.loss_and_gradients(x, y, workers=workers)
    with nf.use_kernels(False):
        plain_loss, plain = model.loss_and_gradients(x, y)
    assert loss == pytest.approx(plain_loss, rel=1e-12)
    np.testing.assert_allclose(gradients.flat, plain.flat, rtol=0, atol=1e-13)
    nf.save(model, tmp_path / "model.safetensors")
    again = nf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again(x), model(x))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mixer": "fourier"}, "a mixer is fourier, which has no queries and keys to turn"),
        ({"mixer": ["attention", "dense_synthesizer"]}, "a mixer is dense_synthesizer"),
        ({"n_heads": 16}, "a head has d_model / n_heads = 1 features; expected an even number"),
        ({"rope_theta": 0.0}, "rope_theta is 0.0"),
    ],
)
def test_what_cannot_turn_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        nf.EncoderConfig(**{**SIZES, "positions": "rotary", **options})
