"""Plugins that a model file needs: which they are, and what to do if one is missing."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from npformer.core import INITIALIZERS, PLUGIN_FILE, Registry, parse_spec
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models.losses import LOSSES

BY_SETTING: dict[str, Registry[Any]] = {
    "mixer": MIXERS,
    "activation": ACTIVATIONS,
    "ffn": FFNS,
    "norm_kind": NORMS,
    "initializer": INITIALIZERS,
    "pooling": POOLINGS,
    "output": LOSSES,
}
"""Settings whose values are names in a registry."""


def plugin_names(settings: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the names in a model's settings that plugins registered, with their modules."""
    plugins = []
    for registry, name in _names_in_registries(settings):
        if name in registry.user_builders():
            builder = registry[name]
            builder = builder.func if isinstance(builder, partial) else builder
            module = str(getattr(builder, "__module__", ""))
            # A plugin's file is loaded under a name that cannot be imported, so the file is named.
            module = getattr(sys.modules.get(module), PLUGIN_FILE, module)
            plugins.append({"kind": registry.kind, "name": name, "module": module})
    return plugins


def missing_names(description: Mapping[str, Any]) -> dict[str, str]:
    """Return what a file needs that is not registered, as "the mixer 'mean'": its module."""
    modules: dict[tuple[str, str], str] = {}
    needed: list[tuple[Registry[Any], str]] = []
    unusable = (AttributeError, KeyError, TypeError)  # somebody edited the file
    with suppress(*unusable):
        for plugin in description["registered"]:
            modules[plugin["kind"], plugin["name"]] = str(plugin["module"])
    with suppress(*unusable):
        needed += _names_in_registries({**description["config"], **description["arguments"]})
    return {
        f"the {registry.kind} {name!r}": modules.get((registry.kind, name), "")
        for registry, name in needed
        if name not in registry
    }


def how_to_register(missing: Mapping[str, str]) -> str:
    """Return a sentence on how to register what `missing_names` found; "" if that is nothing."""
    if not missing:
        return ""
    modules = sorted(set(filter(None, missing.values())))
    option, where = "MODULE", "the module that registers it"
    if "__main__" in modules:
        where = "a module that registers it (a script or notebook did, when it was saved)"
    elif modules:
        where = " and ".join(f"the file {m}" if m.endswith(".py") else m for m in modules)
        option = modules[0] if len(modules) == 1 else option
    return (
        f"The file needs {' and '.join(missing)}: before nf.load, register it, or import {where}; "
        f"on the command line, --plugin {option}. "
    )


def _names_in_registries(settings: Mapping[str, Any]) -> Iterator[tuple[Registry[Any], str]]:
    """Yield each registered name in some settings, once, with its registry."""
    for setting, registry in BY_SETTING.items():
        value = settings.get(setting)
        specs = value if isinstance(value, list | tuple) else [value]
        for spec in dict.fromkeys(spec for spec in specs if isinstance(spec, str)):
            with suppress(ValueError):  # not a valid name: building the model reports it
                yield registry, parse_spec(spec, registry.kind)[0]
