"""The families of models that can be read and written, from ``architectures.toml``."""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from npformer.interop.architecture import Head
from npformer.interop.encoders import EncoderFamily
from npformer.interop.family import Family
from npformer.interop.gpt2 import GPT2
from npformer.interop.marian import Marian

WRITERS: dict[str, type[Family]] = {"gpt2": GPT2, "marian": Marian}
"""Families of models that write, each with a class of its own."""


def _all() -> dict[str, Any]:
    file = importlib.resources.files("npformer.interop") / "architectures.toml"
    tables: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    found = {}
    for name, table in tables.items():
        if like := table.pop("like", None):  # its tables are added to those of another family
            for key, value in tables[like].items():
                mine = table.get(key, value)
                table[key] = value | mine if isinstance(value, dict) else mine
        known = {each.name: table[each.name] for each in fields(Family) if each.name in table}
        for key, value in known.items():
            if isinstance(value, dict):  # "" takes an entry away
                known[key] = {own: theirs for own, theirs in value.items() if theirs != ""}
            elif isinstance(value, list):
                known[key] = tuple(value)
        heads = tuple(Head(**head) for head in table.get("heads", ()))
        kind = WRITERS.get(name, EncoderFamily)
        found[name] = kind(**known | {"model_type": name, "heads": heads})
    return found


FAMILIES: dict[str, Family] = _all()

ARCHITECTURES: dict[str, EncoderFamily] = {
    name: family for name, family in FAMILIES.items() if isinstance(family, EncoderFamily)
}
"""The families of encoders."""


def family_of(hf_config: Mapping[str, Any], where: str) -> Family:
    """Return the family of a configuration; errors name `where` it comes from."""
    kind = hf_config.get("model_type")
    if isinstance(kind, str) and kind in FAMILIES:
        return FAMILIES[kind]
    raise ValueError(
        f"{where} has the model_type {kind!r}, which npformer does not have; expected one of "
        f"{', '.join(FAMILIES)}. MiniLM and most sentence encoders have the type bert"
    )
