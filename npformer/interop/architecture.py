"""Architecture: how transformers stores a family of models, as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Layer, checks, to_numpy

Settings = Mapping[str, Any]
"""Names and values, such as those of config.json."""

Weights = Mapping[str, Any]
"""Weights by name, as other libraries hold them."""

Arrays = dict[str, np.ndarray]
"""Weights by name, on the host."""

POSITIONS = "embed.positions.table"

TABLES = "tokens", "types"
"""Layers whose weights are tables of rows, not matrices of linear maps."""

THEIR_NAMES = {"gamma": "weight", "beta": "bias", "table": "weight"}
"""{our name of a parameter: theirs}, where they differ."""


class Place(NamedTuple):
    """The content of one of their arrays.

    Attributes
    ----------
    ours : tuple of str
        Our parameters in it, side by side along our last axis: queries, keys and values, or one.
    transposed : bool
        Whether their array is (out, in), and ours (in, out).
    """

    ours: tuple[str, ...]
    transposed: bool


@dataclass(frozen=True)
class Head:
    """The layers for a task, on top of an encoder.

    Attributes
    ----------
    task : str
        The end of its class names, as in BertForSequenceClassification; "" if transformers has no
        class for it.
    pooling : str
        The pooling of a `SequenceClassifier` that computes the same.
    layers : mapping of str to str
        {our layer: their layer}, for layers with a weight and a bias; or for single parameters.
    settings : mapping of str to object
        The values of their settings with which a head of this class computes the same.
    flags : mapping of str to str
        {our argument: their setting}, for optional biases.
    decoder : str
        The layer that computes logits from features, if it is separate from the table of
        embeddings. Its bias may be stored under a second name, which `layers` has for
        "output.bias".
    activation : str
        Our name of its activation, if that is fixed.
    activation_key : str
        The key of its activation in config.json, if it has one. A head without `activation` and
        `activation_key` has the activation of the encoder.
    other_tasks : sequence of str
        The ends of the names of other classes, which have these layers and more.
    """

    task: str
    pooling: str
    layers: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    decoder: str = ""
    activation: str = ""
    activation_key: str = ""
    other_tasks: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return our names of the parameters."""
        names = []
        for name in self.layers:
            if name.endswith((".weight", ".bias", ".gamma")):  # a single parameter
                names.append(name)
            else:
                names += [f"{name}.weight", f"{name}.bias"]
        return names

    def fits(self, hf_config: Settings) -> bool:
        """Return whether a configuration has the settings, or leaves them out."""
        return all(hf_config.get(key, value) == value for key, value in self.settings.items())


