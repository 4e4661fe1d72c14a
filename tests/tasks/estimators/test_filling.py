"""nf.fill: the words that a masked language model puts in place of [MASK]."""

import numpy as np
import pytest

import npformer as nf
from npformer.data.tokenizers import train_tokenizer
from tests.in_turn import in_turn

TEXTS = ["a b c d", "b c d e", "c d e f", "d e f g"] * 8
TOKENIZER = train_tokenizer("word", TEXTS, masks=True)
CONFIG = nf.EncoderConfig(d_model=16, n_layers=1, n_heads=2, d_ff=16, max_len=6)
OF_TOKENS = {"mask_id": TOKENIZER.mask_id, "padding_id": 0, "special_ids": [1]}
MODEL = nf.MaskedLanguageModel(CONFIG, TOKENIZER.vocab_size, **OF_TOKENS, dtype="float64")


def test_each_mask_has_its_likeliest_words(tmp_path):
    found = nf.fill(MODEL, "b [MASK] d [MASK]", k=3, tokenizer=TOKENIZER)
    row = np.array([TOKENIZER.ids("b [MASK] d [MASK]")])
    for p, words in zip(MODEL.predict_probabilities(row)[0, [1, 3]], found, strict=True):
        best = [id for id in np.argsort(-p, kind="stable") if id > TOKENIZER.mask_id][:3]
        assert words == [(TOKENIZER.token(int(id)), p[id]) for id in best]
    filler = nf.TextFiller(CONFIG, tokenizer=TOKENIZER).fit(TEXTS, epochs=1, progress=False)
    nf.save(filler, tmp_path / "model.safetensors")
    for place in (filler, tmp_path, tmp_path / "model.safetensors"):
        assert nf.fill(place, "a [MASK]") == nf.fill(filler, "a [MASK]")


@in_turn(
    ("arguments", "message"),
    ({"text": "a b"}, r"2 tokens and 0 times \[MASK\].*'the film was \[MASK\]'"),
    ({"text": "[MASK] b c d e f g"}, "7 tokens .*expected at most 6"),
    ({"model": nf.layers.Linear(2, 2)}, "model is .*TextFiller"),
    ({"tokenizer": None}, "tokenizer is None.*tokenizer=..."),
    ({"tokenizer": train_tokenizer("word", TEXTS)}, "the mask_id None, the model"),
    ({"k": 0}, "k is 0"),
    ({"model": "nowhere"}, "there is no"),
)
def test_wrong_calls_are_refused(arguments, message):
    usual = {"model": MODEL, "text": "a [MASK]", "tokenizer": TOKENIZER}
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        nf.fill(**usual | arguments)
