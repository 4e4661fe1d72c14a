"""Translation of a model's settings from Hugging Face's transformers, and back."""

from collections.abc import Mapping
from typing import Any

from npformer.core import a_type, checks
from npformer.interop.architecture import Architecture
from npformer.models import EncoderConfig

RATES = ("dropout", "attention_dropout", "ffn_dropout")
"""Our settings that are probabilities."""


def our_settings(
    architecture: Architecture, given: Mapping[str, Any], who: str = "hf_config"
) -> dict[str, Any]:
    """Return our settings; ValueError for what npformer does not support names `who` has it."""
    keys = (*architecture.settings.values(), "vocab_size")
    for key in keys:
        if key not in given:
            raise ValueError(f"{who} has no {key!r}; expected all of {', '.join(keys)}")
    checks.positive("vocab_size", given["vocab_size"])
    ours = {
        name: _checked_setting(architecture, name, key, given[key])
        for name, key in architecture.settings.items()
    }
    only = {
        "model_type": architecture.model_type,
        **architecture.only,
        **{key: given[other] for key, other in architecture.same.items()},
    }
    for key, value in only.items():
        if given.get(key) is not None and given[key] != value:
            raise ValueError(
                f"{who} has {key} = {given[key]!r}; expected {value!r}, all that npformer supports"
            )
    return ours | dict(architecture.fixed)


def _checked_setting(architecture: Architecture, ours: str, theirs: str, value: Any) -> Any:
    """Check a setting's value under their name, and return it as ours."""
    if ours == "activation":
        checks.choice(theirs, value, architecture.activations, hint=False)
        return architecture.activations[value]
    if ours in RATES:
        checks.rate(theirs, value)
        return float(value)
    if ours == "norm_eps":
        checks.number(theirs, value, above=0.0)
        return float(value)
    return checks.positive(theirs, value)


def encoder_config(
    architecture: Architecture, hf_config: Mapping[str, Any], padding: str
) -> EncoderConfig:
    """Return the configuration of an encoder."""
    if not isinstance(hf_config, Mapping):
        raise TypeError(
            f"hf_config is {a_type(hf_config)}; expected a mapping. Write "
            "model.config.to_dict(), or json.load of config.json"
        )
    usual = {k: v for k, v in architecture.defaults.items() if "attention" in k}
    ours = our_settings(architecture, usual | dict(hf_config))
    ours["max_len"] -= (unused := architecture.unused_positions(hf_config))
    if ours["max_len"] < 1:
        raise ValueError(
            f"hf_config has {ours['max_len'] + unused} positions, and the first {unused} of them "
            "are before that of the first token; expected more"
        )
    more = {**architecture.unused, "position_padding_id": unused - 1 if unused else None}
    return EncoderConfig(**ours, **more, padding=padding)


def foreign_settings(architecture: Architecture, config: EncoderConfig) -> list[str]:
    """Return descriptions of the settings that differ from those of the family."""
    found = [
        f"{name} = {getattr(config, name)!r} (expected {value!r})"
        for name, value in architecture.fixed.items()
        if (set(config.mixers()) != {value} if name == "mixer" else getattr(config, name) != value)
    ]
    if config.activation not in architecture.activations.values():
        found.append(f"activation = {config.activation!r}")
    if config.position_padding_id is not None and not architecture.positions_after_padding:
        found.append(f"position_padding_id = {config.position_padding_id}")
    if "n_token_types" in architecture.settings and config.n_token_types == 0:
        found.append("n_token_types = 0")
    return found


def check_fits(architecture: Architecture, found: list[str]) -> None:
    """Raise ValueError if something about a model was found that their class does not have."""
    if found:
        raise ValueError(
            f"transformers' {architecture.class_name()} cannot hold this model: it has "
            f"{', '.join(found)}. npformer.save writes any model"
        )


def their_settings(architecture: Architecture, config: EncoderConfig) -> dict[str, Any]:
    """Return the settings as config.json has them."""
    written = {theirs: getattr(config, ours) for ours, theirs in architecture.settings.items()}
    names = {ours: theirs for theirs, ours in reversed([*architecture.activations.items()])}
    return {
        "model_type": architecture.model_type,
        **written,
        architecture.settings["activation"]: names[config.activation],
    }
