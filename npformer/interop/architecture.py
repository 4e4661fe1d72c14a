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
"""Weights by name, as others hold them."""

Arrays = dict[str, np.ndarray]
"""Weights by name, on the host."""

POSITIONS = "embed.positions.table"

TABLES = "tokens", "types"
"""Layers whose weights are tables of rows, not those of a linear map."""

OWN = {"gamma": "weight", "beta": "bias", "table": "weight"}
"""{our name of a parameter: theirs}, where they differ."""


class Place(NamedTuple):
    """What one of their arrays holds.

    Attributes
    ----------
    ours : tuple of str
        The parameters in it, side by side along our last axis: queries, keys and values, or one.
    turned : bool
        Whether theirs is (out, in), and ours (in, out).
    """

    ours: tuple[str, ...]
    turned: bool


@dataclass(frozen=True)
class Head:
    """The layers of a task, on top of an encoder.

    Attributes
    ----------
    task : str
        The end of its class names, as in BertForSequenceClassification; "" if transformers has no
        class for it.
    pooling : str
        The pooling of a `SequenceClassifier` that computes the same.
    layers : mapping of str to str
        {our layer: their layer}, of layers with a weight and a bias; or of parameters.
    settings : mapping of str to object
        Their settings with which a head of this class computes the same.
    flags : mapping of str to str
        {our argument: their setting}, of biases that it may have.
    decoder : str
        The layer that turns features into logits, if there is one of its own besides the table of
        the embeddings. Its bias may be stored under a second name: that of "output.bias" in
        `layers`.
    activation : str
        Our name of its activation, if it is always the same.
    activation_key : str
        The key of its activation in config.json, if it has one. A head with neither has the
        encoder's.
    other_tasks : sequence of str
        The ends of the names of other classes that have its layers, and more.
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
        """Return our names of its parameters."""
        own = ".weight", ".bias", ".gamma"
        return [
            name
            for layer in self.layers
            for name in ([layer] if layer.endswith(own) else [f"{layer}.weight", f"{layer}.bias"])
        ]

    def fits(self, hf_config: Settings) -> bool:
        """Return whether a configuration has the settings, or leaves them out."""
        return all(hf_config.get(key, value) == value for key, value in self.settings.items())


@dataclass(frozen=True)
class Architecture:
    """How transformers stores a family of models: a table of ``architectures.toml``.

    Attributes
    ----------
    model_type, family, prefix : str
        In config.json; in the names of classes; and before the names of weights, if there is a
        head: "bert", "Bert" (BertModel), "bert.".
    settings : mapping of str to str
        {our setting: their key in config.json}; {side} stands for encoder and decoder.
    activations : mapping of str to str
        {their name: our name}.
    fixed : mapping of str to object
        Our settings that all models of the family have.
    only : mapping of str to object
        Their settings of which npformer supports one value; null is the same as not set.
    same : mapping of str to str
        {their setting: another one, which it has to equal}, such as a second name of it.
    defaults : mapping of str to object
        The values of their keys that a config.json leaves out.
    layers : mapping of str to str
        {our layer: their layer}; {i} stands for the number of a block. Those of ours that have the
        same lie side by side in it.
    pretraining : sequence of str
        Prefixes of the layers of pretraining tasks, which npformer does not have.
    buffers : sequence of str
        The ends of the names of constants in older files, which are ignored.
    heads : sequence of Head
    masked : Head, optional
        That of a `MaskedLanguageModel`.
    thetas : mapping of str to str
        {kind of layer: older name of its theta}, with rotary positional encoding: "full_attention",
        and "sliding_attention" if some layers have a window.
    half_window : str
        Their key of half a window's width, which counts if it is set.
    unused : mapping of str to object
        Our settings that have no effect in the family, and their values.
    token_types : bool
        Whether their tokenizer tells the two texts of a pair apart.
    positions_after_padding : bool
        Whether the first token has the position pad_token_id + 1. No token uses the rows before
        it: they are cut off when weights are read, and put back when they are written.
    model_class : str
        The end of the class's name.
    conv1d : bool
        Whether the weights of linear layers in blocks are (in, out), as ours.
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
        """Return the name of their class: BertModel, or the one with a head."""
        return self.family + (self.model_class if head is None else f"For{head.task}")

    def head_of(
        self, hf_config: Settings, among: Iterable[Head | None] | None = None
    ) -> Head | None:
        """Return the head that a configuration names, among `heads` or among others; or None."""
        classes = hf_config.get("architectures") or ()
        for head in self.heads if among is None else among:
            if head is None:
                continue
            class_names = {f"{self.family}For{task}" for task in (head.task, *head.other_tasks)}
            if class_names.intersection(classes) and head.fits(hf_config):
                return head
        return None

    def unused_positions(self, hf_config: Settings) -> int:
        """Return how many rows at the start of the position table no token uses."""
        if not self.positions_after_padding:
            return 0
        most = checks.positive("vocab_size", hf_config.get("vocab_size")) - 1
        return 1 + checks.whole("pad_token_id", hf_config["pad_token_id"], at_least=0, at_most=most)

    def with_head(self, head: Head) -> Architecture:
        """Return how a model with a head is stored."""
        pooler = not head.pooling or head.pooling.startswith("pooler")
        own = {o: self.prefix + t for o, t in self.layers.items() if pooler or o != "pool.dense"}
        return replace(self, layers=own | dict(head.layers))

    def places(self, names: Iterable[str]) -> dict[str, Place]:
        """Return {their name: what it holds} for those of our parameters that the family has."""
        found: dict[str, Place] = {}
        for name in names:
            if (place := self._place(name)) is not None:
                theirs, turned = place
                before = found[theirs].ours if theirs in found else ()
                found[theirs] = Place((*before, name), turned)
        return found

    def _place(self, ours: str) -> tuple[str, bool] | None:
        """Return their name of one of our parameters, and whether theirs is turned."""
        number = re.search(r"\.(\d+)\.", ours)
        name = ours if number is None else ours.replace(number[0], ".{i}.", 1)
        layer, _, own = name.rpartition(".")
        if name not in self.layers and layer not in self.layers:
            return None
        theirs = self.layers.get(name, f"{self.layers.get(layer)}.{OWN.get(own, own)}")
        linear = own == "weight" and layer.rpartition(".")[2] not in TABLES
        turned = linear and not (self.conv1d and number is not None)
        return theirs if number is None else theirs.replace("{i}", number[1]), turned

    def ours(self, names: Iterable[str], state: Weights) -> Arrays:
        """Return their arrays under our names and in our layout: views."""
        found: Arrays = {}
        for theirs, place in self.places(names).items():
            array = state[theirs].T if place.turned else state[theirs]
            parts = np.split(array, len(place.ours), axis=-1)
            found |= zip(place.ours, parts, strict=True)
        return found

    def theirs(self, values: Weights) -> Arrays:
        """Return our arrays under their names and in their layout: copies, on the host."""
        found: Arrays = {}
        for theirs, place in self.places(values).items():
            joined = np.concatenate([to_numpy(values[name]) for name in place.ours], axis=-1)
            found[theirs] = np.ascontiguousarray(joined.T if place.turned else joined)
        return found

    def load(self, model: Layer, state: Weights) -> None:
        """Set the weights of a model; ValueError if their arrays are not those of the model."""
        values, expected = values_of(model), {}
        for theirs, place in self.places(values).items():
            *shape, last = values[place.ours[0]].shape
            shape = [*shape, last * len(place.ours)]
            zero = np.zeros((), values[place.ours[0]].dtype)
            expected[theirs] = np.broadcast_to(zero, shape[::-1] if place.turned else shape)
        if problems := checks.misfits(state, expected):
            raise ValueError(
                f"state does not fit hf_config: {problems}. Expected the weights of the "
                f"{self.class_name()} that this configuration belongs to"
            )
        for name, array in self.ours(values, state).items():
            values[name][...] = array


def values_of(layer: Layer) -> dict[str, Any]:
    """Return all parameters by name, including those that are not trained."""
    return {name: parameter.value for name, parameter in layer.named_parameters().items()}
