"""vowels: nine speakers who say two vowels, 640 series stored in the package.

``vowels.LICENSE.txt`` in this folder has their source and licence.
"""

import numpy as np

from npformer.core import checks
from npformer.data.raw_data import RawData, RawPart, read_packaged_arrays


def vowels(dtype: str = "float64") -> RawData:
    """Return series of 7 to 29 steps with 12 features; the label is the speaker, "1" to "9".

    Nine men said the Japanese vowels a and e one after the other. A step is a frame of 25.6 ms, and
    its features are the coefficients of a linear prediction. The split is that of Kudo et al.
    (1999): 270 series to train on, 30 of each speaker, and 370 recorded at other times for testing.

    Parameters
    ----------
    dtype : {"float32", "float64"}
    """
    checks.choice("dtype", dtype, checks.FLOATS)
    stored = read_packaged_arrays("vowels.npz")
    low, middle, high = stored["bytes"].astype("int32")  # each [12, steps of all series]
    lengths = stored["lengths"]
    labels = stored["labels"].astype("str").tolist()
    millionths = low + (middle << 8) + (high << 16) - (1 << 23)
    values = (millionths.T / 1e6).astype(dtype)
    series = np.split(values, np.cumsum(lengths, dtype="int64")[:-1])
    train: RawPart = series[:270], labels[:270]
    return RawData(train=train, test=(series[270:], labels[270:]))
