"""Token mixers: layers in which tokens see each other. All have the same signature."""

from npformer.core import Registry
from npformer.core.support.missing_names import lead_to_names
from npformer.layers.state import State
from npformer.mixers.attention import Attention
from npformer.mixers.attention_scores import AttentionScores
from npformer.mixers.averaging import AveragingMixer, Scores, Synthesizer
from npformer.mixers.dense_synthesizer import (
    DenseScores,
    DenseSynthesizer,
    FactorizedDenseScores,
    FactorizedDenseSynthesizer,
)
from npformer.mixers.fourier import Fourier, Hartley
from npformer.mixers.general_attention import BlockwiseAttention, GeneralAttention
from npformer.mixers.hybrid import LAYOUTS, hybrid
from npformer.mixers.identity import Identity
from npformer.mixers.linear_mixing import LinearMixing, RandomMixing
from npformer.mixers.long_convolution import GatedConvolution
from npformer.mixers.mixer import Mixer, MixerSettings
from npformer.mixers.mixture import SCORES, Mixture, MixtureScores
from npformer.mixers.random_synthesizer import (
    FactorizedRandomScores,
    FactorizedRandomSynthesizer,
    FixedRandomScores,
    FixedRandomSynthesizer,
    RandomScores,
    RandomSynthesizer,
)
from npformer.mixers.state_space import StateSpace
from npformer.mixers.whole_sequence import WholeSequenceMixer

MIXERS: Registry[Mixer] = Registry(
    "mixer",
    {
        "attention": GeneralAttention,  # it builds the plain `Attention` unless asked for more
        "dense_synthesizer": DenseSynthesizer,
        "random_synthesizer": RandomSynthesizer,
        "fixed_random_synthesizer": FixedRandomSynthesizer,
        "factorized_dense_synthesizer": FactorizedDenseSynthesizer,
        "factorized_random_synthesizer": FactorizedRandomSynthesizer,
        "mixture": Mixture,
        "fourier": Fourier,
        "hartley": Hartley,
        "linear": LinearMixing,
        "random": RandomMixing,
        "identity": Identity,
        "gated_convolution": GatedConvolution,
        "state_space": StateSpace,
    },
    table="npformer.MIXERS",
    makes=Mixer,
    gets="MixerSettings, seed=, dtype= and their options",
    method="build",
)
"""What ``EncoderConfig(mixer=...)`` takes: subclasses of `Mixer`. Their `build` is called with
`MixerSettings` and, as keywords, seed, dtype and options."""

__all__ = [
    "LAYOUTS",
    "MIXERS",
    "SCORES",
    "Attention",
    "AttentionScores",
    "AveragingMixer",
    "BlockwiseAttention",
    "DenseScores",
    "DenseSynthesizer",
    "FactorizedDenseScores",
    "FactorizedDenseSynthesizer",
    "FactorizedRandomScores",
    "FactorizedRandomSynthesizer",
    "FixedRandomScores",
    "FixedRandomSynthesizer",
    "Fourier",
    "GatedConvolution",
    "GeneralAttention",
    "Hartley",
    "Identity",
    "LinearMixing",
    "Mixer",
    "MixerSettings",
    "Mixture",
    "MixtureScores",
    "RandomMixing",
    "RandomScores",
    "RandomSynthesizer",
    "Scores",
    "State",
    "StateSpace",
    "Synthesizer",
    "WholeSequenceMixer",
    "hybrid",
]

lead_to_names(__name__)
