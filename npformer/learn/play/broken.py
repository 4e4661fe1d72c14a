"""A bug of the museum in a model: as a layer of its own, in the first block. Nothing is patched."""

from __future__ import annotations

from typing import Any

from npformer.core import Layer, checks
from npformer.layers import GELU, Dropout, LayerNorm
from npformer.learn.museum import BUGS
from npformer.learn.museum.attention_by import AttentionBy, with_softmax
from npformer.mixers import Attention
from npformer.models import Encoder, EncoderBlock
from npformer.training.trainable import SequenceClassifier

ATTENTION: dict[str, Any] = {"mixers": ["attention", "attention"]}
PRE: dict[str, Any] = {"norm": "pre"}

HAVE_A_PLACE: dict[str, dict[str, Any]] = {
    "LayerNormWithoutGamma": {},
    "softmax_divided_by_the_batch": ATTENTION,
    "AttentionThatMergesByReshape": ATTENTION,
    "attention_over_an_axis_of_length_1": ATTENTION,
    "attention_that_asks_the_keys": ATTENTION,
    "softmax_that_guesses_its_axis": ATTENTION,
    "BlockWithOneResidual": {},
    "BlockWithOneNorm": {},
    "DropoutThatRemembers": {"dropout": 0.2},
    "DropoutThatScalesAtEvaluation": {"dropout": 0.2},
    "LayerNormWithoutEpsilon": PRE,
    "LayerNormInOnePass": PRE,
    "GELUThatIgnoresItsOption": {},
    "EncoderOfOneBlock": ATTENTION,
}
"""Bugs that a classifier of digits can have, and the settings that give them their place."""


class SequenceClassifierWithBug(SequenceClassifier):
    """A model that has a bug: its checkpoints say so, and are neither loaded nor resumed as those
    of a `SequenceClassifier`, whose parameters may have the same names.
    """


def put_bug(name: str, model: SequenceClassifier) -> None:
    """Put a bug into the first block of a model that has not been trained.

    Parameters of the layer that it replaces are taken over, so that a model without the bug begins
    with the same weights. Raises ValueError if the model has no place for it.
    """
    checks.choice("bug", name, HAVE_A_PLACE)
    block: Any = model.encoder.blocks[0]
    right, wrong = _layers(name, model, block)
    if right is None:
        raise ValueError(
            f"bug is {name!r} and the model has no place for it; expected settings such as "
            f"{HAVE_A_PLACE[name]}"
        )
    theirs = wrong.named_parameters()
    for parameter_name, parameter in right.named_parameters().items():
        if parameter_name in theirs:
            theirs[parameter_name].value[...] = parameter.value
    model.flatten()


def is_wrong(name: str | None, layer: Layer) -> bool:
    """Return whether a layer has the run's bug; `name` is None for a run without a bug."""
    return name is not None and (type(layer) is BUGS[name].wrong or isinstance(layer, AttentionBy))


def _layers(name: str, model: SequenceClassifier, block: Any) -> tuple[Any, Any]:
    """Return the right layer and the wrong one that has replaced it; None if it has no place."""
    kind, config = BUGS[name].wrong, model.config
    sizes: dict[str, Any] = {"dtype": model.dtype}
    drawn = {**sizes, "seed": 0}  # the weights come from the right layer
    if not isinstance(kind, type) or issubclass(kind, Attention):
        right = block.mixer
        if type(right) is not Attention:
            return None, None
        if isinstance(kind, type):
            made: Any = kind(config.d_model, config.n_heads, **drawn)
        else:
            built = BUGS[name].build()
            pair = built if isinstance(built, tuple) else built.attend
            if BUGS[name].of == "functional.softmax":
                pair = with_softmax(*pair)
            made = AttentionBy(config.d_model, config.n_heads, attend=pair, **drawn)
        block.mixer = made
    elif issubclass(kind, LayerNorm):
        right, made = block.mixer_norm, kind(config.d_model, **sizes)
        block.mixer_norm = made
    elif issubclass(kind, Dropout):
        right, made = block.mixer_dropout, kind(config.dropout)
        block.mixer_dropout = block.feed_forward_dropout = made
    elif issubclass(kind, GELU):
        right = block.feed_forward.activation
        if type(right) is not GELU:
            return None, None
        made = block.feed_forward.activation = kind()
    elif issubclass(kind, Encoder):
        right = model.encoder
        if len({type(each.mixer) for each in right.blocks}) > 1 or config.n_layers == 1:
            return None, None  # one block cannot stand for all
        made = model.encoder = kind(config, **drawn)
    else:
        assert issubclass(kind, EncoderBlock)
        right, made = block, kind(config, **drawn)
        model.encoder.blocks[0] = made
    return right, made
