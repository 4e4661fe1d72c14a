"""Datasets in the package or generated from a seed, tokenizers, and arrays that stay in files.

Nothing is downloaded.
"""

from npformer.core.support.missing_names import lead_to_names
from npformer.data.dataset import Dataset
from npformer.data.digits import SPLITS, digits
from npformer.data.generated import majority, parity, pointer, recall, reverse
from npformer.data.masking import mask_tokens
from npformer.data.pairs import pairs
from npformer.data.raw_data import RawData
from npformer.data.sentences import sentences
from npformer.data.stored import ShardedArray, sharded
from npformer.data.vowels import vowels

__all__ = [
    "SPLITS",
    "Dataset",
    "RawData",
    "ShardedArray",
    "digits",
    "majority",
    "mask_tokens",
    "pairs",
    "parity",
    "pointer",
    "recall",
    "reverse",
    "sentences",
    "sharded",
    "vowels",
]

lead_to_names(__name__)
