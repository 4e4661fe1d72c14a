import re
from dataclasses import replace

import numpy as np
import pytest

import npformer as nf


def counted(table):
    *rows, _, last = table.splitlines()[2:]
    numbers = [re.search(r"  ([\d,]+)(?:  runs as written)?$", row) for row in rows]
    total = sum(int(number[1].replace(",", "")) for number in numbers if number)
    return total, int(last.split()[0].replace(",", ""))


@pytest.mark.parametrize(
    "changes",
    [
        *({"mixer": mixer} for mixer in nf.MIXERS),
        {"mixer": ["fourier", "attention"], "positions": "learned"},
        {"share_layers": True},
        {"norm": "pre", "ffn": "conv1d"},
        {"norm": "pre", "ffn": "none"},
        {"pooling": "flatten", "d_model": 32, "d_ff": 128},
    ],
    ids=str,
)
def test_the_parameters_in_the_table_add_up(small_model, rng, changes):
    model = small_model(**changes)
    table = nf.summary(model, rng.integers(0, 7, (1, 6)))
    total, last = counted(table)
    assert total == last == model.n_parameters()
    if not model.config.share_layers:
        assert len(table.splitlines()[2:-2]) == len(list(model.layers()))


def test_a_line_of_the_table_describes_a_layer(small_model, ids):
    table = nf.summary(small_model(), ids)
    assert re.search(r"^model +SequenceClassifier +\(2, 3\)$", table, re.M)
    assert re.search(r"^    tokens +Embedding +\(2, 5, 8\) +56$", table, re.M)
    assert re.search(r"^    blocks\.1 +EncoderBlock +\(2, 5, 8\)$", table, re.M)
    assert re.search(r"^        query +Linear +\(2, 5, 8\) +72$", table, re.M)
    assert table.endswith("trained parameters, float64")


def test_the_table_says_which_parameters_are_shared(small_model, ids):
    rows = nf.summary(small_model(share_layers=True), ids).splitlines()
    assert [row.split()[-1] for row in rows if "query" in row] == ["72", "shared"]
    counted_twice = sum("Linear" in row or "LayerNorm" in row for row in rows) // 2
    assert sum("shared" in row for row in rows) == counted_twice


def test_a_sample_is_made_if_there_is_none(small_model):
    model = small_model()
    length = model.config.max_len
    ids = np.full((1, length), 1)
    assert nf.summary(model) == nf.summary(model, ids)


@pytest.mark.parametrize(
    "build",
    [
        lambda config: nf.SequenceClassifier(config, 3, n_features=2, pooling="flatten"),
        lambda config: nf.SequenceClassifier(config, 3, vocab_size=5, padding_id=0),
        lambda config: nf.LanguageModel(replace(config, causal=True), 5),
        lambda config: nf.MaskedLanguageModel(config, 5),
        lambda config: nf.EncoderDecoder(config, 5, 6),
        nf.Encoder,
    ],
)
def test_a_sample_is_made_for_each_kind_of_model(build):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=4)
    assert "(1, 4, 8)" in nf.summary(build(config))


def test_a_layer_that_does_not_say_what_it_takes_needs_a_sample():
    with pytest.raises(TypeError, match=r"^x is not given, and a Linear does not say .*x\[:1\]\)$"):
        nf.summary(nf.layers.Linear(2, 3))


def test_a_summary_shows_itself_as_it_is_printed(small_model):
    table = nf.summary(small_model())
    assert repr(table) == str(table)
    assert table._repr_html_().startswith("<pre>layer")
