"""A fraction of the data is held out: the same of each class, drawn by a generator."""

import numpy as np
import pytest

from npformer.data.held_out import split_rows
from tests.needs import NEEDS

pytest.importorskip("hypothesis", reason=NEEDS["hypothesis"])
from hypothesis import given, settings
from hypothesis import strategies as st


def split(y, share, seed=0):
    return split_rows(y, np.ones(len(y)), share, np.random.default_rng(seed))


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    share=st.floats(0.05, 0.9),
    seed=st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_each_class_is_held_out_in_proportion_up_to_one_sample(sizes, share, seed):
    y = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(seed).shuffle(y)
    n = len(y)
    most = len(y) - len(sizes)
    n_held_out = min(round(share * n), most)
    if n_held_out == 0:
        with pytest.raises(ValueError, match=r"too few to set .* aside; expected at least 1"):
            split(y, share, seed)
    else:
        rows, held_rows = split(y, share, seed)
        np.testing.assert_array_equal(np.sort(np.concatenate([rows, held_rows])), np.arange(n))
        assert len(held_rows) == n_held_out
        assert (np.diff(rows) > 0).all()
        assert (np.diff(held_rows) > 0).all()
        held_of_class = np.bincount(y[held_rows], minlength=len(sizes))
        assert (np.bincount(y[rows], minlength=len(sizes)) >= 1).all()
        if round(share * n) < most and min(sizes) * (1.0 - share) >= 2:
            exact_shares = n_held_out / n * np.array(sizes)
            assert (np.abs(held_of_class - exact_shares) < 1.0 + 1e-9).all()


def test_the_seed_decides_which_samples_are_held_out():
    y = np.arange(60) % 3
    assert split(y, 0.2, 1)[1].tolist() == split(y, 0.2, 1)[1].tolist()
    assert split(y, 0.2, 1)[1].tolist() != split(y, 0.2, 2)[1].tolist()


def test_samples_without_classes_are_drawn_from_all():
    rows, held = split_rows(None, np.ones(50), 0.3, np.random.default_rng(0))
    assert len(held) == 15
    np.testing.assert_array_equal(np.sort(np.concatenate([rows, held])), np.arange(50))


@pytest.mark.parametrize(("part_with_weight", "purpose"), [(0, "held out"), (1, "to train on")])
def test_a_part_without_weight_is_refused(part_with_weight, purpose):
    rows_of_parts = split_rows(None, np.ones(20), 0.2, np.random.default_rng(1))
    counts = np.zeros(20)
    counts[rows_of_parts[part_with_weight]] = 1.0
    with pytest.raises(ValueError, match=f"of the samples {purpose} with validation=0.2, none has"):
        split_rows(None, counts, 0.2, np.random.default_rng(1))
