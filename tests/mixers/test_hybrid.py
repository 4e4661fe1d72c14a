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
"""Whether layer i of L has attention, by the rules of FNet's published code."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_stands_where_the_published_rule_says(layout):
    for n_layers, n in SIZES:
        attends = [PUBLISHED[layout](i, n_layers, n) for i in range(n_layers)]
        assert sum(attends) == n
        expected = tuple("attention" if attended else "fourier" for attended in attends)
        assert hybrid(n_layers, n, layout) == expected


def test_fnet_hybrid_has_attention_in_the_last_two_of_twelve():
    assert hybrid(12) == ("fourier",) * 10 + ("attention",) * 2


def test_any_two_mixers_make_a_hybrid():
    names = hybrid(3, 1, "bottom", mixer="linear", attention="dense_synthesizer")
    assert names == ("dense_synthesizer", "linear", "linear")


def test_a_configuration_takes_it():
    config = EncoderConfig(n_layers=4, mixer=hybrid(4, 1))
    assert config.mixers() == ("fourier", "fourier", "fourier", "attention")


def test_numbers_may_be_numpys():
    assert hybrid(np.int64(3), np.int64(1)) == ("fourier", "fourier", "attention")
