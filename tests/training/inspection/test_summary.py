import re

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
