"""take_over: the tables and blocks of a pretrained model, for another head."""

from __future__ import annotations

from typing import TypeVar

from npformer.core import Layer, a_type, asarray, checks

Taker = TypeVar("Taker", bound=Layer)

PARTS = "embed.", "encoder."

FREE = (
    *("dropout", "token_dropout", "attention_dropout", "ffn_dropout"),
    *("memory", "padding", "initializer"),
)
"""Settings that may differ: they do not change what weights mean."""


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
    for layer in (model, pretrained):
        if not all(hasattr(layer, name) for name in ("config", "embed", "encoder")):
            raise TypeError(
                f"a model is {a_type(layer)}; expected two with an embedding and an encoder, such "
                "as a SequenceClassifier and a MaskedLanguageModel"
            )
    ours, theirs = model.config.to_dict(), pretrained.config.to_dict()  # type: ignore[attr-defined]
    for name, value in ours.items():
        if name not in FREE and value != theirs[name]:
            raise ValueError(
                f"{name} is {value!r}, and {theirs[name]!r} in the pretrained model; expected the "
                "same. Build the model with pretrained.config"
            )
    wanted, given = (
        {name: p for name, p in layer.named_parameters().items() if name.startswith(PARTS)}
        for layer in (model, pretrained)
    )
    if problems := checks.misfits(given, wanted):
        raise ValueError(
            f"the pretrained model does not fit: {problems}. Expected the same vocabulary, so the "
            "tokenizer that it was trained with, and the same dtype"
        )
    for name, parameter in wanted.items():
        parameter.value[...] = asarray(given[name].value, model.backend)
    return model
