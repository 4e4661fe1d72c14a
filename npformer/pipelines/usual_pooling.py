"""What a classifier reads of its tokens if nothing is said."""

from npformer.mixers import MIXERS
from npformer.models import EncoderConfig

TRANSFORMS = ("fourier", "hartley")


def usual_pooling(config: EncoderConfig) -> str:
    """Return "mean", or "first" if all layers are transforms and their number is odd.

    The first row of a transform is the sum over the tokens, and the mean of its rows is the first
    token: a mean would lose the others. A second transform changes it back.
    """
    names = [MIXERS.parse(name, "mixer")[0] for name in config.mixers()]
    odd = len(names) % 2 == 1 and all(name in TRANSFORMS for name in names)
    return "first" if odd else "mean"
