"""Translation of a BERT's or FNet's configuration from Hugging Face's transformers."""

from collections.abc import Mapping
from typing import Any

from npformer.core import checks
from npformer.models import EncoderConfig

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""{their name (``hidden_act``): our name}."""

MIXER_OF = {"bert": "attention", "fnet": "fourier"}

SIZES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "max_len",
    "type_vocab_size": "n_token_types",
}
"""{their name: our name} of settings that are whole numbers."""


def architecture(kind: str) -> dict[str, Any]:
    """Return the settings that all encoders of a kind have, whatever their sizes."""
    return {
        "norm": "post",
        "ffn": "linear",
        "positions": "learned",
        "scale_embeddings": False,
        "embedding_norm": True,
        "embedding_projection": kind == "fnet",
        "share_layers": False,
        "causal": False,
    }


def translated(kind: str, hf_config: Mapping[str, Any], padding: str) -> EncoderConfig:
    """Translate a configuration; raise ValueError for what npformer does not have."""
    if not isinstance(hf_config, Mapping):
        raise TypeError(
            f"hf_config is a {type(hf_config).__name__}; expected a mapping. Write "
            "model.config.to_dict(), or json.load of config.json"
        )
    given = dict(hf_config)
    if kind == "fnet":
        given["num_attention_heads"] = 1
    keys = (*SIZES, "vocab_size", "hidden_act", "hidden_dropout_prob", "layer_norm_eps")
    for key in keys:
        if key not in given:
            raise ValueError(f"hf_config has no {key!r}; expected all of {', '.join(keys)}")
    checks.positive("vocab_size", given["vocab_size"])
    sizes: dict[str, Any] = {
        ours: checks.positive(theirs, given[theirs]) for theirs, ours in SIZES.items()
    }
    only = {
        "model_type": kind,
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "embedding_size": given["hidden_size"],
        "pruned_heads": {},
    }
    for key, value in only.items():
        if given.get(key) is not None and given[key] != value:  # null in JSON: not set
            raise ValueError(
                f"hf_config has {key} = {given[key]!r}; expected {value!r}: npformer has nothing "
                "else"
            )
    checks.rate("hidden_dropout_prob", given["hidden_dropout_prob"])
    checks.number("layer_norm_eps", given["layer_norm_eps"], above=0.0)
    checks.choice("hidden_act", given["hidden_act"], ACTIVATIONS)
    return EncoderConfig(
        **sizes,
        mixer=MIXER_OF[kind],
        activation=ACTIVATIONS[given["hidden_act"]],
        dropout=float(given["hidden_dropout_prob"]),
        padding=padding,
        norm_eps=float(given["layer_norm_eps"]),
        **architecture(kind),
    )


def foreign_settings(kind: str, config: EncoderConfig) -> list[str]:
    """Return descriptions of the settings that differ from those of the kind."""
    found = [
        f"{key} = {getattr(config, key)!r}"
        for key, value in architecture(kind).items()
        if getattr(config, key) != value
    ]
    if set(config.mixers()) != {MIXER_OF[kind]}:
        found.append(f"mixer = {config.mixer!r}")
    if config.activation not in ACTIVATIONS.values():
        found.append(f"activation = {config.activation!r}")
    if config.n_token_types == 0:
        found.append("n_token_types = 0")
    return found
