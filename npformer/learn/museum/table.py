"""The table of all bugs, in the order of their numbers."""

from collections.abc import Callable
from typing import Any

from npformer import functional as F
from npformer.core.state import State
from npformer.layers import (
    GELU,
    CrossAttention,
    Dropout,
    LayerNorm,
    Positions,
    Sequential,
    Tanh,
)
from npformer.learn.museum import files, layers, mixers, models, optim, writers
from npformer.learn.museum.bug import Bug, Source
from npformer.learn.museum.mixers import RIGHT, AttentionBy, Pair
from npformer.learn.museum.probes import KEPT, N_HEADS, TOKENS, WIDTH, small
from npformer.learn.museum.referee import RefereeThatSkipsNan
from npformer.mixers import Attention, Fourier
from npformer.models import Encoder, EncoderBlock
from npformer.optim import Adam
from npformer.proof.cases.case import SEEDED, draw
from npformer.proof.gradcheck import GradcheckReport
from npformer.tasks.estimators.text_writer import windows
from npformer.training.storage.models import save

GRADIENT = "differences", "complex step"


def _layer_norm(kind: Callable[..., LayerNorm]) -> LayerNorm:
    norm = kind(WIDTH, dtype="float64")
    norm.gamma.value[...] = 1.5 + draw(WIDTH)  # away from 1
    return norm


def _twice(kind: Callable[..., Dropout]) -> Sequential:
    shared = kind(0.5)
    return Sequential(shared, Tanh(), shared)


BUILDERS: dict[type, Callable[[Any], Any]] = {
    LayerNorm: _layer_norm,
    Dropout: lambda kind: kind(0.5),
    GELU: lambda kind: kind(),
    Attention: lambda kind: kind(WIDTH, N_HEADS, **SEEDED),
    Fourier: lambda kind: kind(padding="refuse"),
    EncoderBlock: lambda kind: kind(small(), **SEEDED),
    Encoder: lambda kind: kind(small(), **SEEDED),
}
"""Class of layers -> how one is built, of that class or of a wrong subclass."""


def _layer(
    number: int,
    wrong: type,
    *caught_by: str,
    build: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Bug:
    """Return the row of a wrong layer; the right class is the one that it derives from."""
    right = wrong.__bases__[0]
    of = f"{right.__module__.split('.')[1]}.{right.__name__}"
    made = build or BUILDERS[right]
    more["inputs"] = (TOKENS,)
    return Bug(number, wrong, of, lambda: made(wrong), lambda: made(right), caught_by, **more)


def _attention(number: int, wrong: Any, *caught_by: str, causal: bool = False, **more: Any) -> Bug:
    """Return the row of a pair that a layer uses for its attention."""
    settings = {**SEEDED, "causal": causal}
    return Bug(
        number,
        wrong,
        "functional.scaled_dot_product_attention",
        lambda: AttentionBy(WIDTH, N_HEADS, attend=_pair_of(wrong), **settings),
        lambda: Attention(WIDTH, N_HEADS, **settings),
        caught_by,
        inputs=(TOKENS,),
        config={"causal": causal},
        **more,
    )


def _pair(
    number: int, wrong: Any, of: str, right: Pair, inputs: tuple[Any, ...], *caught_by: str
) -> Bug:
    """Return the row of a pair of functions."""
    pair = _pair_of(wrong, right)
    return Bug(number, wrong, of, lambda: pair, lambda: right, caught_by, inputs)


def _plain(number: int, wrong: Any, of: str, right: Any, *caught_by: str, **more: Any) -> Bug:
    """Return the row of a class or function that is used as it is."""
    return Bug(number, wrong, of, lambda: wrong, lambda: right, caught_by, **more)


def _source(number: int, wrong: type[Source], *caught_by: str) -> Bug:
    """Return the row of a source file."""
    path, text, right = wrong.path, wrong.text, wrong.right
    return Bug(number, wrong, path, lambda: {path: text}, lambda: {path: right}, caught_by)


def _pair_of(forward: Any, right: Pair = RIGHT) -> Pair:
    """Return a wrong forward function with its own backward pass, or with the right one."""
    return forward, getattr(mixers, f"{forward.__name__}_backward", right[1])


SOFTMAX = "functional.softmax", (F.softmax, F.softmax_backward), (draw(2, 3, 4),)
QKV = draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)
ATTENTION = "functional.scaled_dot_product_attention", RIGHT, QKV
ADAM = "optim.Adam", Adam

