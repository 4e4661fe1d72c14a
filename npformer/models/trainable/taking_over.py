"""take_over: the tables and blocks of a pretrained model, for another head."""

from __future__ import annotations

from typing import TypeVar

from npformer.core import Layer, asarray, checks

Taker = TypeVar("Taker", bound=Layer)

FREE = "dropout", "token_dropout", "attention_dropout", "ffn_dropout", "memory", "padding"
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
    own, other = model.config, pretrained.config  # type: ignore[attr-defined]
    unlike = [n for n in vars(own) if n not in FREE and vars(own)[n] != vars(other)[n]]
    wanted, given = (
        {n: p for n, p in layer.named_parameters().items() if n.startswith(("embed.", "encoder."))}
        for layer in (model, pretrained)
    )
    if unlike or (problems := checks.misfits(given, wanted)):
        found = "; ".join(f"{n} is {vars(own)[n]!r}, there {vars(other)[n]!r}" for n in unlike)
        raise ValueError(
            f"the pretrained model does not fit: {found or problems}. Expected a model with its "
            "config and dtype, and the tokenizer with which it was trained"
        )
    for name, parameter in wanted.items():
        parameter.value[...] = asarray(given[name].value, model.backend)
    return model
