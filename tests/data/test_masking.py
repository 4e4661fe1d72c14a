"""Masking for a masked language model: fractions, and tokens that are never chosen."""

import numpy as np
import pytest

from npformer.data import mask_tokens
from npformer.data.masking import Masking

V, MASK_ID = 50, 2
RNG = np.random.default_rng(0)
IDS = RNG.integers(5, V, (400, 40))
MASK = np.arange(40) < RNG.integers(10, 41, 400)[:, None]
IDS[:, 0] = 3  # as [CLS]
IDS = np.where(MASK, IDS, 0)
SPECIAL = 0, 1, 3, 4


def hide_tokens(special_ids=SPECIAL, **settings):
    rng = np.random.default_rng(1)
    return mask_tokens(IDS, MASK, V, MASK_ID, rng, special_ids=special_ids, **settings)


@pytest.mark.parametrize(
    ("mask_share", "to_mask", "to_random"),
    [(0.15, 0.8, 0.1), (0.3, 0.5, 0.5), (0.4, 1.0, 0.0), (0.2, 0.0, 0.0)],
)
def test_the_fractions_of_hidden_tokens(mask_share, to_mask, to_random):
    x, y = hide_tokens(mask_share=mask_share, to_mask=to_mask, to_random=to_random)
    hidden = y >= 0
    n = MASK.sum(axis=1) - 1  # without the first token, which is special
    np.testing.assert_array_equal(hidden.sum(axis=1), np.rint(mask_share * n))
    np.testing.assert_array_equal(y[hidden], IDS[hidden])
    np.testing.assert_array_equal(x[~hidden], IDS[~hidden])
    total = hidden.sum()
    bound = 4.5 * (0.25 / total) ** 0.5  # standard deviations
    assert abs((x == MASK_ID).sum() / total - to_mask) < bound
    n_ordinary = V - 1 - len(SPECIAL)  # one of which is the token itself
    changed = hidden & (x != MASK_ID) & (x != IDS)
    assert abs(changed.sum() / total - to_random * (1.0 - 1.0 / n_ordinary)) < bound
    assert not np.isin(x[changed], [*SPECIAL, MASK_ID]).any()
    if to_random == 0.5:
        assert len(np.unique(x[changed])) == n_ordinary
    counts = hidden.sum(axis=0)[1:10]  # of the positions that all rows have
    assert counts.min() > 0.5 * counts.mean(), "some positions are hardly ever hidden"


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "uint64"])
def test_ids_of_any_integer_type_give_the_same_result(dtype):
    result = mask_tokens(IDS.astype(dtype), MASK, V, MASK_ID, np.random.default_rng(1))
    expected = mask_tokens(IDS, MASK, V, MASK_ID, np.random.default_rng(1))
    np.testing.assert_array_equal(result, expected)


def test_neither_special_tokens_nor_padding_are_hidden():
    _, y = hide_tokens(mask_share=1.0)
    np.testing.assert_array_equal(y >= 0, MASK & ~np.isin(IDS, [*SPECIAL, MASK_ID]))


def test_a_text_of_special_tokens_does_not_change():
    x, y = mask_tokens(np.full((2, 3), 3), None, V, MASK_ID, RNG, special_ids=SPECIAL)
    assert (y == -1).all()
    assert (x == 3).all()


def test_at_least_one_token_of_each_text_is_hidden():
    _, y = mask_tokens(np.full((2, 3), 7), None, V, MASK_ID, RNG)
    assert ((y >= 0).sum(axis=1) == 1).all()


def test_whole_words_are_hidden_together():
    continues = np.zeros(V, dtype=bool)
    continues[30:] = True
    x, y = hide_tokens(continues=np.flatnonzero(continues), to_mask=1.0, to_random=0.0)
    hidden = y >= 0
    longest = 0
    for row, length, row_hidden in zip(IDS, MASK.sum(axis=1), hidden, strict=True):
        for word in words_of_row(row, length, continues):
            assert len(set(row_hidden[word])) == 1
            longest = max(longest, word.stop - word.start)
    assert longest > 3
    n = np.maximum(np.rint(0.15 * (MASK.sum(axis=1) - 1)), 1)
    n_hidden = hidden.sum(axis=1)
    assert (n_hidden >= n).all()
    assert (n_hidden < n + longest).all()
    np.testing.assert_array_equal(x[hidden], MASK_ID)


def words_of_row(row, length, continues):
    """Return the slices of the words after the first token."""
    words = []
    start = 1
    while start < length:
        end = start + 1
        while end < length and continues[row[end]]:
            end += 1
        words.append(slice(start, end))
        start = end
    return words


@pytest.fixture
def masking():
    return Masking(V, MASK_ID, special_ids=SPECIAL)


def test_an_evaluation_hides_the_same_tokens_of_a_text_in_any_row(masking):
    x, y = masking.hide_for_evaluation(IDS, MASK)
    backwards_x, backwards_y = masking.hide_for_evaluation(IDS[::-1], MASK[::-1])
    np.testing.assert_array_equal(backwards_x, x[::-1])
    np.testing.assert_array_equal(backwards_y, y[::-1])


def test_an_evaluation_hides_the_same_tokens_of_a_text_with_any_padding(masking):
    x, y = masking.hide_for_evaluation(IDS, MASK)
    wide_ids = np.pad(IDS, ((0, 0), (2, 3)))
    wide_mask = np.pad(MASK, ((0, 0), (2, 3)))
    wide_x, wide_y = masking.hide_for_evaluation(wide_ids, wide_mask)
    np.testing.assert_array_equal(wide_x[:, 2:-3], x)
    np.testing.assert_array_equal(wide_y[:, 2:-3], y)


def test_an_evaluation_hides_the_same_tokens_without_a_mask(masking):
    _, y = masking.hide_for_evaluation(IDS, MASK)
    unpadded = MASK.all(axis=1)
    _, unpadded_y = masking.hide_for_evaluation(IDS[unpadded], None)
    np.testing.assert_array_equal(unpadded_y, y[unpadded])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask_share": 0.0}, "mask_share is 0.0.*above 0"),
        ({"mask_share": 15}, "mask_share is 15.*at most 1"),
        ({"to_mask": 0.8, "to_random": 0.3}, "at most 1 together"),
        ({"to_random": -0.1}, "to_random"),
        ({"special_ids": [V]}, "an id in special_ids is 50"),
        ({"continues": [70]}, "an id in continues is 70"),
        ({"special_ids": range(V)}, "all 50 ids are special"),
    ],
)
def test_wrong_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        hide_tokens(**changes)
