"""Models that write are trained as any: what they add is how targets are shifted and padded."""

from dataclasses import replace

import numpy as np
import pytest

import npformer as nf

CONFIG = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=8)
RNG = np.random.default_rng(0)


def pairs_of(n=12, length=5, seed=0):
    """Return sources and their reversals, of 1 to `length` symbols, with 0 behind them."""
    rng = np.random.default_rng(seed)
    source, target = np.zeros((n, length), int), np.zeros((n, length + 2), int)
    target[:, 0] = 1
    for i, size in enumerate(rng.integers(1, length + 1, n)):
        source[i, :size] = rng.integers(3, 8, size)
        target[i, 1 : size + 1] = source[i, :size][::-1]
        target[i, size + 1] = 2
    return source, target


def translator(**changes):
    return nf.EncoderDecoder(CONFIG, 8, 8, **{"seed": 1, "dtype": "float64"} | changes)


def assert_same(one, other, **tolerance):
    assert list(one) == list(other)
    for name in one:
        np.testing.assert_allclose(one[name], other[name], err_msg=name, **tolerance)


@pytest.fixture
def shifted():
    """Return a translator, sources and targets, and targets shifted without those at padding."""
    source, target = pairs_of()
    x = target[:, :-1]
    y = np.where(target[:, 1:] == 0, -1, target[:, 1:])
    return translator(), source, target, x, y


def test_a_target_is_shifted(shifted):
    model, source, target, x, y = shifted
    loss, gradients = model.loss_and_gradients(source, target)
    expected_loss, expected = model.loss_and_gradients((source, x), y)
    assert loss == expected_loss
    assert_same(gradients, expected, rtol=0, atol=0)


def test_the_loss_is_that_of_tokens_other_than_padding(shifted):
    model, source, target, x, y = shifted
    loss, _ = model.loss_and_gradients(source, target)
    logits = model(source, x)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    of_targets = np.take_along_axis(log_p, np.maximum(y, 0)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(loss, -of_targets[y >= 0].mean(), rtol=1e-12)


def test_more_padding_on_either_side_changes_nothing():
    source, target = pairs_of()
    model = translator()
    loss, gradients = model.loss_and_gradients(source, target)
    wider = [np.pad(ids, ((0, 0), (0, n))) for ids, n in ((source, 3), (target, 1))]
    again, theirs = model.loss_and_gradients(*wider)
    np.testing.assert_allclose(again, loss, rtol=1e-12)
    assert_same(gradients, theirs, rtol=0, atol=1e-12)
    masks = np.pad(source != 0, ((0, 0), (0, 3))), None
    filled = np.where(masks[0], wider[0], 5)
    of_masks, theirs = model.loss_and_gradients(filled, wider[1], masks)
    np.testing.assert_allclose(of_masks, loss, rtol=1e-12)
    assert_same(gradients, theirs, rtol=0, atol=1e-12)


def test_the_first_token_of_a_target_is_never_padding():
    source, target = pairs_of()
    marian = translator(begin_id=0, padding_id=0)
    begun = target.copy()
    begun[:, 0] = 0
    assert marian.check(source, begun).inputs[1].mask[:, 0].all()
    assert len(marian.generate(source, 4)) == len(source)


def test_tied_tables_are_one_parameter():
    model = translator(tied=True)
    tables = [name for name in model.parameters() if name.endswith("tokens.weight")]
    assert tables == ["source.tokens.weight"]
    assert not any(name.startswith("output") for name in model.parameters())


@pytest.mark.parametrize(
    "make_model",
    [
        lambda: translator(tied=True),
        translator,
        lambda: nf.LanguageModel(replace(CONFIG, causal=True), 7, dtype="float64"),
        lambda: nf.LanguageModel(replace(CONFIG, causal=True), 7, tied=False),
    ],
    ids=["tied translator", "translator", "tied writer", "writer"],
)
def test_a_model_is_saved_with_its_tables(tmp_path, make_model):
    model = make_model()
    nf.save(model, tmp_path / "model.safetensors")
    loaded = nf.load(tmp_path / "model.safetensors")
    assert_same(model.parameters(), loaded.parameters(), rtol=0, atol=0)
    assert loaded.arguments() == model.arguments()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s, t: (s, t[:, 0]), ValueError, r"y has shape \(12,\).*whole sequences of ids"),
        (lambda s, t: (s, t[:, :1]), ValueError, "at least two tokens in each target"),
        (lambda s, t: (s, t + 3), ValueError, "y has 10|x has|8"),
        (lambda s, t: (s + 6, t), ValueError, "vocab_size is 8"),
        (lambda s, t: (s[:5], t), ValueError, "5"),
        (lambda s, t: (s.astype(float), t), TypeError, "float64"),
    ],
)
def test_wrong_data_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        nf.fit(translator(), change(*pairs_of()), epochs=1, progress=False)


def test_a_decoder_that_cannot_be_causal_is_named():
    fourier = replace(CONFIG, mixer="fourier", padding="per_length")
    with pytest.raises(ValueError, match=r"cannot have the configuration.*Pass decoder="):
        nf.EncoderDecoder(fourier, 8, 8)
    model = nf.EncoderDecoder(fourier, 8, 8, decoder=replace(CONFIG, causal=True))
    source, target = pairs_of()
    assert np.isfinite(model.loss_and_gradients(source, target)[0])
    with pytest.raises(ValueError, match=r"config\.causal is False"):
        nf.EncoderDecoder(CONFIG, 8, 8, decoder=CONFIG)
    with pytest.raises(ValueError, match="tied is True, source_vocab and d_model are 8 and 8"):
        nf.EncoderDecoder(CONFIG, 8, 9, tied=True)


def test_a_state_space_is_the_same_after_512_tokens():
    config = replace(CONFIG, causal=True, mixer="state_space", max_len=512, positions="none")
    model = nf.LanguageModel(config, 7, dtype="float64")
    ids = RNG.integers(0, 7, (2, 512))
    states = model.start(2, 512)
    context = nf.Context(keep=False)
    for t in range(512):
        logits, states = model.next_logits(ids[:, t : t + 1], states, context)
    np.testing.assert_allclose(logits, model(ids)[:, -1], rtol=0, atol=1e-9)
    assert model.state_bytes(512) == model.state_bytes(1)