@dataclass(frozen=True)
class Architecture:
    """How transformers stores a family of models; made from a table of ``architectures.toml``.

    Attributes
    ----------
    model_type, family, prefix : str
        Its name in config.json, its name in classes, and the prefix of its weights if there is a
        head: "bert", "Bert" (as in BertModel), "bert.".
    settings : mapping of str to str
        {our setting: their key in config.json}; {side} is replaced by encoder and decoder.
    activations : mapping of str to str
        {their name: our name}.
    fixed : mapping of str to object
        Our settings that have the same value in all models of the family.
    only : mapping of str to object
        Their settings for which npformer supports only one value; null means not set.
    same : mapping of str to str
        {their setting: another of their settings that must be equal}, such as a second name.
    defaults : mapping of str to object
        The values of their keys if config.json leaves them out.
    layers : mapping of str to str
        {our layer: their layer}; {i} is replaced by the number of a block. If several of ours have
        the same layer, their weights are side by side in it.
    pretraining : sequence of str
        Prefixes of the layers of pretraining tasks, which npformer does not have.
    buffers : sequence of str
        The ends of the names of constants in older files; these arrays are ignored.
    heads : sequence of Head
    masked : Head, optional
        The head of a `MaskedLanguageModel`.
    thetas : mapping of str to str
        With rotary positional encoding, {kind of layer: older name of its theta}. The kinds are
        "full_attention", and "sliding_attention" if some layers have a window.
    half_window : str
        Their key for half the width of a window, which takes precedence if it is set.
    unused : mapping of str to object
        Our settings that have no effect in the family, and their values.
    token_types : bool
        Whether their tokenizer gives the two texts of a pair different token types.
    positions_after_padding : bool
        Whether the first token has position pad_token_id + 1. No token uses the rows before it;
        reading removes them, and writing restores them.
    model_class : str
        The end of the class's name.
    conv1d : bool
        Whether linear layers in blocks have weights (in, out), like ours.
    """

    model_type: str
    family: str
    settings: Mapping[str, str]
    activations: Mapping[str, str]
    fixed: Mapping[str, Any]
    only: Mapping[str, Any]
    same: Mapping[str, str]
    defaults: Mapping[str, Any]
    layers: Mapping[str, str]
    prefix: str = ""
    pretraining: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    heads: tuple[Head, ...] = ()
    masked: Head | None = None
    thetas: Mapping[str, str] = field(default_factory=dict)
    half_window: str = ""
    unused: Mapping[str, Any] = field(default_factory=dict)
    token_types: bool = False
    positions_after_padding: bool = False
    model_class: str = "Model"
    conv1d: bool = False

    def class_name(self, head: Head | None = None) -> str:
        """Return the name of their class, such as BertModel, or of their class with a head."""
        return self.family + (self.model_class if head is None else f"For{head.task}")

    def find_head(self, hf_config: Settings, heads: Iterable[Head] | None = None) -> Head | None:
        """Return the one of `heads` that a configuration names, or None; default: its own heads."""
        classes = hf_config.get("architectures") or ()
        for head in self.heads if heads is None else heads:
            class_names = {f"{self.family}For{task}" for task in (head.task, *head.other_tasks)}
            if class_names.intersection(classes) and head.fits(hf_config):
                return head
        return None

    def n_unused_positions(self, hf_config: Settings) -> int:
        """Return how many rows at the start of the position table no token uses."""
        if not self.positions_after_padding:
            return 0
        vocab_size = checks.positive("vocab_size", hf_config.get("vocab_size"))
        padding_id = hf_config["pad_token_id"]
        checks.whole("pad_token_id", padding_id, at_least=0, at_most=vocab_size - 1)
        return 1 + int(padding_id)

    def add_head(self, head: Head) -> Architecture:
        """Return the architecture with a head on top."""
        has_pooler = not head.pooling or head.pooling.startswith("pooler")
        layers = {ours: self.prefix + theirs for ours, theirs in self.layers.items()}
        if not has_pooler:
            layers.pop("pool.dense", None)
        return replace(self, layers=layers | dict(head.layers))

    def places(self, names: Iterable[str]) -> dict[str, Place]:
        """Return {name of their array: its content} for our parameters that the family has."""
        places: dict[str, Place] = {}
        for name in names:
            location = self._locate(name)
            if location is None:
                continue
            theirs, transposed = location
            names_before = places[theirs].ours if theirs in places else ()
            places[theirs] = Place((*names_before, name), transposed)
        return places

    def _locate(self, name: str) -> tuple[str, bool] | None:
        """Return their name of one of our parameters, and whether their array is transposed.

        None if the family does not have it.
        """
        block = re.search(r"\.(\d+)\.", name)
        if block is not None:
            name = name.replace(block[0], ".{i}.", 1)
        layer, _, parameter = name.rpartition(".")
        if name in self.layers:
            theirs = self.layers[name]
        elif layer in self.layers:
            theirs = f"{self.layers[layer]}.{THEIR_NAMES.get(parameter, parameter)}"
        else:
            return None
        is_linear = parameter == "weight" and layer.rpartition(".")[2] not in TABLES
        transposed = is_linear and not (self.conv1d and block is not None)
        if block is not None:
            theirs = theirs.replace("{i}", block[1])
        return theirs, transposed

    def our_arrays(self, names: Iterable[str], state: Weights) -> Arrays:
        """Return their arrays under our names and in our layout: views."""
        arrays: Arrays = {}
        for theirs, place in self.places(names).items():
            array = state[theirs].T if place.transposed else state[theirs]
            columns = np.split(array, len(place.ours), axis=-1)
            arrays |= zip(place.ours, columns, strict=True)
        return arrays

    def their_arrays(self, values: Weights) -> Arrays:
        """Return our arrays under their names and in their layout: copies, on the host."""
        arrays: Arrays = {}
        for theirs, place in self.places(values).items():
            joined = np.concatenate([to_numpy(values[name]) for name in place.ours], axis=-1)
            arrays[theirs] = np.ascontiguousarray(joined.T if place.transposed else joined)
        return arrays

    def load(self, model: Layer, state: Weights) -> None:
        """Set the weights of a model; ValueError if names, shapes or dtypes do not match."""
        values = values_of(model)
        expected = {}
        for theirs, place in self.places(values).items():
            first = values[place.ours[0]]
            shape = [*first.shape[:-1], first.shape[-1] * len(place.ours)]
            if place.transposed:
                shape.reverse()
            zero = np.zeros((), first.dtype)
            expected[theirs] = np.broadcast_to(zero, shape)
        problems = checks.misfits(state, expected)
        if problems:
            raise ValueError(
                f"state does not fit hf_config: {problems}. Expected the weights of the "
                f"{self.class_name()} that this configuration belongs to"
            )
        for name, array in self.our_arrays(values, state).items():
            values[name][...] = array


def values_of(layer: Layer) -> dict[str, Any]:
    """Return all parameters by name, including those that are not trained."""
    return {name: parameter.value for name, parameter in layer.named_parameters().items()}
