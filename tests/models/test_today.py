"""Rotary positions, grouped queries, windows and gates as settings of models."""

import numpy as np
import pytest

import npformer as nf
from npformer.core import Context
from npformer.layers import GatedFeedForward, PositionwiseFeedForward

SIZES = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 24, "max_len": 20}
TODAY = {"norm": "pre", "norm_kind": "rms", "ffn": "gated", "activation": "silu"}


def writer(**options):
    config = nf.EncoderConfig(**SIZES, **{"positions": "rotary", "causal": True, **options})
    return nf.LanguageModel(config, 9, seed=0, dtype="float64")


def test_no_position_is_added_to_the_tokens():
    assert writer().embed.positions is None


def test_the_order_of_tokens_counts(rng):
    model = writer()
    ids = rng.integers(0, 9, (1, 12))
    swapped = ids[:, [1, 0, *range(2, 12)]]
    assert abs(model(ids) - model(swapped))[:, 2:].max() > 1e-3


def test_what_stands_behind_padding_is_what_stands_at_the_beginning(rng):
    """Only differences of positions count, so tokens may stand anywhere."""
    config = nf.EncoderConfig(**SIZES, positions="rotary")
    model = nf.SequenceClassifier(config, 3, vocab_size=9, seed=0, dtype="float64")
    ids = rng.integers(0, 9, (2, 8))
    moved = np.concatenate([np.zeros((2, 5), int), ids], axis=1)
    mask = np.arange(13) >= 5
    logits = model(moved, mask=np.stack([mask, mask]))
    np.testing.assert_allclose(logits, model(ids), rtol=0, atol=1e-13)


WINDOWS = {
    **TODAY,
    "n_kv_heads": 1,
    "d_head": 6,
    "qk_norm": True,
    "bias": False,
    "window": [4, None],
    "rope_theta": [20.0, 1e4],
}


@pytest.mark.parametrize(
    "options", [{}, TODAY, {"memory": "blocks", "rope_theta": 30.0}, {"window": 3}, WINDOWS]
)
def test_a_cache_changes_no_token_in_rows_of_unequal_length(rng, options):
    model = writer(**options)
    for value in model.parameters().values():
        value += 0.3 * rng.normal(size=value.shape)
    prompts = [rng.integers(0, 9, n) for n in (1, 7, 4)]
    written = model.generate(prompts, 9, temperature=0)
    np.testing.assert_array_equal(written, model.generate(prompts, 9, temperature=0, cache=False))
    for prompt, row in zip(prompts, written, strict=True):
        np.testing.assert_array_equal(row, model.generate(prompt, 9, temperature=0))


def test_a_state_does_not_grow_beyond_the_window(rng):
    ids = rng.integers(0, 9, (2, 12))
    context = Context(keep=False)
    block = writer(window=3).encoder.blocks[0]
    state = block.start(2, 12)
    x = rng.normal(size=(2, 12, 16))
    for tokens in (slice(0, 9), slice(9, 10), slice(10, 12)):
        _, state = block.prefill(x[:, tokens], state, context)
        assert state.nbytes == 2 * 2 * 3 * 16 * ids.itemsize
        assert state.stop == tokens.stop


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("causal", [False, True])
def test_settings_that_change_nothing(causal, kernels, rng):
    """A window of the whole length, and as many heads of keys as of queries."""
    sizes = {**SIZES, "causal": causal, "max_len": 9}
    x = rng.normal(size=(2, 9, 16))
    with nf.use_kernels(kernels):
        expected = nf.Encoder(nf.EncoderConfig(**sizes), dtype="float64")(x)
        for same in ({"window": 18}, {"n_kv_heads": 2}, {"d_head": 8}, {"window": [18, None]}):
            y = nf.Encoder(nf.EncoderConfig(**sizes, **same), dtype="float64")(x)
            np.testing.assert_allclose(y, expected, rtol=0, atol=1e-13)


def test_grouped_queries_share_their_keys_with_the_values(rng):
    grouped = nf.mixers.GeneralAttention(8, 4, n_kv_heads=2, seed=0, dtype="float64")
    plain = nf.mixers.Attention(8, 4, seed=0, dtype="float64")
    for name, value in grouped.parameters().items():
        if name.startswith(("key", "value")):
            by_head = value.reshape(*value.shape[:-1], 2, 2).repeat(2, axis=-2)
            value = by_head.reshape(*value.shape[:-1], 8)
        plain.parameters()[name][...] = value
    x = rng.normal(size=(3, 5, 8))
    np.testing.assert_allclose(grouped(x), plain(x), rtol=0, atol=1e-14)


