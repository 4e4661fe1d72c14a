"""Digits: 1797 images of handwritten digits, 8 x 8, inside the package.

Where the file comes from and its licence: ``digits.LICENSE.txt`` beside it.
"""

from __future__ import annotations

import numpy as np

from npformer.core import checks
from npformer.data.dataset import Dataset

SPLITS = ("stratified", "ordered")


def digits(split: str = "stratified", dtype: str = "float32") -> Dataset:
    """Return the digits as sequences of 8 tokens, the rows of an image, of 8 features.

    Parameters
    ----------
    split : {"stratified", "ordered"}
        "stratified": 20 % are drawn at random for testing, each class in proportion: exactly the
        split that scikit-learn's ``train_test_split(test_size=0.2, random_state=0, stratify=y)``
        draws, so that figures compare. Training and test share their writers. "ordered": the last
        20 % of the file are for testing, written by other people; the harder and more honest one.
    dtype : {"float32", "float64"}

    Returns
    -------
    dataset : Dataset
        Pixels are scaled from 0..16 to -1..1. Validation is an eighth of the training part: every
        eighth sample of each class (stratified), or its end (ordered, so again other writers).
    """
    from importlib import resources  # here, not above: it brings half the standard library

    checks.choice("split", split, SPLITS)
    checks.choice("dtype", dtype, checks.FLOATS)
    with (
        resources.files("npformer.data").joinpath("digits.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        images, labels = stored["images"], stored["labels"].astype("int64")
        train, test = stored["stratified_train"], stored["stratified_test"]
    x = images.astype(dtype) / 8.0 - 1.0
    if split == "ordered":
        cut = len(x) - len(test)
        train, test = np.arange(cut), np.arange(cut, len(x))
        held_out = np.arange(cut) >= cut - cut // 8
    else:
        rank = np.empty(len(train), dtype="int64")  # of each sample within its class
        for label in range(10):
            of_class = np.flatnonzero(labels[train] == label)
            rank[of_class] = np.arange(len(of_class))
        held_out = rank % 8 == 0
    return Dataset(
        train=(x[train[~held_out]], labels[train[~held_out]]),
        validation=(x[train[held_out]], labels[train[held_out]]),
        test=(x[test], labels[test]),
        n_classes=10,
        n_features=8,
    )
