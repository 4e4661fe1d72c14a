"""The head for hidden tokens in transformers' folders: reading and writing."""

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
"""{argument of a `MaskedLanguageModel`: the parameter that it switches on}."""

NEXT_SENTENCES = "cls.seq_relationship."
"""Prefix of BERT's head for next-sentence prediction, which npformer does not have."""


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
        Whether its matrix is the table of embeddings.
    """

    arrays: Arrays
    activation: str
    tied: bool

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a `MaskedLanguageModel` for this head."""
        arguments: dict[str, Any] = {"head_activation": self.activation, "tied": self.tied}
        for argument, name in BIASES.items():
            arguments[argument] = name in self.arrays
        return arguments


def read_masked_head(
    family: Family, hf_config: Settings, state: Arrays, encoder: TextEncoder
) -> TrainedMaskedHead | None:
    """Return the head of a folder; None if it has none.

    ValueError if the folder lacks an array of the head, or has one that the head does not have.
    """
    if family.masked is None:
        return None
    head = family.find_head(hf_config, [family.masked])
    if head is None:
        return None
    hf_config = family.fill_defaults(hf_config)
    stored = {newer_name(name): array for name, array in state.items()}
    head_weights = {
        name
        for name in stored
        if name.startswith(family.pretraining) and not name.startswith(NEXT_SENTENCES)
    }
    if not head_weights:  # only an encoder, still with the class name of its pretraining
        return None
    activation = _activation(family, head, hf_config)
    if activation is None:
        return None
    checks.flag("tie_word_embeddings", hf_config["tie_word_embeddings"])
    bias = f"{head.decoder}.bias"
    matrix = f"{head.decoder}.weight"
    second_name = head.layers["output.bias"]
    if second_name in stored:  # if a file has both, transformers adds the decoder's bias
        stored.setdefault(bias, stored[second_name])
    table = to_numpy(encoder.embed.tokens.weight.value)
    # A matrix that differs from the table is used, even if the configuration says tied.
    is_table = np.array_equal(stored.get(matrix, table), table)
    tied = is_table and hf_config["tie_word_embeddings"]
    architecture = family.add_head(add_decoder(head, tied))
    names = _names_of_parameters(head, hf_config, encoder.config.bias, tied)
    needed = architecture.places(names).keys()
    second_names = {matrix, second_name} if bias in needed else {matrix}
    _check_names(family.class_name(head), head_weights, needed, second_names, stored)
    return TrainedMaskedHead(architecture.our_arrays(names, stored), activation, tied)


def add_decoder(head: Head, tied: bool) -> Head:
    """Return a head whose output layer has the names of its decoder, as in transformers."""
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
    missing = needed - state.keys()
    if missing:
        raise ValueError(
            f"the weights have no {min(missing)}; expected the weights of a {class_name}, which "
            "the configuration names"
        )
    unknown = stored - needed - second_names
    if unknown:
        raise ValueError(
            f"the weights have {min(unknown)}, which a {class_name} with this configuration does "
            "not have; expected only arrays that are used"
        )


def _activation(family: Family, head: Head, hf_config: Settings) -> str | None:
    """Return our name of a head's activation; None, with a warning, if npformer lacks it."""
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
    """Return the ids that represent no text: those of special tokens, and those without a token.

    Empty without a tokenizer that knows them.
    """
    if not isinstance(tokenizer, LibraryTokenizer):
        return []
    added_tokens = tokenizer.library.get_added_tokens_decoder().items()
    special_ids = [id for id, token in added_tokens if token.special]
    return special_ids + tokenizer.ids_without_token(vocab_size)


def find_masked_head(
    family: Family, config: Settings, model: MaskedLanguageModel
) -> tuple[Head, dict[str, Any]]:
    """Return the head that computes the same as a model, and its entries in config.json.

    ValueError if transformers has no such head.
    """
    head = family.masked
    if head is None:
        raise ValueError(
            f"npformer knows no head for hidden tokens of transformers' {family.family}; "
            "expected head=False, which writes the encoder, or npformer.save"
        )
    check_settings(family, head, config)
    for name in BIASES:
        if not getattr(model, name) and name not in head.flags:
            raise ValueError(
                f"the model has {name}=False; expected True, as transformers' "
                f"{family.class_name(head)} has. npformer.save writes any model"
            )
    settings = {theirs: getattr(model, ours) for ours, theirs in head.flags.items()}
    settings |= {"architectures": [family.class_name(head)], **head.settings}
    settings |= {"tie_word_embeddings": model.tied, **_activation_settings(family, head, model)}
    if not model.tied:
        head = add_decoder(head, tied=False)
    return head, settings


def _activation_settings(family: Family, head: Head, model: MaskedLanguageModel) -> dict[str, str]:
    """Return the entry of config.json for a head's activation; ValueError if it has none."""
    if head.activation_key:
        names = family.their_activations()
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


def add_second_names(arrays: Arrays, family: Family, head: Head) -> Arrays:
    """Return arrays to write, with the bias of a decoder also under its second name."""
    tied_head = family.masked
    bias = head.layers.get("output.bias")
    if tied_head is None or bias not in arrays:
        return arrays
    return {**arrays, tied_head.layers["output.bias"]: arrays[bias].copy()}
