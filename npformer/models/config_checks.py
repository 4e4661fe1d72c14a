"""The checks of an EncoderConfig that concern several settings: what mixers support."""

from collections.abc import Sequence
from typing import Any

from npformer.functional.heads import check_heads
from npformer.mixers import MIXERS, Attention, AveragingMixer

PER_LAYER = "mixer", "window", "rope_theta"
"""Settings that may have a value for each layer."""

OF_KEYS = {"n_kv_heads": None, "d_head": None, "window": None, "qk_norm": False}
"""Settings of queries and keys, with the value that turns each off."""


def check_number(config: Any, name: str, values: Sequence[Any]) -> None:
    """Check that there is a value for each layer."""
    if len(values) != config.n_layers:
        noun = "name" if name == "mixer" else "number"
        raise ValueError(
            f"{name} has {len(values)} {noun}s; expected one {noun}, or one for each of the "
            f"n_layers = {config.n_layers}. If you change one, change the other"
        )


def check_mixers(config: Any) -> None:
    """Check that each layer has a mixer that is known and fits the other settings."""
    names = config.mixers()
    check_number(config, "mixer", names)
    entries = [MIXERS[MIXERS.parse(name, "mixer")[0]] for name in names]
    classes = [entry if isinstance(entry, type) else object for entry in entries]
    if any(issubclass(mixer_class, Attention | AveragingMixer) for mixer_class in classes):
        check_heads(config.d_model, config.n_heads, config.n_kv_heads, config.d_head)
    elif config.attention_dropout > 0.0 and object not in classes:
        raise ValueError(
            f"attention_dropout is {config.attention_dropout} and {', '.join(names)} has no "
            "weights to drop; expected 0, or attention or a synthesizer"
        )
    for layer, (name, mixer_class) in enumerate(zip(names, classes, strict=True)):
        if not issubclass(mixer_class, Attention):
            _refuse_without_keys(config, layer, name)
    _check_rotary(config)
    _check_shared(config)


def _check_rotary(config: Any) -> None:
    """Check that a head's features can be rotated in pairs."""
    d_head = config.mixer_settings().head_size
    if config.positions == "rotary" and d_head % 2:
        raise ValueError(
            f"positions is 'rotary' and a head has {d_head} features (d_head, or d_model / "
            "n_heads); expected an even number, because they are rotated in pairs"
        )


def _check_shared(config: Any) -> None:
    """Check that layers that share one block have the same settings."""
    if not config.share_layers:
        return
    for name in PER_LAYER:
        value = getattr(config, name)
        if isinstance(value, tuple) and len(set(value)) > 1:
            raise ValueError(
                f"share_layers=True with {name} {', '.join(map(str, value))}; expected one {name} "
                "for all layers, because they share one block"
            )


def _refuse_without_keys(config: Any, layer: int, mixer: str) -> None:
    """Reject query and key settings for mixers without queries and keys."""
    if config.positions == "rotary":
        raise _no_keys_error("positions", "rotary", mixer, instead="sinusoidal")
    settings = config.mixer_settings(layer)
    for name, off in OF_KEYS.items():
        value = getattr(settings, name)
        if value != off:
            raise _no_keys_error(name, value, mixer, instead=off)


def _no_keys_error(name: str, value: Any, mixer: str, instead: Any) -> ValueError:
    return ValueError(
        f"{name} is {value!r} and a mixer is {mixer}, which has no queries and keys; "
        f"expected attention, or {name}={instead!r}"
    )
