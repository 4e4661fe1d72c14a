"""The families of models that npformer reads and writes; to support another, add an entry here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from npformer.interop.architecture import Architecture, Head

POST_NORM = {
    "norm": "post",
    "ffn": "linear",
    "positions": "learned",
    "scale_embeddings": False,
    "embedding_norm": True,
    "embedding_projection": False,
    "share_layers": False,
    "causal": False,
}
"""Settings of all families."""

EMBEDDING = {
    "embed.tokens": "embeddings.word_embeddings",
    "embed.positions": "embeddings.position_embeddings",
    "embed.types": "embeddings.token_type_embeddings",
    "embed.norm": "embeddings.LayerNorm",
}

BERT = Architecture(
    model_type="bert",
    family="Bert",
    prefix="bert.",
    settings={
        "d_model": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "d_ff": "intermediate_size",
        "max_len": "max_position_embeddings",
        "n_token_types": "type_vocab_size",
        "activation": "hidden_act",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        "norm_eps": "layer_norm_eps",
    },
    fixed=POST_NORM | {"mixer": "attention"},
    defaults={
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
        "pad_token_id": 0,
    },
    embedding=EMBEDDING,
    blocks="encoder.layer",
    block={
        "mixer.query": "attention.self.query",
        "mixer.key": "attention.self.key",
        "mixer.value": "attention.self.value",
        "mixer.output": "attention.output.dense",
        "mixer_norm": "attention.output.LayerNorm",
        "feed_forward.expand": "intermediate.dense",
        "feed_forward.contract": "output.dense",
        "feed_forward_norm": "output.LayerNorm",
    },
    pooler="pooler.dense",
    heads=(
        Head("SequenceClassification", "pooler", {"classify": "classifier"}),
        Head("TokenClassification", "none", {"classify": "classifier"}),
    ),
)
"""Devlin et al., 2019, arXiv 1810.04805; MiniLM and most sentence encoders have its layout, too."""

ROBERTA = replace(
    BERT,
    model_type="roberta",
    family="Roberta",
    prefix="roberta.",
    defaults={**BERT.defaults, "pad_token_id": 1},
    heads=(
        Head(
            "SequenceClassification",
            "pooler",
            {"pool.dense": "classifier.dense", "classify": "classifier.out_proj"},
        ),
        Head("TokenClassification", "none", {"classify": "classifier"}),
    ),
    token_types=False,
    positions_after_padding=True,
)
"""Liu et al., 2019, arXiv 1907.11692."""

XLM_ROBERTA = replace(ROBERTA, model_type="xlm-roberta", family="XLMRoberta")
"""Conneau et al., 2020, arXiv 1911.02116: RoBERTa's layout, in a hundred languages."""

CAMEMBERT = replace(ROBERTA, model_type="camembert", family="Camembert")
"""Martin et al., 2020, arXiv 1911.03894: RoBERTa's layout, in French."""

DISTILBERT = Architecture(
    model_type="distilbert",
    family="DistilBert",
    prefix="distilbert.",
    settings={
        "d_model": "dim",
        "n_layers": "n_layers",
        "n_heads": "n_heads",
        "d_ff": "hidden_dim",
        "max_len": "max_position_embeddings",
        "activation": "activation",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    },
    fixed=POST_NORM | {"mixer": "attention", "n_token_types": 0, "norm_eps": 1e-12},
    defaults={"activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1, "pad_token_id": 0},
    embedding={ours: theirs for ours, theirs in EMBEDDING.items() if ours != "embed.types"},
    blocks="transformer.layer",
    block={
        "mixer.query": "attention.q_lin",
        "mixer.key": "attention.k_lin",
        "mixer.value": "attention.v_lin",
        "mixer.output": "attention.out_lin",
        "mixer_norm": "sa_layer_norm",
        "feed_forward.expand": "ffn.lin1",
        "feed_forward.contract": "ffn.lin2",
        "feed_forward_norm": "output_layer_norm",
    },
    pooler="",
    heads=(
        Head(
            "SequenceClassification",
            "pooler(activation='relu')",
            {"pool.dense": "pre_classifier", "classify": "classifier"},
        ),
        Head("TokenClassification", "none", {"classify": "classifier"}),
    ),
    token_types=False,
)
"""Sanh et al., 2019, arXiv 1910.01108: BERT without token types and pooler, and half as deep."""

FNET = replace(
    BERT,
    model_type="fnet",
    family="FNet",
    prefix="fnet.",
    settings={
        ours: theirs
        for ours, theirs in BERT.settings.items()
        if ours not in ("n_heads", "attention_dropout")
    },
    fixed=POST_NORM | {"mixer": "fourier", "embedding_projection": True},
    unused={"n_heads": 1},
    defaults={
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.1,
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 4,
        "pad_token_id": 3,
    },
    embedding=EMBEDDING | {"embed.projection": "embeddings.projection"},
    block={
        "mixer_norm": "fourier.output.LayerNorm",
        **{ours: theirs for ours, theirs in BERT.block.items() if ours.startswith("feed_forward")},
    },
)
"""Lee-Thorp et al., 2021, arXiv 2105.03824."""

ARCHITECTURES = {
    each.model_type: each for each in (BERT, DISTILBERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, FNET)
}


def architecture_of(hf_config: Mapping[str, Any], where: str = "hf_config") -> Architecture:
    """Return the family of a configuration; errors name `where` it comes from."""
    kind = hf_config.get("model_type")
    if isinstance(kind, str) and kind in ARCHITECTURES:
        return ARCHITECTURES[kind]
    raise ValueError(
        f"{where} has the model_type {kind!r}, which npformer does not have; expected one of "
        f"{', '.join(ARCHITECTURES)}. MiniLM and most sentence encoders have the type bert"
    )
