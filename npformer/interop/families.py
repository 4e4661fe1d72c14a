"""The families of models that can be read and written, from ``architectures.toml``."""

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

WRITERS: dict[str, type[Family]] = {
    "gpt2": GPT2,
    "llama": LanguageModelFamily,
    "qwen3": LanguageModelFamily,
    "marian": Marian,
}
"""The classes of families of models that write; of all others it is `EncoderFamily`."""


def _all() -> dict[str, Family]:
    file = importlib.resources.files("npformer.interop") / "architectures.toml"
    tables: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    found = {}
    for name, table in tables.items():
        like = tables.get(table.pop("like", ""), {})  # its tables are added to those of another
        for key, value in like.items():
            own = table.get(key, value)
            table[key] = value | own if isinstance(value, dict) else own
        kind, masked = WRITERS.get(name, EncoderFamily), table.get("masked")
        entries = {key: _entries(value) for key, value in table.items()}
        found[name] = kind(name, **entries | {"masked": masked and Head(**masked)})
    return found


def _entries(value: Any) -> Any:
    if isinstance(value, dict):
        return {ours: theirs for ours, theirs in value.items() if theirs != ""}  # it takes one away
    if isinstance(value, list):
        return tuple(Head(**each) if isinstance(each, dict) else each for each in value)
    return value


FAMILIES = _all()

ARCHITECTURES: dict[str, EncoderFamily] = {
    name: family for name, family in FAMILIES.items() if isinstance(family, EncoderFamily)
}
"""The families of encoders."""


def family_of(hf_config: Settings, where: str) -> Family:
    """Return the family of a configuration; errors name `where` it comes from."""
    kind = hf_config.get("model_type")
    checks.choice(f"model_type in {where}", kind, FAMILIES, hint=False)
    return FAMILIES[str(kind)]