def test_a_gate_of_ones_is_the_plain_network(rng):
    gated = GatedFeedForward(4, 6, "gelu", seed=0, dtype="float64")
    plain = PositionwiseFeedForward(4, 6, "gelu", seed=0, dtype="float64")
    values = gated.parameters()
    values["up.weight"][...], values["up.bias"][...] = 0.0, 1.0
    for name, value in plain.parameters().items():
        value[...] = values[name.replace("expand", "gate").replace("contract", "down")]
    x = rng.normal(size=(3, 5, 4))
    np.testing.assert_allclose(gated(x), plain(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
def test_presets(causal, rng):
    config = nf.EncoderConfig.modern(**SIZES | {"n_layers": 4}, causal=causal)
    assert config.d_ff == SIZES["d_ff"]
    numpys = {name: np.int64(n) for name, n in (SIZES | {"n_layers": 4}).items()}
    assert nf.EncoderConfig.modern(**numpys, causal=causal) == config
    assert nf.EncoderConfig.modern(d_model=96).d_ff == 256
    assert nf.EncoderConfig.from_dict(config.to_dict()) == config
    assert config.n_kv_heads == (1 if causal else None)
    assert config.window == (None if causal else (None, 128, 128, None))
    model = nf.SequenceClassifier(config, 3, vocab_size=9, seed=0)
    assert not [name for name in model.parameters() if "encoder" in name and "bias" in name]
    x = rng.integers(0, 9, (30, 12))
    y = np.arange(30) % 3
    x[:, 4] = y
    history = nf.fit(model, (x, y), epochs=60, lr=1e-2, seed=0, progress=False)
    assert history.train_loss[-1] < 0.1


@pytest.fixture
def rotary_translator():
    return nf.EncoderDecoder(nf.EncoderConfig(**SIZES, positions="rotary"), 9, 9, seed=0)


def test_a_translator_rotates_no_tokens_of_the_memory(rotary_translator):
    layers = rotary_translator.layers()
    rotary_names = {name for name, layer in layers if getattr(layer, "rope_theta", None)}
    assert len(rotary_names) == 4
    assert all(name.endswith("mixer") for name in rotary_names)


def test_a_translator_with_rotated_tokens_has_finite_gradients(rotary_translator, rng):
    source, target = rng.integers(3, 9, (4, 6)), rng.integers(3, 9, (4, 5))
    x = source, target[:, :-1]
    loss, gradients = rotary_translator.loss_and_gradients(x, target[:, 1:])
    assert np.isfinite(loss)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())


@pytest.mark.parametrize("options", [TODAY, WINDOWS])
@pytest.mark.parametrize("workers", [1, 2])
def test_gradients_are_those_of_the_plain_model(workers, options, rng):
    x, y = rng.integers(0, 9, (6, 12)), rng.integers(0, 9, (6, 12))
    model = writer(**options)
    loss, gradients = model.loss_and_gradients(x, y, workers=workers)
    with nf.use_kernels(False):
        plain_loss, plain_gradients = model.loss_and_gradients(x, y)
    assert loss == pytest.approx(plain_loss, rel=1e-12)
    np.testing.assert_allclose(gradients.flat, plain_gradients.flat, rtol=0, atol=1e-13)


@pytest.mark.parametrize("options", [TODAY, WINDOWS])
def test_a_model_comes_back_from_a_file(options, tmp_path, rng):
    x = rng.integers(0, 9, (6, 12))
    model = writer(**options)
    nf.save(model, tmp_path / "model.safetensors")
    loaded = nf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded(x), model(x))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mixer": "fourier"}, "a mixer is fourier, which has no queries and keys"),
        ({"mixer": ["attention", "dense_synthesizer"]}, "a mixer is dense_synthesizer"),
        ({"n_heads": 16}, "a head has 1 features .d_head, or .*; expected an even number"),
        ({"rope_theta": 0.0}, "rope_theta is 0.0"),
        ({"rope_theta": [1.0, 2.0, 3.0]}, "rope_theta has 3 numbers; expected one number, or"),
        ({"window": [None, 0]}, r"window.1. is 0; expected a whole number of at least 1"),
        ({"mixer": ["fourier", "attention"], "positions": "none", "qk_norm": True}, "qk_norm is T"),
        ({"n_kv_heads": 3}, "n_kv_heads is 3 and n_heads is 2; expected n_kv_heads to divide"),
        ({"share_layers": True, "window": [2, None]}, "share_layers=True with window 2, None"),
    ],
)
def test_what_cannot_turn_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        nf.EncoderConfig(**{**SIZES, "positions": "rotary", **options})
