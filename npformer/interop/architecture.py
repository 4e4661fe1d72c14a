"""Architecture: how transformers stores a family of models, as a table."""

from __future__ import annotations

import importlib.resources
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from npformer.core import checks, to_numpy

POSITIONS = "embed.positions.table"

TABLES = "tokens", "types"
"""Layers whose weights are tables of rows, not those of a linear map."""

OWN = {"gamma": "weight", "beta": "bias", "table": "weight"}
"""{our name of a parameter: theirs}, where they differ."""


class Place(NamedTuple):
    """Where one of our parameters lies in their weights.

    Attributes
    ----------
    key : str
        Their name for it.
    turned : bool
        Whether theirs is (out, in), and ours (in, out).
    part : int or None
        Which of the three this is, if theirs holds queries, keys and values side by side.
    """

    key: str
    turned: bool = False
    part: int | None = None

    def ours(self, array: Any) -> Any:
        """Return our array from theirs."""
        if self.part is not None and array.shape[-1] % 3 == 0:
            array = np.split(array, 3, axis=-1)[self.part]
        return array.T if self.turned else array

    def theirs(self, array: Any) -> Any:
        """Return their array, or its part, from ours."""
        return array.T if self.turned else array


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
        {our layer: their layer}.
    """

    task: str
    pooling: str
    layers: Mapping[str, str]

    def names(self) -> list[str]:
        """Return our names of its parameters."""
        return [f"{layer}.{own}" for layer in self.layers for own in ("weight", "bias")]


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
        {our layer: their layer}; {i} stands for the number of a block, and [k] for part k of a
        layer that holds queries, keys and values.
    pretraining : sequence of str
        Prefixes of the layers of pretraining tasks, which npformer does not have.
    heads : sequence of Head
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
    heads: tuple[Head, ...] = ()
    unused: Mapping[str, Any] = field(default_factory=dict)
    token_types: bool = False
    positions_after_padding: bool = False
    model_class: str = "Model"
    conv1d: bool = False

    def class_name(self, head: Head | None = None) -> str:
        """Return the name of their class: BertModel, or the one with a head."""
        return self.family + (self.model_class if head is None else f"For{head.task}")

    def head_of(self, hf_config: Mapping[str, Any]) -> Head | None:
        """Return the head that a configuration names, if it is one of `heads`."""
        classes = hf_config.get("architectures") or ()
        found = [head for head in self.heads if self.class_name(head) in classes]
        return found[0] if found else None

    def unused_positions(self, hf_config: Mapping[str, Any]) -> int:
        """Return how many rows at the start of the position table no token uses."""
        if not self.positions_after_padding:
            return 0
        padding_id = hf_config.get("pad_token_id")
        most = hf_config["vocab_size"] - 1
        if padding_id is None:
            padding_id = self.defaults["pad_token_id"]
        return 1 + checks.whole("pad_token_id", padding_id, at_least=0, at_most=most)

    def with_head(self, head: Head) -> Architecture:
        """Return how a model with a head is stored."""
        pooler = head.pooling.startswith("pooler")
        own = {o: self.prefix + t for o, t in self.layers.items() if pooler or o != "pool.dense"}
        return replace(self, layers=own | dict(head.layers))

    def places(self, names: Iterable[str]) -> dict[str, Place]:
        """Return where those of our parameters lie that the family has."""
        found = {name: self._place(name) for name in names}
        return {name: place for name, place in found.items() if place is not None}

    def _place(self, ours: str) -> Place | None:
        number = re.search(r"\.(\d+)\.", ours)
        name = ours if number is None else ours.replace(number[0], ".{i}.", 1)
        layer, _, own = name.rpartition(".")
        if name not in self.layers and layer not in self.layers:
            return None
        theirs, _, part = self.layers.get(layer, "").partition("[")
        theirs = self.layers.get(name, f"{theirs}.{OWN.get(own, own)}")
        if number is not None:
            theirs = theirs.replace("{i}", number[1])
        linear = own == "weight" and layer.rpartition(".")[2] not in TABLES
        turned = linear and not (self.conv1d and number is not None)
        return Place(theirs, turned, int(part[0]) if part else None)


def _all() -> dict[str, Architecture]:
    """Return the families of ``architectures.toml``."""
    file = importlib.resources.files("npformer.interop") / "architectures.toml"
    tables: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    found = {}
    for name, table in tables.items():
        if like := table.pop("like", None):  # its tables are added to those of another family
            for key, value in tables[like].items():
                mine = table.get(key, value)
                table[key] = value | mine if isinstance(value, dict) else mine
        known = {each.name: table[each.name] for each in fields(Architecture) if each.name in table}
        for key, value in known.items():
            if isinstance(value, dict):  # "" takes an entry away
                known[key] = {own: theirs for own, theirs in value.items() if theirs != ""}
        heads = tuple(Head(**head) for head in table.get("heads", ()))
        found[name] = Architecture(**known | {"model_type": name, "heads": heads})
    return found


EVERY = _all()

ARCHITECTURES = {name: each for name, each in EVERY.items() if each.heads}
"""The families of encoders."""


def architecture_of(hf_config: Mapping[str, Any], where: str = "hf_config") -> Architecture:
    """Return the family of a configuration; errors name `where` it comes from."""
    kind = hf_config.get("model_type")
    if isinstance(kind, str) and kind in ARCHITECTURES:
        return ARCHITECTURES[kind]
    raise ValueError(
        f"{where} has the model_type {kind!r}, which npformer does not have; expected one of "
        f"{', '.join(ARCHITECTURES)}. MiniLM and most sentence encoders have the type bert"
    )


def their_layout(places: Mapping[str, Place], values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return copies of our arrays under their names and in their layout, on the host."""
    parts: dict[str, list[np.ndarray]] = {}
    for ours, place in places.items():
        parts.setdefault(place.key, []).append(place.theirs(to_numpy(values[ours])))
    return {
        name: np.array(each[0] if len(each) == 1 else np.concatenate(each, axis=-1), order="C")
        for name, each in parts.items()
    }
