"""TextWriter, its windows, and the counts that stand beside it."""

import math
from collections import Counter

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.estimators import NotTrainedError
from npformer.tasks.estimators.ngrams import ngram_loss
from npformer.tasks.estimators.text_writer import windows
from tests.needs import NEEDS

TEXT = "the cat sat on the mat, and the dog lay on the rug.\n" * 30
SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1, "max_len": 16, "dropout": 0.0}


def small(**options):
    return nf.TextWriter(SMALL, **options)


@pytest.fixture(scope="module")
def trained():
    return small().fit(TEXT, validation=0.1, epochs=3, lr=0.01, progress=False)


def test_windows_hold_each_next_token_once():
    for n, length in ((2, 5), (11, 5), (12, 5), (10, 5), (64, 8)):
        ids = np.arange(n)
        x, y = windows(ids, length)
        assert x.shape == y.shape
        np.testing.assert_array_equal(np.sort(y[y >= 0]), ids[1:])
        np.testing.assert_array_equal(y[y >= 0], x[y >= 0] + 1)


def witten_bell(train, test, order):
    """Written out as the formula has it."""
    alphabet = len(set(train + test))

    def p(history, w):
        if history is None:
            return 1 / alphabet
        shorter = history[1:] if history else None
        n = len(history)
        places = [i for i in range(len(train) - n) if train[i : i + n] == history]
        follow = Counter(train[i + n] for i in places)
        n = sum(follow.values())
        kinds = len(follow)
        return (follow[w] + kinds * p(shorter, w)) / (n + kinds) if n else p(shorter, w)

    text = train + test
    losses = []
    for i in range(len(train), len(text)):
        losses.append(-math.log(p(text[i - order + 1 : i], text[i])))
    return float(np.mean(losses))


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_counts_are_those_of_the_formula(order):
    train, test = "abracadabra and a cat sat", "a bad cat ran x"
    assert ngram_loss(train, test, order) == pytest.approx(witten_bell(train, test, order), 1e-12)


def test_nats_are_the_mean_loss_of_a_character(trained):
    x, y = windows(trained.ids("text", TEXT[:200]), 16)
    logits = np.asarray(trained.model(x), dtype="float64")
    logits -= logits.max(axis=-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    log_p_of_targets = np.take_along_axis(log_p, np.maximum(y, 0)[..., None], axis=-1)[..., 0]
    scores = trained.evaluate(TEXT[:200])
    assert (scores.tokens, scores.characters) == (199, 199)
    assert scores.nats == pytest.approx(-log_p_of_targets[y >= 0].mean(), rel=1e-5)
    assert scores.bits == pytest.approx(scores.nats / math.log(2))
    assert scores.perplexity == pytest.approx(math.exp(scores.nats))


def test_it_learns(trained):
    losses = trained.history_.validation_loss
    assert losses[-1] < losses[0]


def test_it_writes_as_it_streams(trained):
    text = trained.generate("the ", 40, temperature=0)
    assert text == "".join(trained.stream("the ", 40, temperature=0))
    assert len(text) == 40


def test_one_seed_writes_one_text(trained):
    assert trained.generate("a", 10, seed=1) == trained.generate("a", 10, seed=1)


def test_a_short_window_is_looked_at(trained, tmp_path):
    page = trained.report(TEXT, tmp_path / "r.html").read_text("utf-8")
    assert "head 0: 16 rows, 16 columns" in page


@pytest.mark.parametrize("tokenizer", ["char", "word", "bpe"])
def test_it_is_saved_whole(tokenizer, tmp_path):
    if tokenizer == "bpe":
        pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
    writer = small(tokenizer=tokenizer, vocab_size=300, tied=False)
    writer.fit(TEXT, epochs=1, progress=False)
    assert writer.tokenizer_.decode(writer.ids("text", TEXT).tolist()) == TEXT
    nf.save(writer, tmp_path / "writer.safetensors")
    again = nf.load(tmp_path / "writer.safetensors")
    assert again.generate("the ", 20, seed=2) == writer.generate("the ", 20, seed=2)
    assert again.evaluate(TEXT).nats == writer.evaluate(TEXT).nats
    assert (again.tied, again.model.tied) == (False, False)


def test_a_token_that_ends_within_a_character_waits(tmp_path):
    pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
    text = "naïve façade über größe 😀 " * 40
    writer = small(tokenizer="bpe", vocab_size=270).fit(text, epochs=30, lr=0.01, progress=False)
    chunks = list(writer.stream("naïve", 30, temperature=0))
    assert not any("\ufffd" in chunk for chunk in chunks[:-1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: small().generate("a"), NotTrainedError, "has not been trained"),
        (lambda: small().fit(["a", "b"]), TypeError, "text"),
        (lambda: small().fit("a"), ValueError, "the text has 1 tokens; expected at least 2"),
        (lambda: small().fit(TEXT, patience=1), ValueError, "there is no validation"),
        (lambda: small().fit(TEXT, data=1), TypeError, "data is given to fit"),
        (lambda: nf.TextWriter({"mixer": "fourier"}).fit(TEXT), ValueError, "causal"),
        (lambda: nf.TextWriter(tokenizer="letters").check(), ValueError, "tokenizer is 'letters'"),
        (lambda: nf.TextWriter({"layers": 2}).check(), ValueError, "a setting in config"),
    ],
)
def test_mistakes_are_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
