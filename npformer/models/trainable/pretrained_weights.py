"""take_over: copy the embedding and encoder of a pretrained model into another model."""

from __future__ import annotations

from typing import Any, TypeVar

from npformer.core import Layer, Parameter, asarray, checks

Taker = TypeVar("Taker", bound=Layer)

FREE = "dropout", "token_dropout", "attention_dropout", "ffn_dropout", "memory", "padding"
"""Settings that may differ between the two models: weights mean the same with any value."""


def take_over(model: Taker, pretrained: Layer) -> Taker:
    """Give a model the embedding and the encoder of a pretrained one, and return the model.

    Its head keeps its own weights.

    Parameters
    ----------
    model : SequenceClassifier, TextEncoder or MaskedLanguageModel
        Changed in place.
    pretrained : MaskedLanguageModel, or one of the others
        With the same configuration, up to dropout, and the same vocabulary.

    Raises
    ------
    ValueError
        The configurations differ, or the vocabularies: then the tokenizers do.
    """
    targets = _encoder_parameters(model)
    sources = _encoder_parameters(pretrained)
    mismatch = _config_differences(model, pretrained) or checks.misfits(sources, targets)
    if mismatch:
        raise ValueError(
            f"the pretrained model does not fit: {mismatch}. Expected a model with its "
            "config and dtype, and the tokenizer with which it was trained"
        )
    for name, parameter in targets.items():
        parameter.value[...] = asarray(sources[name].value, model.backend)
    return model


def _config_differences(model: Any, pretrained: Any) -> str:
    """Return the settings that differ, with both values."""
    differences = []
    for name, value in vars(model.config).items():
        pretrained_value = getattr(pretrained.config, name)
        if name not in FREE and value != pretrained_value:
            differences.append(f"{name} is {value!r}, there {pretrained_value!r}")
    return "; ".join(differences)


def _encoder_parameters(model: Layer) -> dict[str, Parameter]:
    """Return the parameters of a model's embedding and encoder, by name."""
    parameters = model.named_parameters()
    return {n: p for n, p in parameters.items() if n.startswith(("embed.", "encoder."))}
