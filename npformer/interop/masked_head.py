"""The head for hidden tokens in transformers' folders: read, and written back."""

import warnings
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.data.tokenizers import LibraryTokenizer
from npformer.interop.architecture import Arrays, Head, Settings, Weights
from npformer.interop.encoders import newer_name
from npformer.interop.family import Family
from npformer.interop.heads import check_settings
from npformer.models.trainable import MaskedLanguageModel
from npformer.models.trainable.text_encoder import TextEncoder

BIASES = {"head_bias": "dense.bias", "output_bias": "output.bias"}
"""{argument of a `MaskedLanguageModel`: the parameter that it is about}."""

NEXT_SENTENCES = "cls.seq_relationship."
"""BERT's head for another task, beside that for hidden tokens, which npformer does not have."""


@dataclass(frozen=True)
class TrainedMaskedHead:
    """A head for hidden tokens with its weights.

    Attributes
    ----------
    arrays : mapping of str to array
        Under our names and in our layout.
    activation : str
        Our name of its activation.
    tied : bool
        Whether its matrix is the table of the embeddings.
    """

    arrays: Arrays
    activation: str
    tied: bool

    def arguments(self) -> dict[str, Any]:
        """Return those arguments of a `MaskedLanguageModel` that are about the head."""
        biases = {argument: name in self.arrays for argument, name in BIASES.items()}
        return biases | {"head_activation": self.activation, "tied": self.tied}


def read_masked_head(
    family: Family, hf_config: Settings, state: Arrays, encoder: TextEncoder
) -> TrainedMaskedHead | None:
    """Return the head of a folder; None if it has none.

    ValueError if it lacks an array of the head, or has one that the head lacks.
    """
    head = family.head_of(hf_config, (family.masked,))
    if head is None:
        return None
    hf_config = family.completed(hf_config)
    stored = {newer_name(name): array for name, array in state.items()}
    of_head = {name for name in stored if name.startswith(family.pretraining)}
    of_head = {name for name in of_head if not name.startswith(NEXT_SENTENCES)}
    if not of_head:  # an encoder that kept the name of the class that it was trained with
        return None
    activation = _activation(family, head, hf_config)
    if activation is None:
        return None
    checks.flag("tie_word_embeddings", hf_config["tie_word_embeddings"])
    bias, matrix = f"{head.decoder}.bias", f"{head.decoder}.weight"
    second_name = head.layers["output.bias"]
    if second_name in stored:  # transformers adds the decoder's bias, if a file has both
        stored.setdefault(bias, stored[second_name])
    table = to_numpy(encoder.embed.tokens.weight.value)
    # A matrix that differs from the table is used, whatever the configuration says of it.
    same = np.array_equal(stored.get(matrix, table), table)
    tied = same and hf_config["tie_word_embeddings"]
    architecture = family.with_head(with_decoder(head, tied))
    names = _names_of_parameters(head, hf_config, encoder.config.bias, tied)
    needed = architecture.places(names).keys()
    second_names = {matrix, second_name} if bias in needed else {matrix}
    _check_names(family.class_name(head), of_head, needed, second_names, stored)
    return TrainedMaskedHead(architecture.ours(names, stored), activation, tied)


def with_decoder(head: Head, tied: bool) -> Head:
    """Return a head as transformers computes it: its logits come from its decoder's arrays."""
    layers = {**head.layers, "output.bias": f"{head.decoder}.bias"}
    if not tied:
        layers["output.weight"] = f"{head.decoder}.weight"
    return replace(head, layers=layers)


def _names_of_parameters(head: Head, hf_config: Settings, norm_bias: bool, tied: bool) -> list[str]:
    """Return our names of the parameters that a head has."""
    names = ["dense.weight", "norm.gamma"]
    if norm_bias:
        names.append("norm.beta")
    for argument, name in BIASES.items():
        flag = head.flags.get(argument)
        if flag is None or checks.flag(flag, hf_config[flag]):
            names.append(name)
    if not tied:
        names.append("output.weight")
    return names


