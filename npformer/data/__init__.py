"""Datasets in the package or generated from a seed: nothing is downloaded."""

from npformer.data.dataset import Dataset
from npformer.data.digits import SPLITS, digits
from npformer.data.generated import majority, parity, pointer, recall, reverse

__all__ = ["SPLITS", "Dataset", "digits", "majority", "parity", "pointer", "recall", "reverse"]
