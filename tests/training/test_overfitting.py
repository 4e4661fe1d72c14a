"""Overfitting is said in words, with its epoch and losses."""

import pytest

import npformer as nf
from npformer.training.inspection.overfitting import describe_overfitting
from tests.needs import NEEDS

TRAIN = [1.0, 0.6, 0.4, 0.2]


def test_a_validation_loss_that_turned_up_is_told_with_its_epoch():
    words = describe_overfitting(nf.History(TRAIN, [1.0, 0.7, 0.9, 1.2]))
    assert "lowest in epoch 2, 0.700, and rose to 1.200 in epoch 4" in words


def test_what_the_training_loss_did_is_told_beside_it():
    words = " ".join(describe_overfitting(nf.History(TRAIN, [1.0, 0.7, 0.9, 1.2])).split())
    assert "training loss fell from 0.600 to 0.200" in words


@pytest.mark.parametrize(
    ("train", "validation"),
    [
        (TRAIN, []),
        (TRAIN, [1.0, 0.7, 0.6, 0.5]),
        (TRAIN, [1.0, 0.7, 0.71, 0.72]),
        ([1.0, 0.6, 0.8, 0.9], [1.0, 0.7, 0.9, 1.2]),
        (TRAIN, [float("nan")] * 4),
    ],
    ids=["no validation", "falling", "by chance", "training rises, too", "NaN"],
)
def test_nothing_is_told_without_overfitting(train, validation):
    assert describe_overfitting(nf.History(train, validation)) == ""


def test_the_star_stands_where_the_words_say():
    pytest.importorskip("matplotlib", reason=NEEDS["matplotlib"])
    axes = nf.History(TRAIN, [1.0, 0.7, 0.9, 1.2]).plot().axes[0]
    (star,) = [line for line in axes.lines if line.get_marker() == "*"]
    assert star.get_xydata().tolist() == [[2.0, 0.7]]
