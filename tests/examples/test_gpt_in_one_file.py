"""One file with NumPy alone computes what npformer's language model computes, and writes."""

from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import npformer as nf
from tests.examples import conftest as common
from tests.examples.conftest import EXAMPLES, example

gpt = example("gpt_in_one_file")
TEXT = (EXAMPLES / "gpt_in_one_file.py").read_text("utf-8")

D, D_FF, H, LENGTH, CHARACTERS = 16, 24, 4, 8, 11


@pytest.fixture
def weights():
    """A small model whose norms and biases do something."""
    rng = np.random.default_rng(0)
    return common.moved(gpt.make_weights(rng, CHARACTERS, L=LENGTH, d=D, d_ff=D_FF), rng, 0.3)


@pytest.fixture
def batch():
    windows = np.random.default_rng(1).integers(0, CHARACTERS, (5, LENGTH + 1))
    return windows[:, :-1], windows[:, 1:]


def name_in_npformer(name):
    """Return a layer's name: "block 1 expand" -> "encoder.blocks.1.feed_forward.expand"."""
    tables = {"table": "embed.tokens", "positions": "embed.positions"}
    if not name.startswith("block "):
        return tables.get(name, f"encoder.{name}")
    _, number, layer = name.split(" ")
    within = {"expand": "feed_forward.", "contract": "feed_forward."}
    within |= dict.fromkeys(("query", "key", "value", "output"), "mixer.")
    return f"encoder.blocks.{number}.{within.get(layer, '')}{layer}"


@pytest.fixture
def model(weights):
    """npformer's model with the same weights."""
    config = nf.EncoderConfig(
        d_model=D,
        n_layers=2,
        n_heads=H,
        d_ff=D_FF,
        max_len=LENGTH,
        positions="learned",
        activation="gelu_tanh",
        scale_embeddings=False,
        norm="pre",
        causal=True,
    )
    model = nf.LanguageModel(config, vocab_size=CHARACTERS, dtype="float64")
    return common.add_weights(model, weights, name_in_npformer)


def test_the_same_weights_give_the_gradients_of_npformer(weights, model, batch):
    loss, g = gpt.loss_and_gradients(weights, *batch, H)
    common.assert_agree(loss, g, model, batch, name_in_npformer)


@pytest.mark.parametrize("cache", [True, False])
def test_it_writes_what_npformer_writes(weights, model, cache):
    for prompt in ([3], [1, 2, 3, 4, 5], [*range(9), 1, 2]):
        written = list(gpt.write(weights, prompt, 20, H, cache=cache))
        assert written == model.generate(prompt, 20, temperature=0).tolist()


def test_a_cache_changes_no_character(weights):
    drawn = partial(gpt.write, weights, [3, 1], 30, H)
    texts = [list(drawn(np.random.default_rng(0), cache)) for cache in (True, False)]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 3


@pytest.mark.parametrize("pair", ["linear", "layer_norm", "gelu", "attention"])
def test_its_gradient_check_notices_a_wrong_backward_pass(weights, batch, pair, monkeypatch):
    common.assert_check_notices(pair, gpt, weights, batch, H, monkeypatch)


def test_no_character_sees_what_comes_later(weights, batch):
    ids, _ = batch
    logits, _ = gpt.forward(weights, ids, H)
    for t in range(1, LENGTH):
        changed = ids.copy()
        changed[:, t:] = (changed[:, t:] + 1) % CHARACTERS
        np.testing.assert_array_equal(gpt.forward(weights, changed, H)[0][:, :t], logits[:, :t])


@pytest.mark.slow
def test_it_learns_to_go_on_with_a_text(capsys):
    text = "to be, or not to be: that is the question. " * 40
    with threadpool_limits(limits=1, user_api="blas"):  # threads gain nothing in small products
        weights, characters = gpt.train(text, steps=200)
    error, last = capsys.readouterr().out.splitlines()
    assert float(error.removeprefix("largest error of a gradient: ")) < 1e-8
    assert float(last.split()[3]) < 0.3
    prompt = [characters.index(character) for character in text[:20]]
    written = gpt.write(weights, prompt, 23, 4)
    assert "".join(characters[token] for token in written) == text[20:43]


def test_it_can_be_read_in_one_sitting():
    assert len(TEXT.splitlines()) <= 300


def test_it_imports_numpy_alone():
    """Three modules of Python read the text, and one limits the threads."""
    assert common.imported_by(TEXT) == {"gzip", "numpy", "os", "pathlib", "sys"}
