"""Rotary positional encoding and windows of each layer, by older and newer keys of config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npformer.core import checks
from npformer.interop.architecture import Architecture, Settings
from npformer.models import EncoderConfig

FULL, LOCAL = "full_attention", "sliding_attention"
"""Types of layers: a token attends to all tokens, or to a window around it."""

EVERY = "global_attn_every_n_layers"


def read_rotary(family: Architecture, hf_config: Settings, ours: Settings) -> dict[str, Any]:
    """Return `rope_theta` and `window`: one value for all layers, or one for each if they differ.

    `ours` are our other settings, with the width of a window. ValueError if config.json has a
    type of layer that the family does not have, or scaled rotations.
    """
    n_layers = checks.whole("n_layers", ours["n_layers"], 1, checks.MOST_LAYERS)
    layer_types = _layer_types(family, hf_config, n_layers)
    theta_of_type = {name: _theta(family, hf_config, name) for name in family.thetas}
    width = _width(family, hf_config, ours)
    thetas = [theta_of_type[layer_type] for layer_type in layer_types]
    windows = [width if layer_type == LOCAL else None for layer_type in layer_types]
    return {"rope_theta": _one_or_all(thetas), "window": _one_or_all(windows)}


def _layer_types(family: Architecture, hf_config: Settings, n_layers: int) -> list[str]:
    """Return the type of each layer."""
    layer_types = hf_config.get("layer_types")
    if layer_types is None:
        every = checks.positive(EVERY, hf_config[EVERY]) if EVERY in family.defaults else 1
        return [LOCAL if i % every else FULL for i in range(n_layers)]
    checks.instance("layer_types", layer_types, list)
    if len(layer_types) != n_layers:
        raise ValueError(
            f"layer_types has {len(layer_types)} entries; expected one for each of {n_layers} "
            "layers"
        )
    for layer_type in layer_types:
        checks.choice("an entry of layer_types", layer_type, family.thetas, hint=False)
    return list(layer_types)


def _width(family: Architecture, hf_config: Settings, ours: Settings) -> int | None:
    """Return the width of a window; None if the family has none."""
    half = hf_config.get(family.half_window)
    if half is None:
        return ours.get("window")
    half = checks.whole(family.half_window, half, at_least=0)
    return max(1, 2 * half)  # a token attends to itself and to `half` tokens on each side


def _theta(family: Architecture, hf_config: Settings, layer_type: str) -> float:
    """Return the theta of a type of layer; ValueError for anything but a plain rotation."""
    newer = _inner_settings(hf_config, "rope_parameters")
    older = _inner_settings(hf_config, "rope_scaling")  # takes precedence
    if len(family.thetas) == 1:
        stated = older or newer
    else:
        unknown = newer.keys() - family.thetas.keys()
        if unknown:
            raise ValueError(
                f"rope_parameters has {min(unknown)!r}; expected {' and '.join(family.thetas)}, "
                "with the rotations of each type of layer"
            )
        stated = {**_inner_settings(newer, layer_type), **older}
    settings = {
        "rope_theta": hf_config[family.thetas[layer_type]],
        "partial_rotary_factor": hf_config.get("partial_rotary_factor"),
        **stated,
    }
    supported = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
    for name, value in supported.items():
        if settings.get(name) not in (None, value):
            raise ValueError(
                f"hf_config has rotary positional encoding with {name} = {settings[name]!r}; "
                f"expected {value!r}: npformer rotates all features, by angles that are not scaled"
            )
    return checks.number("rope_theta", settings["rope_theta"], above=0.0)


def _inner_settings(settings: Settings, name: str) -> Settings:
    """Return the settings under a name in other settings; none if they are left out."""
    inner = settings.get(name) or {}
    checks.instance(name, inner, Mapping)
    return inner


def _one_or_all(values: list[Any]) -> Any:
    """Return the only value if all are equal, otherwise a tuple of all."""
    return values[0] if len(set(values)) == 1 else tuple(values)


# And back -----------------------------------------------------------------------------------------


def _layers(config: EncoderConfig) -> list[tuple[str, float, int | None]]:
    """Return type, theta and window of each layer."""
    thetas = _repeat(config.rope_theta, config.n_layers)
    windows = _repeat(config.window, config.n_layers)
    pairs = zip(thetas, windows, strict=True)
    return [(LOCAL if width else FULL, theta, width) for theta, width in pairs]


def _repeat(value: Any, n_layers: int) -> tuple[Any, ...]:
    """Return the value of a setting in each layer."""
    return value if isinstance(value, tuple) else (value,) * n_layers


def foreign_rotary(family: Architecture, config: EncoderConfig) -> list[str]:
    """Return descriptions of types of layers whose rotations or windows are not all equal."""
    different_layers = set(_layers(config))
    layer_types = [layer_type for layer_type, *_ in different_layers]
    return [
        f"layers of type {layer_type} that differ in rope_theta or window"
        for layer_type in family.thetas
        if layer_types.count(layer_type) > 1
    ]


def their_rotary(family: Architecture, config: EncoderConfig) -> dict[str, Any]:
    """Return the entries of config.json for rotations and windows, by newer and older keys."""
    layers = _layers(config)
    thetas = {layer_type: family.defaults[key] for layer_type, key in family.thetas.items()}
    thetas |= {layer_type: theta for layer_type, theta, _ in layers}
    settings: dict[str, Any] = {}
    rotations = {}
    for layer_type, theta in thetas.items():
        settings[family.thetas[layer_type]] = theta
        rotations[layer_type] = {"rope_theta": theta, "rope_type": "default"}
    if len(rotations) == 1:
        return settings | {"rope_parameters": rotations[FULL]}
    key = family.settings["window"]
    width = next((width for *_, width in layers if width), family.defaults[key])
    layer_types = [layer_type for layer_type, *_ in layers]
    return settings | {"rope_parameters": rotations, "layer_types": layer_types, key: width}
