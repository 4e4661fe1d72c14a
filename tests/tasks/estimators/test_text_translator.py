"""TextTranslator, how translations are judged, and how pairs are parted."""

import numpy as np
import pytest

import npformer as nf
from npformer.data.pairs import PAIRS, pairs
from npformer.tasks.estimators.defaults import tokenizer_for
from npformer.tasks.estimators.pair_split import split_by_source
from npformer.tasks.estimators.translations import edit_distance, translations_of

SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1, "dropout": 0.0}
SOURCES, TARGETS = pairs("add", 200)


def small(**options):
    return nf.TextTranslator(SMALL, **options)


@pytest.fixture(scope="module")
def trained():
    return small().fit(SOURCES, TARGETS, validation=0.1, epochs=2, progress=False)


def test_generated_pairs_are_right():
    for name in PAIRS:
        sources, targets = pairs(name, 500, seed=3)
        assert len(set(sources)) == 500
        assert (sources, targets) == pairs(name, 500, seed=3)
        for source, target in zip(sources, targets, strict=True):
            if name == "add":
                assert sum(map(int, source.split("+"))) == int(target[::-1])
            else:
                expected = source[::-1] if name == "reversal" else "".join(sorted(source))
                assert target == expected
                assert 1 <= len(source) <= 20


def test_edits():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    assert edit_distance("abc", "abc") == 0
    assert edit_distance(["a", "bc"], ["a", "b", "c"]) == 2


def test_any_target_of_a_source_is_right():
    evaluation = translations_of({"a": ["x y", "x"], "b": ["p q"]}, ["x", "p z"], str.split)
    assert (evaluation.n, evaluation.exact) == (2, 0.5)
    assert evaluation.edits == pytest.approx(1 / 3)  # one of the tokens x, p, q
    assert evaluation.worst == [("b", "p q", "p z", 1)]


def test_a_source_stays_in_one_part():
    sources = np.array(["a", "b", "a", "c", "b", "d"])
    larger, smaller = split_by_source(sources, 0.5, 0)
    assert sorted([*larger, *smaller]) == [*range(6)]
    assert len(set(sources[smaller])) == 2
    assert not set(sources[larger]) & set(sources[smaller])
    with pytest.raises(ValueError, match="1 different sources are too few"):
        split_by_source(["a", "a"], 0.5, 0)


def test_columns_of_few_words_are_split_into_words():
    assert tokenizer_for(["AH0 B", "B AH0"] * 100) == "word"
    assert tokenizer_for(["abandon", "about"] * 100) == "char"
    assert tokenizer_for([f"word{i} other{i}" for i in range(200)]) == "char"


def test_it_is_measured_by_running_freely(trained):
    evaluation = trained.evaluate(SOURCES[:30], TARGETS[:30])
    written = trained.translate(SOURCES[:30])
    right = np.mean([one == other for one, other in zip(written, TARGETS, strict=False)])
    assert evaluation.exact == pytest.approx(right)
    assert (evaluation.edits == 0) == (right == 1)


def test_it_is_saved_whole(trained, tmp_path):
    nf.save(trained, tmp_path / "t.safetensors")
    again = nf.load(tmp_path / "t.safetensors")
    assert again.translate(SOURCES[:9], beams=3) == trained.translate(SOURCES[:9], beams=3)


def test_a_text_that_does_not_end_is_looked_at(tmp_path):
    endless = small(max_len=10).fit(["a"], ["b"], epochs=1, progress=False)
    endless.model.parameters()["output.bias"][endless.model.end_id] = -1e3
    page = endless.report(["a"], path=tmp_path / "r.html").read_text("utf-8")
    assert "head 0: 10 rows, 10 columns" in page


def test_a_decoder_of_its_own():
    decoder = nf.EncoderConfig(d_model=16, n_heads=2, d_ff=16, n_layers=1, causal=True, max_len=40)
    config = {**SMALL, "mixer": "fourier", "padding": "per_length", "max_len": 40}
    translator = nf.TextTranslator(config, decoder=decoder)
    translator.fit(SOURCES, TARGETS, epochs=1, progress=False)
    assert len(translator.translate(SOURCES[:2])) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: small().fit(["a"], ["b", "c"]), "sources and targets are 1 and 2; expected"),
        (lambda: small().fit([], []), "at least one"),
        (lambda: small(max_len=3).fit(SOURCES, TARGETS), "expected at most max_len, 3"),
        (lambda: nf.TextTranslator(tokenizer=("char",) * 3).check(), "tokenizer has 3 names"),
        (lambda: nf.TextTranslator(tokenizer="letters").check(), "tokenizer is 'letters'"),
        (lambda: small().fit(SOURCES, TARGETS, metric="loss"), "there is no validation"),
        (lambda: small().translate(["a"]), "has not been trained"),
    ],
)
def test_mistakes_are_said(call, words):
    with pytest.raises(ValueError, match=words):
        call()
