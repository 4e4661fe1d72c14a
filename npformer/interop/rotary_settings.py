"""Rotary positional encoding and windows in a config.json, layer by layer, old words and new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from npformer.core import checks
from npformer.interop.architecture import Architecture, Settings
from npformer.models import EncoderConfig

FULL, LOCAL = "full_attention", "sliding_attention"
"""Kinds of layers, by what a token sees: all, or a window around it."""

EVERY = "global_attn_every_n_layers"


def read_rotary(family: Architecture, hf_config: Settings, ours: Settings) -> dict[str, Any]:
    """Return `rope_theta` and `window`: one for all layers, or one for each if they differ.

    `ours` are the settings so far, with the width of a window. ValueError if config.json has
    another kind of layer than the family, or rotations that are scaled.
    """
    n_layers = checks.whole("n_layers", ours["n_layers"], 1, checks.MOST_LAYERS)
    kinds = _kinds(family, hf_config, n_layers)
    thetas = {kind: _theta(family, hf_config, kind) for kind in family.thetas}
    width = _width(family, hf_config, ours)
    return {
        "rope_theta": _one_or_all(thetas[kind] for kind in kinds),
        "window": _one_or_all(width if kind == LOCAL else None for kind in kinds),
    }


def _kinds(family: Architecture, hf_config: Settings, n_layers: int) -> list[str]:
    """Return the kind of each layer."""
    if (stated := hf_config.get("layer_types")) is None:
        every = checks.positive(EVERY, hf_config[EVERY]) if EVERY in family.defaults else 1
        return [LOCAL if i % every else FULL for i in range(n_layers)]
    checks.instance("layer_types", stated, list)
    if len(stated) != n_layers:
        raise ValueError(
            f"layer_types has {len(stated)} entries; expected one for each of {n_layers} layers"
        )
    name = "an entry of layer_types"
    return [checks.choice(name, kind, family.thetas, hint=False) for kind in stated]


def _width(family: Architecture, hf_config: Settings, ours: Settings) -> int | None:
    """Return the width of a window; None if the family has none."""
    half = hf_config.get(family.half_window)
    if half is None:
        return ours.get("window")
    half = checks.whole(family.half_window, half, at_least=0)
    return max(1, 2 * half)  # of either width a token sees itself and `half` on each side


def _theta(family: Architecture, hf_config: Settings, kind: str) -> float:
    """Return the theta of a kind of layer; ValueError for anything but a plain rotation."""
    newer = _stated(hf_config, "rope_parameters")
    older = _stated(hf_config, "rope_scaling")  # which wins
    if len(family.thetas) == 1:
        own = older or newer
    else:
        if other := newer.keys() - family.thetas.keys():
            raise ValueError(
                f"rope_parameters has {min(other)!r}; expected {' and '.join(family.thetas)}, with "
                "the rotations of each kind of layer"
            )
        own = {**_stated(newer, kind), **older}
    found = {
        "rope_theta": hf_config[family.thetas[kind]],
        "partial_rotary_factor": hf_config.get("partial_rotary_factor"),
        **own,
    }
    usual = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
    for name, value in usual.items():
        if found.get(name) not in (None, value):
            raise ValueError(
                f"hf_config has rotary positional encoding with {name} = {found[name]!r}; expected "
                f"{value!r}: npformer turns all features, by angles that are not scaled"
            )
    return checks.number("rope_theta", found["rope_theta"], above=0.0)


def _stated(settings: Settings, name: str) -> Settings:
    """Return settings in settings; none if they are left out."""
    found = settings.get(name) or {}
    checks.instance(name, found, Mapping)
    return found


def _one_or_all(values: Iterable[Any]) -> Any:
    listed = tuple(values)
    return listed[0] if len(set(listed)) == 1 else listed


# And back -----------------------------------------------------------------------------------------


def _layers(config: EncoderConfig) -> list[tuple[str, float, int | None]]:
    """Return kind, theta and window of each layer."""
    thetas, windows = (
        value if isinstance(value, tuple) else (value,) * config.n_layers
        for value in (config.rope_theta, config.window)
    )
    pairs = zip(thetas, windows, strict=True)
    return [(LOCAL if width else FULL, theta, width) for theta, width in pairs]


def foreign_rotary(family: Architecture, config: EncoderConfig) -> list[str]:
    """Return descriptions of layers that differ in more than their kind."""
    found = set(_layers(config))
    kinds = [kind for kind, *_ in found]
    return [
        f"layers of the kind {kind} that differ in rope_theta or window"
        for kind in family.thetas
        if kinds.count(kind) > 1
    ]


def their_rotary(family: Architecture, config: EncoderConfig) -> dict[str, Any]:
    """Return what config.json says of rotations and windows, in newer words and in older ones."""
    layers = _layers(config)
    thetas = {kind: family.defaults[older] for kind, older in family.thetas.items()}
    thetas |= {kind: theta for kind, theta, _ in layers}
    plain = {kind: {"rope_theta": t, "rope_type": "default"} for kind, t in thetas.items()}
    written: dict[str, Any] = {family.thetas[kind]: theta for kind, theta in thetas.items()}
    if len(plain) == 1:
        return written | {"rope_parameters": plain[FULL]}
    key = family.settings["window"]
    width = next((width for *_, width in layers if width), family.defaults[key])
    kinds = [kind for kind, *_ in layers]
    return written | {"rope_parameters": plain, "layer_types": kinds, key: width}
