"""GPT-2's folders: a `LanguageModel`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from npformer.core import checks, initializers, to_numpy
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
from npformer.training.trainable import LanguageModel


class GPT2(Family):
    """GPT-2 (Radford et al., 2019): pre-norm, learned positions, GELU's tanh form."""

    model_type, class_name = "gpt2", "GPT2LMHeadModel"
    settings: ClassVar[dict[str, str]] = {
        "d_model": "n_embd",
        "n_layers": "n_layer",
        "n_heads": "n_head",
        "max_len": "n_positions",
        "norm_eps": "layer_norm_epsilon",
        "dropout": "resid_pdrop",
        "attention_dropout": "attn_pdrop",
    }
    fixed: ClassVar[dict[str, Any]] = {
        "norm": "pre",
        "positions": "learned",
        "scale_embeddings": False,
        "mixer": "attention",
        "ffn": "linear",
        "causal": True,
    }
    only: ClassVar[dict[str, Any]] = {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
        "pruned_heads": {},
    }

    def named(self, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the weights under the names of the model with its head."""
        found = {name: array for name, array in state.items() if not name.endswith("masked_bias")}
        if "wte.weight" in found:
            found = {f"transformer.{name}": array for name, array in found.items()}
        return found

    def model(
        self, config: Mapping[str, Any], state: Mapping[str, Any], dtype: str
    ) -> LanguageModel:
        """Return a model of these sizes, its weights not drawn yet."""
        check_only(config, self.only)
        ours = of_settings(config, self.settings)
        inner = config.get("n_inner")
        ours["d_ff"] = 4 * ours["d_model"] if inner is None else checks.positive("n_inner", inner)
        ours["activation"] = activation_of(config, "activation_function")
        tied = bool(config.get("tie_word_embeddings", True))
        vocab_size = checks.positive("vocab_size", config.get("vocab_size"))
        made = EncoderConfig(**(ours | self.fixed))
        return LanguageModel(made, vocab_size, tied=tied, seed=initializers.undrawn(), dtype=dtype)

    def places(self, model: LanguageModel) -> Iterator[Place]:
        """Yield where each parameter lies."""
        yield Place("embed.tokens.weight", "transformer.wte.weight")
        yield Place("embed.positions.table", "transformer.wpe.weight")
        for i in range(model.config.n_layers):
            ours, theirs = f"encoder.blocks.{i}", f"transformer.h.{i}"
            yield from norm(f"{ours}.mixer_norm", f"{theirs}.ln_1")
            for part, name in enumerate(("query", "key", "value")):
                for kind in ("weight", "bias"):
                    place = f"{theirs}.attn.c_attn.{kind}"
                    yield Place(f"{ours}.mixer.{name}.{kind}", place, part=part)
            yield from pair_of(f"{ours}.mixer.output", f"{theirs}.attn.c_proj", turned=False)
            yield from norm(f"{ours}.feed_forward_norm", f"{theirs}.ln_2")
            yield from pair_of(f"{ours}.feed_forward.expand", f"{theirs}.mlp.c_fc", turned=False)
            yield from pair_of(
                f"{ours}.feed_forward.contract", f"{theirs}.mlp.c_proj", turned=False
            )
        yield from norm("encoder.final_norm", "transformer.ln_f")
        if not model.tied:
            yield Place("output.weight", "lm_head.weight", turned=True)

    def config_of(self, model: LanguageModel) -> dict[str, Any]:
        """Return the content of config.json."""
        config = model.config
        check_fits(self.class_name, config, self.fixed)
        if not model.tied and np.any(to_numpy(model.parameters()["output.bias"])):
            raise ValueError(
                f"transformers' {self.class_name} cannot hold this model: its output has a bias. "
                "npformer.save writes any model"
            )
        written = {theirs: getattr(config, ours) for ours, theirs in self.settings.items()}
        return {
            "model_type": self.model_type,
            **written,
            "embd_pdrop": config.dropout,
            "n_inner": None if config.d_ff == 4 * config.d_model else config.d_ff,
            "activation_function": their_activation(self.class_name, config),
            "vocab_size": model.vocab_size,
            "tie_word_embeddings": model.tied,
        }
