"""The table of all bugs, in the order of their numbers."""

from __future__ import annotations

from npformer.layers import GELU, Dropout, LayerNorm
from npformer.mixers import Attention, Fourier
from npformer.models import Encoder, EncoderBlock
from npformer.museum import attention, costs, dropout, files, layer_norm, optim, places
from npformer.museum.activations import GELUThatIgnoresItsOption, GELUWithAPower
from npformer.museum.attention import AttentionThatMergesByReshape
from npformer.museum.block import BlockWithOneNorm, BlockWithOneResidual, EncoderOfOneBlock
from npformer.museum.bug import Bug
from npformer.museum.fourier import FourierThatIgnoresTheMask, FourierWithACorner
from npformer.museum.probes import KEPT, draw
from npformer.museum.referee import RefereeThatSkipsNan
from npformer.museum.rows import (
    a_block,
    a_dropout,
    a_dropout_twice,
    a_norm,
    an_attention,
    an_encoder,
    of_adam,
    of_attention,
    of_layer,
    of_softmax,
    of_source,
    pair_of,
)
from npformer.proof.gradcheck import GradcheckReport
from npformer.training.checkpoint import save

SEEN = tuple(range(1, 18))
"""Numbers of the bugs that were seen in published NumPy transformers and in texts about them."""

BY_NUMBERS = "differences", "complex step"

ROWS = (
    of_softmax(
        1,
        attention.softmax_divided_by_the_batch,
        *BY_NUMBERS,
        "gradient_of_softmax",
        inputs=(draw(2, 4),),
        measure=costs.gradient_error,
    ),
    of_layer(
        2,
        dropout.DropoutThatRemembers,
        Dropout,
        a_dropout_twice,
        *BY_NUMBERS,
        "gradient_of_one_dropout_used_twice",
        options={"training": True},
        place=places.dropouts,
        measure=costs.gradient_error,
    ),
    of_layer(
        3,
        dropout.DropoutThatScalesAtEvaluation,
        Dropout,
        a_dropout,
        "dropout_does_nothing_at_evaluation",
        place=places.dropout,
        measure=costs.in_the_output,
    ),
    of_layer(
        4,
        layer_norm.LayerNormWithoutGamma,
        LayerNorm,
        a_norm,
        *BY_NUMBERS,
        "gradient_of_layer_norm",
        place=places.norm,
        measure=costs.gradient_error,
    ),
    of_adam(
        5,
        optim.AdamWithTheLayersNumber,
        "adams_first_step_has_size_lr",
        costs.in_adams_first_step,
    ),
    of_adam(
        5,
        optim.AdamThatCountsTensors,
        "adam_counts_steps_and_not_tensors",
        costs.in_the_warm_up,
    ),
    of_adam(6, optim.AdamWithOneBeta, "adams_first_step_has_size_lr", costs.in_adams_first_step),
    Bug(
        7,
        attention.attention_that_asks_the_keys,
        "functional.scaled_dot_product_attention",
        build=lambda: pair_of(attention.attention_that_asks_the_keys),
        right=lambda: attention.RIGHT,
        caught_by=(*BY_NUMBERS, "queries_ask_and_keys_answer"),
        inputs=(draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)),
        place=places.attention,
        measure=costs.in_the_output,
    ),
    of_layer(
        8,
        layer_norm.LayerNormWithoutEpsilon,
        LayerNorm,
        a_norm,
        "a_constant_row_is_finite",
        config={"norm": "pre"},
        place=places.norm,
        measure=costs.in_gradients_of_a_constant_row,
    ),
    of_layer(
        9,
        dropout.DropoutWithoutAReturn,
        Dropout,
        a_dropout,
        "protocol",
        "gradient_of_dropout_at_evaluation",
        place=places.before_the_encoder,
    ),
    of_attention(
        10,
        attention.attention_over_an_axis_of_length_1,
        *BY_NUMBERS,
        "attention_averages_over_the_keys",
    ),
    of_layer(
        10,
        GELUThatIgnoresItsOption,
        GELU,
        lambda kind: kind("none"),
        "gelu_is_the_one_that_was_asked_for",
        place=places.activation,
        measure=costs.in_an_activation,
    ),
    of_layer(
        11,
        GELUWithAPower,
        GELU,
        lambda kind: kind("tanh"),
        "no_power_of_an_array",
        place=places.activation,
    ),
    of_layer(
        12,
        layer_norm.LayerNormInOnePass,
        LayerNorm,
        a_norm,
        "a_large_mean_costs_no_digits",
        config={"norm": "pre"},
        place=places.norm,
        measure=costs.in_variances,
    ),
    of_source(13, files.GradientTestWithAWideTolerance, "gradients_are_checked_in_earnest"),
    of_source(13, files.GradientTestThatIsSkipped, "gradients_are_checked_in_earnest"),
    of_layer(
        14,
        FourierThatIgnoresTheMask,
        Fourier,
        lambda kind: kind(padding="refuse"),
        "padding_is_never_mixed_in_silence",
        "padding_changes_no_kept_token",
        place=places.mixer,
        measure=costs.in_padded_tokens,
    ),
    of_layer(
        14,
        FourierWithACorner,
        Fourier,
        lambda kind: kind(padding="refuse"),
        "fourier_mixing_is_the_transform_of_its_own_length",
        place=places.mixer,
        measure=costs.in_the_output,
    ),
    of_source(15, files.BareExcept, "no_bare_except", "cupy_is_imported_in_one_place"),
    of_source(15, files.CupyInEveryFile, "cupy_is_imported_in_one_place"),
    Bug(
        15,
        files.save_by_pickle,
        "training.checkpoint.save",
        build=lambda: files.save_by_pickle,
        right=lambda: save,
        caught_by=("weights_open_without_running_code",),
    ),
    of_softmax(
        16,
        attention.softmax_that_guesses_its_axis,
        "softmax_sums_to_1_over_the_last_axis",
        inputs=(draw(2, 3, 4),),
        measure=costs.in_the_output,
    ),
    of_layer(
        17,
        BlockWithOneNorm,
        EncoderBlock,
        a_block,
        "a_block_owns_two_norms",
        place=places.block,
        measure=costs.in_the_number_of_parameters,
    ),
    of_layer(
        17,
        EncoderOfOneBlock,
        Encoder,
        an_encoder,
        "layers_are_tied_only_when_asked",
        place=places.encoder,
        measure=costs.in_the_number_of_parameters,
    ),
    of_layer(
        17,
        BlockWithOneResidual,
        EncoderBlock,
        a_block,
        *BY_NUMBERS,
        "each_residual_adds_its_own_input",
        place=places.block,
        measure=costs.in_the_output,
    ),
    Bug(
        18,
        RefereeThatSkipsNan,
        "proof.gradcheck.GradcheckReport",
        build=lambda: RefereeThatSkipsNan,
        right=lambda: GradcheckReport,
        caught_by=("a_referee_passes_no_nan",),
    ),
    of_attention(
        19,
        attention.attention_that_looks_ahead,
        "causal_attention_does_not_look_ahead",
        causal=True,
    ),
    of_layer(
        20,
        AttentionThatMergesByReshape,
        Attention,
        an_attention,
        *BY_NUMBERS,
        "attention_without_positions_knows_no_order",
        place=places.mixer,
        measure=costs.in_the_output,
    ),
    of_attention(
        21,
        attention.attention_with_the_mask_turned_round,
        *BY_NUMBERS,
        "padding_changes_no_kept_token",
        options={"mask": KEPT},
    ),
)

BUGS: dict[str, Bug] = {bug.name: bug for bug in ROWS}
"""All bugs, by the name of the wrong class or function."""
