"""Token mixers: layers in which tokens see each other, behind one signature."""

from npformer.mixers.attention import Attention
from npformer.mixers.fourier import Fourier
from npformer.mixers.identity import Identity
from npformer.mixers.mixer import Mixer, MixerSettings
from npformer.mixers.synthesizer import DenseSynthesizer

MIXERS: dict[str, type[Mixer]] = {
    "attention": Attention,
    "dense_synthesizer": DenseSynthesizer,
    "fourier": Fourier,
    "identity": Identity,
}
"""What ``EncoderConfig(mixer=...)`` takes."""

__all__ = [
    "MIXERS",
    "Attention",
    "DenseSynthesizer",
    "Fourier",
    "Identity",
    "Mixer",
    "MixerSettings",
]
