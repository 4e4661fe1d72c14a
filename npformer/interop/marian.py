"""Marian's folders: an `EncoderDecoder`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from npformer.core import checks, initializers
from npformer.interop.family import (
    Family,
    Place,
    activation_of,
    check_fits,
    check_only,
    norm,
    of_settings,
    pair_of,
    their_activation,
)
from npformer.models import EncoderConfig
from npformer.training.trainable import EncoderDecoder


class Marian(Family):
    """Marian (Junczys-Dowmunt et al., 2018): post-norm, sinusoids in halves, one table."""

    model_type, class_name = "marian", "MarianMTModel"
    settings: ClassVar[dict[str, str]] = {
        "d_model": "d_model",
        "max_len": "max_position_embeddings",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "ffn_dropout": "activation_dropout",
    }
    of_side: ClassVar[dict[str, str]] = {
        "n_layers": "layers",
        "n_heads": "attention_heads",
        "d_ff": "ffn_dim",
    }
    fixed: ClassVar[dict[str, Any]] = {
        "norm": "post",
        "positions": "sinusoidal_halves",
        "mixer": "attention",
        "ffn": "linear",
        "norm_eps": 1e-5,
    }
    only: ClassVar[dict[str, Any]] = {
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
    }

    def model(
        self, config: Mapping[str, Any], state: Mapping[str, Any], dtype: str
    ) -> EncoderDecoder:
        """Return a model of these sizes, its weights not drawn yet."""
        check_only(config, self.only)
        common = of_settings(config, self.settings) | self.fixed
        common["scale_embeddings"] = bool(config.get("scale_embedding", False))
        common["activation"] = activation_of(config, "activation_function")
        sides = {}
        for side in ("encoder", "decoder"):
            theirs = {ours: f"{side}_{name}" for ours, name in self.of_side.items()}
            sides[side] = EncoderConfig(
                **common, **of_settings(config, theirs), causal=side == "decoder"
            )
        size = checks.positive("vocab_size", config.get("vocab_size"))
        ids = {
            ours: checks.whole(theirs, config.get(theirs), at_least=0, at_most=size - 1)
            for ours, theirs in (
                ("padding_id", "pad_token_id"),
                ("begin_id", "decoder_start_token_id"),
                ("end_id", "eos_token_id"),
            )
        }
        made: dict[str, Any] = {"tied": True, "output_bias": True, **ids, "dtype": dtype}
        made["seed"] = initializers.undrawn()
        return EncoderDecoder(sides["encoder"], size, size, decoder=sides["decoder"], **made)

    def places(self, model: EncoderDecoder) -> Iterator[Place]:
        """Yield where each parameter lies. Sinusoids are not in the file."""
        yield Place("source.tokens.weight", "model.shared.weight")
        yield Place("output.bias", "final_logits_bias")
        for side, config in (("encoder", model.config), ("decoder", model.decoder_config)):
            for i in range(config.n_layers):
                ours, theirs = f"{side}.blocks.{i}", f"model.{side}.layers.{i}"
                parts = {"mixer": "self_attn", "cross_attention": "encoder_attn"}
                for own, their_own in [*parts.items()][: 1 if side == "encoder" else 2]:
                    for name in ("query", "key", "value", "output"):
                        short = "out" if name == "output" else name[0]
                        place = f"{theirs}.{their_own}.{short}_proj"
                        yield from pair_of(f"{ours}.{own}.{name}", place, turned=True)
                    yield from norm(f"{ours}.{own}_norm", f"{theirs}.{their_own}_layer_norm")
                yield from pair_of(f"{ours}.feed_forward.expand", f"{theirs}.fc1", turned=True)
                yield from pair_of(f"{ours}.feed_forward.contract", f"{theirs}.fc2", turned=True)
                yield from norm(f"{ours}.feed_forward_norm", f"{theirs}.final_layer_norm")

    def written(self, model: EncoderDecoder) -> dict[str, np.ndarray]:
        """Return the weights; their bias of the logits has shape (1, vocab_size)."""
        found = super().written(model)
        return found | {"final_logits_bias": found["final_logits_bias"][None]}

    def config_of(self, model: EncoderDecoder) -> dict[str, Any]:
        """Return the content of config.json."""
        one, other = model.config, model.decoder_config
        check_fits(self.class_name, one, self.fixed)
        check_fits(self.class_name, other, self.fixed)
        same = (*self.settings, "activation", "scale_embeddings")
        differing = [name for name in same if getattr(one, name) != getattr(other, name)]
        if differing or not (model.tied and model.output_bias):
            raise ValueError(
                f"transformers' {self.class_name} cannot hold this model: "
                f"{differing[0] if differing else 'tied or output_bias'} "
                f"{'differs between sides' if differing else 'is False'}. npformer.save writes any "
                "model"
            )
        written = {theirs: getattr(one, ours) for ours, theirs in self.settings.items()}
        for side, config in (("encoder", one), ("decoder", other)):
            written |= {
                f"{side}_{theirs}": getattr(config, ours) for ours, theirs in self.of_side.items()
            }
        return {
            "model_type": self.model_type,
            **written,
            "activation_function": their_activation(self.class_name, one),
            "scale_embedding": one.scale_embeddings,
            "vocab_size": model.source_vocab,
            "decoder_vocab_size": model.target_vocab,
            "pad_token_id": model.padding_id,
            "decoder_start_token_id": model.begin_id,
            "eos_token_id": model.end_id,
            "forced_eos_token_id": model.end_id,
            "is_encoder_decoder": True,
            "share_encoder_decoder_embeddings": True,
            "tie_word_embeddings": True,
        }
