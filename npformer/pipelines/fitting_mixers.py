"""Settings that fit a mixer, if nothing is said: see docs/questions/fourier_sensitivity.md."""

from npformer.mixers import MIXERS
from npformer.models import EncoderConfig

TRANSFORMS = ("fourier", "hartley")


def usual_pooling(config: EncoderConfig) -> str:
    """Return "mean", or "first" if all layers are transforms and their number is odd.

    The first row of a transform is the sum over the tokens, and the mean of its rows is the first
    token: a mean would lose the others. A second transform changes it back.
    """
    names = _names(config)
    odd = len(names) % 2 == 1 and all(name in TRANSFORMS for name in names)
    return "first" if odd else "mean"


def usual_positions(config: EncoderConfig) -> str:
    """Return "learned" for several layers with a transform among them, else what there is.

    Embeddings that are not scaled begin far smaller than sinusoids. A transform gathers the slow
    ones of these in the row in which it gathers what all tokens say; a learned table begins small.
    """
    names = _names(config)
    several = len(names) > 1 and any(name in TRANSFORMS for name in names)
    return "learned" if several else config.positions


def _names(config: EncoderConfig) -> list[str]:
    """Return the names of the mixers, without their options."""
    return [MIXERS.parse(name, "mixer")[0] for name in config.mixers()]
