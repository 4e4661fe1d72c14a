"""Texts without labels: words for gaps, and a beginning for a classifier."""

import numpy as np
import pytest

import npformer as nf
from npformer.data.tokenizers import train_tokenizer
from tests.tasks.estimators.conftest import QUICK, SIZES, texts_and_labels

TEXTS, LABELS = texts_and_labels()
BRIEF = QUICK | {"validation": None}


@pytest.fixture(scope="module")
def filler():
    config = SIZES | {"max_len": 8}
    return nf.TextFiller(config, mask_share=0.3).fit(TEXTS, **BRIEF | {"epochs": 30})


def test_it_guesses_hidden_words_better_than_one_word_for_all(filler):
    evaluation = filler.evaluate(TEXTS)
    lengths = [len(text.split()) for text in TEXTS]
    assert evaluation.tokens == sum(lengths)
    assert evaluation.accuracy > evaluation.most_frequent > 0.1
    assert evaluation == filler.evaluate(TEXTS)
    (((word, p), *_),) = nf.fill(filler, "bread [MASK] the")
    assert word in ("bread", "soup", "apple", "rice", "the", "a", "is")  # and not the weather
    assert 0.1 < p < 1.0


def test_a_long_text_becomes_several_rows(filler):
    ids, _, mask = filler.data("texts", ["bread soup " * 8, "rain"], 6)
    assert mask.sum(axis=1).tolist() == [6, 6, 4, 1]
    assert ids[mask].tolist() == filler.tokenizer_.ids("bread soup " * 8 + "rain")


@pytest.fixture
def pretrained(filler, tmp_path):
    """Return a folder with the model of the filler."""
    nf.save(filler, tmp_path / "model.safetensors")
    return tmp_path


def test_a_classifier_begins_with_the_weights_of_a_filler(filler, pretrained):
    frozen = nf.TextClassifier(pretrained=pretrained, freeze=["embed.*", "encoder.*"])
    frozen.fit(TEXTS, LABELS, **BRIEF)
    expected = filler.model.parameters()
    weights = {name: p.value for name, p in frozen.model.named_parameters().items()}
    shared_names = [name for name in weights if name in expected]
    assert {name.partition(".")[0] for name in shared_names} == {"embed", "encoder"}
    for name in shared_names:
        np.testing.assert_array_equal(weights[name], expected[name])
    assert frozen.tokenizer_.to_dict() == filler.tokenizer_.to_dict()


def test_a_pretrained_classifier_learns_with_layer_decay(pretrained):
    tuned = nf.TextClassifier(pretrained=pretrained).fit(TEXTS, LABELS, **BRIEF)
    assert tuned.settings_["layer_decay"] < 1.0
    assert tuned.score(TEXTS, LABELS) > 0.9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda f: nf.TextFiller(tokenizer=train_tokenizer("word", TEXTS)).fit(TEXTS),
            "has no .MASK",
        ),
        (lambda f: nf.TextFiller().fit(["", " "]), "texts has no word"),
        (lambda f: nf.TextFiller().fit(TEXTS, patience=2), "there is no validation"),
        (lambda f: nf.TextClassifier({"d_model": 8}, pretrained=f).fit(TEXTS, LABELS), "only pre"),
    ],
)
def test_mistakes_are_explained(filler, call, words):
    with pytest.raises(ValueError, match=words):
        call(filler)


SHORT = ["a b c d", "b c d e", "c d e f", "d e f g"] * 8
TOKENIZER = train_tokenizer("word", SHORT, masks=True)
CONFIG = nf.EncoderConfig(d_model=16, n_layers=1, n_heads=2, d_ff=16, max_len=6)
MODEL = nf.MaskedLanguageModel(
    CONFIG,
    TOKENIZER.vocab_size,
    mask_id=TOKENIZER.mask_id,
    padding_id=0,
    special_ids=[1],
    dtype="float64",
)


def test_each_mask_has_its_likeliest_words(tmp_path):
    guesses = nf.fill(MODEL, "b [MASK] d [MASK]", k=3, tokenizer=TOKENIZER)
    row = np.array([TOKENIZER.ids("b [MASK] d [MASK]")])
    for p, words in zip(MODEL.predict_probabilities(row)[0, [1, 3]], guesses, strict=True):
        best = [id for id in np.argsort(-p, kind="stable") if id > TOKENIZER.mask_id][:3]
        assert words == [(TOKENIZER.token(int(id)), p[id]) for id in best]
    filler = nf.TextFiller(CONFIG, tokenizer=TOKENIZER).fit(SHORT, epochs=1, progress=False)
    nf.save(filler, tmp_path / "model.safetensors")
    for place in (filler, tmp_path, tmp_path / "model.safetensors"):
        assert nf.fill(place, "a [MASK]") == nf.fill(filler, "a [MASK]")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": "a b"}, r"2 tokens and 0 times \[MASK\].*'the film was \[MASK\]'"),
        ({"text": "[MASK] b c d e f g"}, "7 tokens .*expected at most 6"),
        ({"model": nf.layers.Linear(2, 2)}, "model is .*TextFiller"),
        ({"tokenizer": None}, "tokenizer is None.*tokenizer=..."),
        ({"tokenizer": train_tokenizer("word", SHORT)}, "the mask_id None, the model"),
        ({"k": 0}, "k is 0"),
        ({"model": "nowhere"}, "does not exist"),
    ],
)
def test_wrong_calls_are_refused(arguments, message):
    valid = {"model": MODEL, "text": "a [MASK]", "tokenizer": TOKENIZER}
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        nf.fill(**valid | arguments)