ROWS = (
    _pair(1, mixers.softmax_divided_by_the_batch, *SOFTMAX, *GRADIENT, "gradient_of_softmax"),
    _layer(
        2,
        layers.DropoutThatRemembers,
        *GRADIENT,
        "gradient_of_one_dropout_used_twice",
        build=_twice,
        options={"training": True},
    ),
    _layer(3, layers.DropoutThatScalesAtEvaluation, "dropout_does_nothing_at_evaluation"),
    _layer(4, layers.LayerNormWithoutGamma, *GRADIENT, "gradient_of_layer_norm"),
    _plain(5, optim.AdamWithTheLayersNumber, *ADAM, "adams_first_step_has_size_lr"),
    _plain(5, optim.AdamThatCountsTensors, *ADAM, "adam_counts_steps_and_not_tensors"),
    _plain(6, optim.AdamWithOneBeta, *ADAM, "adams_first_step_has_size_lr"),
    _pair(
        7, mixers.attention_that_asks_the_keys, *ATTENTION, *GRADIENT, "queries_ask_and_keys_answer"
    ),
    _layer(8, layers.LayerNormWithoutEpsilon, "a_constant_row_is_finite", config={"norm": "pre"}),
    _layer(9, layers.DropoutWithoutAReturn, "protocol", "gradient_of_dropout_at_evaluation"),
    _attention(
        10, mixers.attention_over_an_axis_of_length_1, *GRADIENT, "attention_averages_over_the_keys"
    ),
    _layer(10, layers.GELUThatIgnoresItsOption, "gelu_is_the_one_that_was_asked_for"),
    _layer(11, layers.GELUWithAPower, "no_power_of_an_array", build=lambda kind: kind("tanh")),
    _layer(12, layers.LayerNormInOnePass, "a_large_mean_costs_no_digits", config={"norm": "pre"}),
    _source(13, files.GradientTestWithAWideTolerance, "gradients_are_checked_in_earnest"),
    _source(13, files.GradientTestThatIsSkipped, "gradients_are_checked_in_earnest"),
    _layer(
        14,
        mixers.FourierThatIgnoresTheMask,
        "padding_is_never_mixed_in_silence",
        "padding_changes_no_kept_token",
    ),
    _layer(14, mixers.FourierWithACorner, "fourier_mixing_is_the_transform_of_its_own_length"),
    _source(15, files.BareExcept, "no_bare_except", "cupy_is_imported_in_one_place"),
    _source(15, files.CupyInEveryFile, "cupy_is_imported_in_one_place"),
    _plain(
        15,
        files.save_by_pickle,
        "training.storage.models.save",
        save,
        "weights_open_without_running_code",
    ),
    _pair(
        16, mixers.softmax_that_guesses_its_axis, *SOFTMAX, "softmax_sums_to_1_over_the_last_axis"
    ),
    _layer(17, models.BlockWithOneNorm, "a_block_owns_two_norms"),
    _layer(17, models.EncoderOfOneBlock, "layers_are_tied_only_when_asked"),
    _layer(17, models.BlockWithOneResidual, *GRADIENT, "each_residual_adds_its_own_input"),
    _plain(
        18,
        RefereeThatSkipsNan,
        "proof.gradcheck.GradcheckReport",
        GradcheckReport,
        "a_referee_passes_no_nan",
    ),
    _attention(
        19, mixers.attention_that_looks_ahead, "causal_attention_does_not_look_ahead", causal=True
    ),
    _layer(
        20,
        mixers.AttentionThatMergesByReshape,
        *GRADIENT,
        "attention_without_positions_knows_no_order",
    ),
    _attention(
        21,
        mixers.attention_with_the_mask_turned_round,
        *GRADIENT,
        "padding_changes_no_kept_token",
        options={"mask": KEPT},
    ),
    _plain(
        22,
        writers.AttentionThatForgetsItIsCausal,
        "mixers.Attention",
        Attention,
        "a_causal_mixer_sees_no_later_token",
    ),
    _plain(
        23,
        writers.windows_that_are_not_shifted,
        "tasks.estimators.text_writer.windows",
        windows,
        "each_label_is_the_next_token",
    ),
    _plain(
        24,
        writers.PositionsThatStartAgain,
        "layers.Positions",
        Positions,
        "positions_go_on_behind_a_cache",
    ),
    _plain(
        24,
        writers.attention_with_the_mask_at_the_wrong_end,
        "functional.scaled_dot_product_attention",
        F.scaled_dot_product_attention,
        "a_query_behind_a_cache_sees_all_of_it",
    ),
    _plain(
        24, writers.StateThatKeepsItsRows, "core.state.State", State, "a_state_follows_its_beams"
    ),
    _plain(
        25,
        writers.CrossAttentionThatReadsPadding,
        "layers.CrossAttention",
        CrossAttention,
        "padding_of_a_memory_changes_nothing",
    ),
)

BUGS: dict[str, Bug] = {bug.name: bug for bug in ROWS}
"""All bugs, by the name of the wrong class or function."""
