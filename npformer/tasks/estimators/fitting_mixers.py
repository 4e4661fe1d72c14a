"""Classifiers whose defaults depend on the mixer: see docs/questions/fourier_sensitivity.md."""

from dataclasses import replace
from typing import Any

from npformer.mixers import MIXERS
from npformer.models import EncoderConfig
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.wide import WideSequenceClassifier

TRANSFORMS = ("fourier", "hartley")


def classifier_for(
    reader: Any, config: EncoderConfig, n_classes: int, pooling: str | None, **drawn: Any
) -> SequenceClassifier:
    """Return an untrained model of what a reader reads, with a wide part if it knows pairs."""
    kind: type[SequenceClassifier] = SequenceClassifier
    arguments: dict[str, Any] = reader.arguments()
    pairs: Any = getattr(reader, "pairs", None)
    if pairs is not None:
        kind, arguments["n_pairs"] = WideSequenceClassifier, len(pairs[0])
    arguments["pooling"] = usual_pooling(config) if pooling is None else pooling
    model = kind(config, n_classes, **arguments, **drawn)
    if isinstance(model, WideSequenceClassifier):
        model.wide.learn(*pairs)
    return model


def usual_pooling(config: EncoderConfig) -> str:
    """Return "mean", or "first" if all layers are transforms and their number is odd.

    The first row of a transform is the sum over the tokens, and the mean of its rows is the first
    token: pooling by the mean would lose the others. A second transform undoes this.
    """
    names = _names(config)
    odd = len(names) % 2 == 1 and all(name in TRANSFORMS for name in names)
    return "first" if odd else "mean"


def usual_positions(config: EncoderConfig) -> str:
    """Return "learned" for several layers with a transform among them, else the config's value.

    Unscaled embeddings start far smaller than sinusoids. A transform gathers the slow sinusoids in
    the same row as the sum over all tokens, and they drown it; a learned table starts small.
    """
    names = _names(config)
    has_transform = len(names) > 1 and any(name in TRANSFORMS for name in names)
    return "learned" if has_transform else config.positions


def set_usual_positions(config: EncoderConfig, given: Any) -> EncoderConfig:
    """Return a configuration whose positions fit the mixer, unless what was `given` states them."""
    if isinstance(given, EncoderConfig) or "positions" in (given or {}):
        return config
    return replace(config, positions=usual_positions(config))


def _names(config: EncoderConfig) -> list[str]:
    """Return the names of the mixers, without their options."""
    return [MIXERS.parse(name, "mixer")[0] for name in config.mixers()]
