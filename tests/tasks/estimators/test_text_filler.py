"""TextFiller: from texts without labels to words for gaps, and to a classifier."""

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
    found = filler.evaluate(TEXTS)
    lengths = [len(text.split()) for text in TEXTS]
    assert found.tokens == sum(lengths)
    assert found.accuracy > found.most_frequent > 0.1
    assert found == filler.evaluate(TEXTS)
    (((word, p), *_),) = nf.fill(filler, "bread [MASK] the")
    assert word in ("bread", "soup", "apple", "rice", "the", "a", "is")  # and not the weather
    assert 0.1 < p < 1.0


def test_a_long_text_becomes_several_rows(filler):
    ids, _, mask = filler.data("texts", ["bread soup " * 8, "rain"], 6)
    assert mask.sum(axis=1).tolist() == [6, 6, 4, 1]
    assert ids[mask].tolist() == filler.tokenizer_.ids("bread soup " * 8 + "rain")


def test_a_classifier_begins_with_its_tables_and_blocks(filler, tmp_path):
    nf.save(filler, tmp_path / "model.safetensors")
    frozen = nf.TextClassifier(pretrained=tmp_path, freeze=["embed.*", "encoder.*"])
    frozen.fit(TEXTS, LABELS, **BRIEF)
    own = filler.model.parameters()
    after = {name: p.value for name, p in frozen.model.named_parameters().items()}
    taken = [name for name in after if name in own]
    assert {name.partition(".")[0] for name in taken} == {"embed", "encoder"}
    for name in taken:
        np.testing.assert_array_equal(after[name], own[name])
    assert frozen.tokenizer_.to_dict() == filler.tokenizer_.to_dict()
    tuned = nf.TextClassifier(pretrained=tmp_path).fit(TEXTS, LABELS, **BRIEF)
    assert tuned.settings_["layer_decay"] < 1.0
    assert tuned.score(TEXTS, LABELS) > 0.9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: nf.TextFiller(tokenizer=train_tokenizer("word", TEXTS)).fit(TEXTS), "no .MASK"),
        (lambda f: nf.TextFiller().fit(["", " "]), "texts has no word"),
        (lambda f: nf.TextFiller().fit(TEXTS, patience=2), "there is no validation"),
        (lambda f: nf.TextClassifier({"d_model": 8}, pretrained=f).fit(TEXTS, LABELS), "only pre"),
    ],
)
def test_mistakes_are_explained(filler, call, words):
    with pytest.raises(ValueError, match=words):
        call(filler)
