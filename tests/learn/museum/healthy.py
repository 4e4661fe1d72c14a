"""For each invariant, everything in npformer that must pass it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer.layers.state import State
from npformer.learn.museum.attention_by import RIGHT, AttentionBy, Pair
from npformer.learn.museum.gradient_tests import SHAPES, check_at_drawn_values
from npformer.learn.museum.probes import N_HEADS, WIDTH, small
from npformer.mixers import (
    MIXERS,
    Attention,
    AveragingMixer,
    BlockwiseAttention,
    GeneralAttention,
    MixerSettings,
)
from npformer.models import EncoderBlock
from npformer.proof.cases.case import SEEDED, draw
from npformer.proof.report import GradcheckReport
from npformer.tasks.estimators.text_writer import windows

CAUSAL = ("attention", "dense_synthesizer", "identity", "gated_convolution", "state_space")
ROOT = Path(__file__).resolve().parents[3]


def mixers(**settings: Any) -> Iterator[nf.Layer]:
    """Yield every mixer that can be built with these settings."""
    chosen = MixerSettings(WIDTH, n_heads=N_HEADS, max_len=8, **settings)
    for name, mixer in MIXERS.items():
        try:
            yield mixer.build(chosen, **SEEDED)
        except ValueError:
            assert chosen.causal, name  # mixers of whole sequences cannot be causal
    yield BlockwiseAttention(WIDTH, N_HEADS, causal=chosen.causal, **SEEDED)
    yield AttentionBy(WIDTH, N_HEADS, causal=chosen.causal, **SEEDED)


def averaging(**settings: Any) -> list[nf.Layer]:
    """Return every averaging mixer."""
    return [mixer for mixer in mixers(**settings) if isinstance(mixer, Attention | AveragingMixer)]


def layer_norms() -> list[nf.Layer]:
    """Return layer norms, alone and in an encoder."""
    return [L.LayerNorm(6, dtype="float64"), nf.Encoder(small(norm="pre"), dtype="float64")]


def blocks() -> list[nf.Layer]:
    """Return a block, and encoders with both placements of the norm."""
    return [
        EncoderBlock(small(), **SEEDED),
        nf.Encoder(small(norm="post"), dtype="float64"),
        nf.Encoder(small(norm="pre"), dtype="float64"),
    ]


def files(*folders: str) -> dict[str, str]:
    """Return every Python file below these folders of the repository: {path: text}."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def with_dropout() -> nf.Encoder:
    """Return an encoder with dropout."""
    return nf.Encoder(small(dropout=0.5), dtype="float64")


def cross_entropy() -> list[Any]:
    """Return softmax cross entropy, alone and with a weight of 1 for each class."""

    def weigh_classes(logits: np.ndarray, labels: np.ndarray) -> tuple[Any, Any]:
        ones = np.ones(logits.shape[-1], logits.dtype)
        return F.softmax_cross_entropy(logits, labels, class_weights=ones)

    backward = F.softmax_cross_entropy_backward
    return [(F.softmax_cross_entropy, backward), (weigh_classes, backward)]


def gradcheck_of_network(pair: Pair) -> None:
    """Check a pair of x, W1 and W2 with gradcheck."""
    nf.gradcheck(pair, *(draw(*shape, seed=seed) for seed, shape in enumerate(SHAPES)))


def averaging_weights(x: np.ndarray) -> tuple[np.ndarray, Any]:
    """`functional.averaging_weights`, also for a single row of scores."""
    weights, cache = F.averaging_weights(x if x.ndim > 1 else x[None])
    return weights.reshape(x.shape), cache


