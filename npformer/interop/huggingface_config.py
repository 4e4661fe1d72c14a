"""Translation of a model's configuration from Hugging Face's transformers, and back."""

from collections.abc import Mapping
from typing import Any

from npformer.core import a_type, checks
from npformer.interop.architecture import Architecture
from npformer.models import EncoderConfig

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""{their name (``hidden_act``): our name}."""

RATES = ("dropout", "attention_dropout")
"""Our settings that are probabilities."""

ONLY = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
}
"""Their settings of which npformer supports one value; null is the same as not set."""


def translated(
    architecture: Architecture, hf_config: Mapping[str, Any], padding: str
) -> EncoderConfig:
    """Translate a configuration; raise ValueError for what npformer does not support."""
    if not isinstance(hf_config, Mapping):
        raise TypeError(
            f"hf_config is {a_type(hf_config)}; expected a mapping. Write "
            "model.config.to_dict(), or json.load of config.json"
        )
    keys = (*architecture.settings.values(), "vocab_size")
    given = {**{k: v for k, v in architecture.defaults.items() if "attention" in k}, **hf_config}
    for key in keys:
        if key not in given:
            raise ValueError(f"hf_config has no {key!r}; expected all of {', '.join(keys)}")
    checks.positive("vocab_size", hf_config["vocab_size"])
    ours = {name: _checked(name, key, given[key]) for name, key in architecture.settings.items()}
    only = {
        "model_type": architecture.model_type,
        **ONLY,
        "embedding_size": ours["d_model"],
    }
    for key, value in only.items():
        if hf_config.get(key) is not None and hf_config[key] != value:
            raise ValueError(
                f"hf_config has {key} = {hf_config[key]!r}; expected {value!r}, all that "
                "npformer supports"
            )
    ours["max_len"] -= (unused := architecture.unused_positions(hf_config))
    if ours["max_len"] < 1:
        raise ValueError(
            f"hf_config has {ours['max_len'] + unused} positions, and the first {unused} of them "
            "are before that of the first token; expected more"
        )
    return EncoderConfig(**ours, **architecture.fixed, **architecture.unused, padding=padding)


def _checked(ours: str, theirs: str, value: Any) -> Any:
    """Check a setting's value under their name, and return it as ours."""
    if ours == "activation":
        checks.choice(theirs, value, ACTIVATIONS)
        return ACTIVATIONS[value]
    if ours in RATES:
        checks.rate(theirs, value)
        return float(value)
    if ours == "norm_eps":
        checks.number(theirs, value, above=0.0)
        return float(value)
    return checks.positive(theirs, value)


def foreign_settings(architecture: Architecture, config: EncoderConfig) -> list[str]:
    """Return descriptions of the settings that differ from those of the family."""
    found = [
        f"{name} = {getattr(config, name)!r}"
        for name, value in architecture.fixed.items()
        if name != "mixer" and getattr(config, name) != value
    ]
    if set(config.mixers()) != {architecture.fixed["mixer"]}:
        found.append(f"mixer = {config.mixer!r}")
    if config.activation not in ACTIVATIONS.values():
        found.append(f"activation = {config.activation!r}")
    if "n_token_types" in architecture.settings and config.n_token_types == 0:
        found.append("n_token_types = 0")
    return found


def to_hf_config(
    architecture: Architecture, config: EncoderConfig, vocab_size: int, padding_id: int | None
) -> dict[str, Any]:
    """Return the content of config.json, without what belongs to a head."""
    written: dict[str, Any] = {"model_type": architecture.model_type}
    for ours, theirs in architecture.settings.items():
        written[theirs] = getattr(config, ours)
    names = {ours: theirs for theirs, ours in reversed([*ACTIVATIONS.items()])}
    written[architecture.settings["activation"]] = names[config.activation]
    given = architecture.defaults["pad_token_id"] if padding_id is None else padding_id
    written |= {"vocab_size": vocab_size, "pad_token_id": given}
    written[architecture.settings["max_len"]] += architecture.unused_positions(written)
    return written
