import numpy as np
import pytest

from npformer import EncoderConfig
from npformer.mixers import LAYOUTS, hybrid

SIZES = [(n_layers, n) for n_layers in (1, 2, 3, 4, 5, 6, 7, 12, 24) for n in range(n_layers + 1)]

PUBLISHED = {
    "bottom": lambda i, L, n: i < n,
    "middle": lambda i, L, n: L - n <= 2 * i < L + n,
    "top": lambda i, L, n: i >= L - n,
    "mixed": lambda i, L, n: n > 0 and i % (L // n) == 0 and i // (L // n) < n,
}
"""Whether layer i of L has attention: the rules of FNet's published code, but for the last term of
"mixed", which keeps to n layers."""


def published_mixed(n_layers, n):
    """Return which layers have attention by the published code, for n of at least 1."""
    return [i % (n_layers // n) == 0 for i in range(n_layers)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_stands_where_the_published_rule_says(layout):
    for n_layers, n in SIZES:
        attends = [PUBLISHED[layout](i, n_layers, n) for i in range(n_layers)]
        assert sum(attends) == n
        expected = tuple("attention" if attended else "fourier" for attended in attends)
        assert hybrid(n_layers, n, layout) == expected


def test_a_hybrid_names_the_mixer_of_each_layer():
    assert hybrid(12) == ("fourier",) * 10 + ("attention",) * 2
    names = hybrid(3, 1, "bottom", mixer="linear", attention="dense_synthesizer")
    assert names == ("dense_synthesizer", "linear", "linear")
    config = EncoderConfig(n_layers=4, mixer=hybrid(4, 1))
    assert config.mixers() == ("fourier", "fourier", "fourier", "attention")
    assert hybrid(np.int64(3), np.int64(1)) == ("fourier", "fourier", "attention")


def test_mixed_follows_the_paper_where_its_code_has_more_attention_than_was_asked_for():
    differ = 0
    for n_layers in range(1, 13):
        for n in range(1, n_layers + 1):
            ours = [name == "attention" for name in hybrid(n_layers, n, "mixed")]
            theirs = published_mixed(n_layers, n)
            assert sum(ours) == n
            differ += ours != theirs
            # Theirs has all of ours; where it has as many, both are the same.
            assert all(
                published or not has_attention
                for has_attention, published in zip(ours, theirs, strict=True)
            )
            assert (ours == theirs) == (sum(theirs) == n)
    assert differ == 43
    assert hybrid(5, 2, "mixed") == ("attention", "fourier", "attention", "fourier", "fourier")
    assert [i for i, has_attention in enumerate(published_mixed(5, 2)) if has_attention] == [
        0,
        2,
        4,
    ]
    assert published_mixed(12, 2) == [i in (0, 6) for i in range(12)]