HEALTHY = {
    "gradient_of_softmax": lambda: [(F.softmax, F.softmax_backward)],
    "gradient_of_layer_norm": layer_norms,
    "gradient_of_dropout_at_evaluation": lambda: [L.Dropout(0.5), with_dropout()],
    "gradient_of_one_dropout_used_twice": lambda: [
        L.Sequential(dropout := L.Dropout(0.5), L.Tanh(), dropout)
    ],
    "a_referee_passes_no_nan": lambda: [GradcheckReport],
    "softmax_sums_to_1_over_the_last_axis": lambda: [
        (F.softmax, F.softmax_backward),
        (averaging_weights, F.softmax_backward),
        *averaging(),
    ],
    "attention_averages_over_the_keys": averaging,
    "queries_ask_and_keys_answer": lambda: [
        RIGHT,
        (F.blockwise_attention, F.blockwise_attention_backward),
    ],
    "attention_without_positions_knows_no_order": lambda: [
        MIXERS["attention"].build(MixerSettings(WIDTH, n_heads=N_HEADS), **SEEDED),
        BlockwiseAttention(WIDTH, N_HEADS, **SEEDED),
        AttentionBy(WIDTH, N_HEADS, **SEEDED),
    ],
    "causal_attention_does_not_look_ahead": lambda: averaging(causal=True),
    "padding_changes_no_kept_token": lambda: [*mixers(), *mixers(padding="per_length")],
    "padding_is_never_mixed_in_silence": lambda: [
        nf.Encoder(small(mixer=mixer, n_layers=1), dtype="float64")
        for mixer in ("fourier", "hartley", "linear", "random")
    ],
    "fourier_mixing_is_the_transform_of_its_own_length": lambda: [
        nf.Encoder(small(mixer="fourier"), dtype="float64")
    ],
    "dropout_does_nothing_at_evaluation": lambda: [
        *(L.Dropout(rate) for rate in (0.1, 0.5, 0.9)),
        with_dropout(),
    ],
    "a_constant_row_is_finite": layer_norms,
    "a_large_mean_costs_no_digits": layer_norms,
    "gelu_is_the_one_that_was_asked_for": lambda: [L.GELU(), L.GELU("tanh")],
    "a_block_owns_two_norms": blocks,
    "layers_are_tied_only_when_asked": lambda: [
        nf.Encoder(small(**changes))
        for changes in ({}, {"share_layers": True}, {"norm": "pre"}, {"n_layers": 1})
    ],
    "each_residual_adds_its_own_input": blocks,
    "adams_first_step_has_size_lr": lambda: [nf.Adam],
    "adam_counts_steps_and_not_tensors": lambda: [nf.Adam],
    "weights_open_without_running_code": lambda: [nf.save],
    "no_power_of_an_array": lambda: [
        files("npformer/functional", "npformer/engine"),
        nf.Encoder(small(activation="gelu_tanh")),
    ],
    "no_bare_except": lambda: [files("npformer", "examples")],  # and ruff looks at all others
    "cupy_is_imported_in_one_place": lambda: [files("npformer")],
    "a_causal_mixer_sees_no_later_token": lambda: [
        kind for kind in (MIXERS[name] for name in CAUSAL) if isinstance(kind, type)
    ],
    "each_label_is_the_next_token": lambda: [windows],
    "positions_go_on_behind_a_cache": lambda: [L.Positions],
    "a_query_behind_a_cache_sees_all_of_it": lambda: [
        F.scaled_dot_product_attention,
        F.blockwise_attention,
    ],
    "a_state_follows_its_beams": lambda: [State],
    "only_distances_count_in_rotary_attention": lambda: [GeneralAttention, BlockwiseAttention],
    "a_cache_changes_no_turned_token": lambda: [GeneralAttention, BlockwiseAttention],
    "rotary_pairs_are_halves": lambda: [GeneralAttention, BlockwiseAttention],
    "padding_of_a_memory_changes_nothing": lambda: [L.CrossAttention, L.BlockwiseCrossAttention],
    "gradient_of_a_linear_map": lambda: [L.Linear(3, 5, **SEEDED), nf.Encoder(small(), **SEEDED)],
    "gradient_of_an_activation": lambda: [L.GELU(), L.GELU("tanh")],
    "gradient_of_attention": averaging,
    "gradient_of_a_block": blocks,
    "dropout_keeps_the_mean": lambda: [L.Dropout(0.5), with_dropout()],
    "a_norm_is_of_one_token": layer_norms,
    "scores_have_variance_1": lambda: [
        BlockwiseAttention(WIDTH, N_HEADS, **SEEDED),
        *(Attention(WIDTH, n_heads, **SEEDED) for n_heads in (1, 2, 4)),
    ],
    "gradient_of_cross_entropy": cross_entropy,
    "a_gradient_is_p_minus_target": cross_entropy,
    "a_loss_and_its_gradient_share_a_count": cross_entropy,
    "a_sure_mistake_costs_what_its_logits_differ_by": cross_entropy,
    "gradient_of_an_embedding": lambda: [(F.embedding, F.embedding_backward)],
    "gradient_of_a_table_used_twice": lambda: [
        L.Sequential(table := L.Embedding(5, WIDTH, **SEEDED), L.TiedOutput(table, bias=True))
    ],
    "each_step_of_adam_is_lr_long": lambda: [nf.Adam],
    "a_missing_gradient_is_refused": lambda: [nf.Adam, nf.SGD],
    "a_test_fails_where_a_gradient_is_wrong": lambda: [check_at_drawn_values, gradcheck_of_network],
    "gradients_are_checked_in_earnest": lambda: [files("tests", "examples", "npformer")],
}
"""Name of an invariant -> () -> things that must pass it."""
