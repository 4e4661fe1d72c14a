"""The families of models that npformer reads and writes, from ``architectures.toml``."""

from __future__ import annotations

import importlib.resources
import tomllib
from typing import Any

from npformer.core import checks
from npformer.interop.architecture import Head, Settings
from npformer.interop.encoders import EncoderFamily
from npformer.interop.family import Family
from npformer.interop.language_models import GPT2, LanguageModelFamily
from npformer.interop.marian import Marian

FAMILIES_THAT_WRITE: dict[str, type[Family]] = {
    "gpt2": GPT2,
    "llama": LanguageModelFamily,
    "qwen3": LanguageModelFamily,
    "marian": Marian,
}
"""The classes of families whose models write text; all others are an `EncoderFamily`."""


def _read_families() -> dict[str, Family]:
    """Return all families by name."""
    file = importlib.resources.files("npformer.interop") / "architectures.toml"
    tables: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    families = {}
    for name, table in tables.items():
        _inherit(table, tables.get(table.pop("like", ""), {}))
        arguments = {key: _argument(value) for key, value in table.items()}
        if "masked" in table:
            arguments["masked"] = Head(**table["masked"])
        family_class = FAMILIES_THAT_WRITE.get(name, EncoderFamily)
        families[name] = family_class(name, **arguments)
    return families


def _inherit(table: dict[str, Any], parent: dict[str, Any]) -> None:
    """Add the entries of another family's table to a table; nested tables are merged."""
    for key, value in parent.items():
        if key not in table:
            table[key] = value
        elif isinstance(value, dict):
            table[key] = value | table[key]


def _argument(value: Any) -> Any:
    """Return a value of a table as an argument of `Family`."""
    if isinstance(value, dict):  # "" removes an inherited entry
        return {ours: theirs for ours, theirs in value.items() if theirs != ""}
    if isinstance(value, list):
        return tuple(Head(**entry) if isinstance(entry, dict) else entry for entry in value)
    return value


FAMILIES = _read_families()

ARCHITECTURES: dict[str, EncoderFamily] = {
    name: family for name, family in FAMILIES.items() if isinstance(family, EncoderFamily)
}
"""The families of encoders."""


def family_of(hf_config: Settings, where: str) -> Family:
    """Return the family of a configuration; `where` names its file in messages."""
    model_type = hf_config.get("model_type")
    checks.choice(f"model_type in {where}", model_type, FAMILIES, hint=False)
    return FAMILIES[str(model_type)]
