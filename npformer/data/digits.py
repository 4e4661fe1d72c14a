"""digits: 1797 images of handwritten digits, 8 x 8, stored in the package.

``digits.LICENSE.txt`` in this folder has their source and licence.
"""

import numpy as np

from npformer.core import checks
from npformer.data.dataset import Dataset
from npformer.data.raw_data import read_packaged_arrays

SPLITS = ("stratified", "ordered")


def digits(split: str = "stratified", dtype: str = "float32") -> Dataset:
    """Return the digits as sequences of 8 tokens, the rows of an image, of 8 features.

    Parameters
    ----------
    split : {"stratified", "ordered"}
        "stratified": a random 20 % of each class is for testing. This is exactly the split of
        scikit-learn's ``train_test_split(test_size=0.2, random_state=0, stratify=y)``, so that
        results can be compared. The same people wrote the training and the test samples.
        "ordered": the last 20 % of the file are for testing. Other people wrote them, which makes
        the task harder and the result more honest.
    dtype : {"float32", "float64"}

    Notes
    -----
    Pixels are scaled from 0..16 to -1..1. An eighth of the training samples are for validation:
    every eighth of each class (stratified), or the last ones (ordered, so again other writers).
    """
    checks.choice("split", split, SPLITS)
    checks.choice("dtype", dtype, checks.FLOATS)
    stored = read_packaged_arrays("digits.npz")
    images = stored["images"]
    labels = stored["labels"].astype("int64")
    train = stored["stratified_train"]
    test = stored["stratified_test"]
    x = images.astype(dtype) / 8.0 - 1.0
    if split == "ordered":
        cut = len(x) - len(test)
        train, test = np.arange(cut), np.arange(cut, len(x))
        held_out = np.arange(cut) >= cut - cut // 8
    else:
        held_out = np.zeros(len(train), dtype=bool)
        for label in range(10):
            held_out[np.flatnonzero(labels[train] == label)[::8]] = True
    return Dataset(
        train=(x[train[~held_out]], labels[train[~held_out]]),
        validation=(x[train[held_out]], labels[train[held_out]]),
        test=(x[test], labels[test]),
        n_classes=10,
        n_features=8,
    )