def _check_names(
    class_name: str, stored: Set[str], needed: Set[str], second_names: Set[str], state: Weights
) -> None:
    """Raise ValueError for an array that a head lacks, and for one that it does not have."""
    if missing := needed - state.keys():
        raise ValueError(
            f"the weights have no {min(missing)}; expected those of a {class_name}, which the "
            "configuration names"
        )
    if unknown := stored - needed - second_names:
        raise ValueError(
            f"the weights have {min(unknown)}, which a {class_name} with this configuration does "
            "not have; expected only arrays that are used"
        )


def _activation(family: Family, head: Head, hf_config: Settings) -> str | None:
    """Return our name of a head's activation; None, and a warning, if npformer lacks it."""
    if head.activation:
        return head.activation
    key = head.activation_key or family.settings["activation"]
    theirs = hf_config[key]
    if theirs not in family.activations:
        warnings.warn(
            f"the configuration has {key} = {theirs!r}; expected one of "
            f"{', '.join(map(repr, family.activations))}, all that npformer supports. Only the "
            "encoder is read; save does not write its head for hidden tokens",
            stacklevel=4,
        )
        return None
    return family.activations[theirs]


def special_ids_of(tokenizer: object, vocab_size: int) -> list[int]:
    """Return the ids of a model that stand for no text, as far as a folder's tokenizer says.

    They are those of special tokens, and those that no token has.
    """
    if not isinstance(tokenizer, LibraryTokenizer):
        return []
    added = tokenizer.library.get_added_tokens_decoder().items()
    special = [id for id, token in added if token.special]
    return special + tokenizer.ids_without_token(vocab_size)


def masked_head_for(
    family: Family, config: Settings, model: MaskedLanguageModel
) -> tuple[Head, dict[str, Any]]:
    """Return the head that computes what a model does, and what config.json says about it.

    ValueError if transformers has none.
    """
    head = family.masked
    if head is None:
        raise ValueError(
            f"npformer knows no head for hidden tokens of transformers' {family.family}; "
            "expected head=False, which writes the encoder, or npformer.save"
        )
    check_settings(family, head, config)
    lacks = [name for name in BIASES if not getattr(model, name)]
    if other := [name for name in lacks if name not in head.flags]:
        raise ValueError(
            f"the model has {other[0]}=False; expected True, as transformers' "
            f"{family.class_name(head)} has. npformer.save writes any model"
        )
    written = {theirs: getattr(model, ours) for ours, theirs in head.flags.items()}
    written |= {"architectures": [family.class_name(head)], **head.settings}
    written |= {"tie_word_embeddings": model.tied, **_stated_activation(family, head, model)}
    return head if model.tied else with_decoder(head, tied=False), written


def _stated_activation(family: Family, head: Head, model: MaskedLanguageModel) -> dict[str, str]:
    """Return what config.json says of a head's activation; ValueError if it cannot say it."""
    if head.activation_key:
        names = {ours: theirs for theirs, ours in reversed([*family.activations.items()])}
        if model.head_activation in names:
            return {head.activation_key: names[model.head_activation]}
        expected = " or ".join(map(repr, names))
    else:
        only_activation = head.activation or model.config.activation
        if model.head_activation == only_activation:
            return {}
        expected = repr(only_activation)
    raise ValueError(
        f"the model has head_activation = {model.head_activation!r}; expected {expected}, as "
        f"transformers' {family.class_name(head)} has. npformer.save writes any model"
    )


def with_second_names(arrays: Arrays, family: Family, head: Head) -> Arrays:
    """Return the arrays of a written model with a decoder's bias under all names that it has."""
    tied_head, bias = family.masked, head.layers.get("output.bias")
    if tied_head is None or bias not in arrays:
        return arrays
    return {**arrays, tied_head.layers["output.bias"]: arrays[bias].copy()}
