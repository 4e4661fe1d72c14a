"""The choice of tokens of a masked language model: its shares, and what is never chosen."""

import numpy as np
import pytest

from npformer.data import mask_tokens
from npformer.data.masking import Masking

V, MASK_ID = 50, 2
RNG = np.random.default_rng(0)
IDS = RNG.integers(5, V, (400, 40))
KEPT = np.arange(40) < RNG.integers(10, 41, 400)[:, None]
IDS[:, 0] = 3  # as [CLS]
IDS = np.where(KEPT, IDS, 0)
SPECIAL = 0, 1, 3, 4


def masked(**changes):
    usual = {"special_ids": SPECIAL} | changes
    return mask_tokens(IDS, KEPT, V, MASK_ID, np.random.default_rng(1), **usual)


@pytest.mark.parametrize(
    ("mask_share", "to_mask", "to_random"),
    [(0.15, 0.8, 0.1), (0.3, 0.5, 0.5), (0.4, 1.0, 0.0), (0.2, 0.0, 0.0)],
)
def test_shares(mask_share, to_mask, to_random):
    x, y = masked(mask_share=mask_share, to_mask=to_mask, to_random=to_random)
    hidden = y >= 0
    n = KEPT.sum(axis=1) - 1  # without the first token, which is special
    np.testing.assert_array_equal(hidden.sum(axis=1), np.rint(mask_share * n))
    np.testing.assert_array_equal(y[hidden], IDS[hidden])
    np.testing.assert_array_equal(x[~hidden], IDS[~hidden])
    total = hidden.sum()
    bound = 4.5 * (0.25 / total) ** 0.5  # standard deviations
    assert abs((x == MASK_ID).sum() / total - to_mask) < bound
    others = V - 1 - len(SPECIAL)  # one of which is the token itself
    changed = hidden & (x != MASK_ID) & (x != IDS)
    assert abs(changed.sum() / total - to_random * (1.0 - 1.0 / others)) < bound
    assert not np.isin(x[changed], [*SPECIAL, MASK_ID]).any()
    if to_random == 0.5:
        assert len(np.unique(x[changed])) == others
    places = hidden.sum(axis=0)[1:10]  # which all rows have
    assert places.min() > 0.5 * places.mean(), "some places are hardly ever hidden"


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "uint64"])
def test_ids_of_any_whole_type_are_the_same(dtype):
    found = mask_tokens(IDS.astype(dtype), KEPT, V, MASK_ID, np.random.default_rng(1))
    expected = mask_tokens(IDS, KEPT, V, MASK_ID, np.random.default_rng(1))
    np.testing.assert_array_equal(found, expected)


def test_special_tokens_and_padding_are_never_hidden():
    _, y = masked(mask_share=1.0)
    np.testing.assert_array_equal(y >= 0, KEPT & ~np.isin(IDS, [*SPECIAL, MASK_ID]))
    x, y = mask_tokens(np.full((2, 3), 3), None, V, MASK_ID, RNG, special_ids=SPECIAL)
    assert (y == -1).all()
    assert (x == 3).all()
    _, y = mask_tokens(np.full((2, 3), 7), None, V, MASK_ID, RNG)
    assert ((y >= 0).sum(axis=1) == 1).all(), "at least one of each text"


def test_whole_words_are_hidden_together():
    continues = np.zeros(V, dtype=bool)
    continues[30:] = True
    x, y = masked(continues=np.flatnonzero(continues), to_mask=1.0, to_random=0.0)
    n, hidden = np.maximum(np.rint(0.15 * (KEPT.sum(axis=1) - 1)), 1), (y >= 0).sum(axis=1)
    longest = 0
    for row, kept, some in zip(IDS, KEPT, y >= 0, strict=True):
        words, place = [], 1
        while place < kept.sum():
            end = place + 1
            while end < kept.sum() and continues[row[end]]:
                end += 1
            words.append(slice(place, end))
            longest, place = max(longest, end - place), end
        assert all(len(set(some[word])) == 1 for word in words)
    assert longest > 3
    assert (hidden >= n).all()
    assert (hidden < n + longest).all()
    np.testing.assert_array_equal(x[y >= 0], MASK_ID)


def test_an_evaluation_hides_the_same_tokens_of_a_text_wherever_it_stands():
    masking = Masking(V, MASK_ID, special_ids=SPECIAL)
    x, y = masking.hide_for_evaluation(IDS, KEPT)
    back = np.arange(len(IDS))[::-1]
    for some in (x[back], y[back]), masking.hide_for_evaluation(IDS[back], KEPT[back]):
        np.testing.assert_array_equal(some[1], y[back])
    wide_ids = np.pad(IDS, ((0, 0), (2, 3)))
    wide_kept = np.pad(KEPT, ((0, 0), (2, 3)))
    wide_x, wide_y = masking.hide_for_evaluation(wide_ids, wide_kept)
    np.testing.assert_array_equal(wide_x[:, 2:-3], x)
    np.testing.assert_array_equal(wide_y[:, 2:-3], y)
    whole = KEPT.all(axis=1)
    np.testing.assert_array_equal(masking.hide_for_evaluation(IDS[whole], None)[1], y[whole])


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
        masked(**changes)
