import math

import numpy as np
import pytest

import npformer as nf
from npformer.training.inspection.non_finite import first_non_finite


def test_the_input_is_looked_at_first(small_model, rng):
    model = small_model(n_features=2)
    x = rng.normal(size=(2, 5, 2))
    x[1, 2, 0] = math.inf
    model.parameters()["classify.bias"][0] = math.nan
    assert first_non_finite(model, x) == "the input x"


@pytest.mark.parametrize(
    "name",
    [
        "embed.tokens.weight",
        "encoder.blocks.1.mixer.key.bias",
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
    ],
)
def test_a_parameter_is_looked_at_before_the_outputs(small_model, ids, name, value):
    model = small_model()
    model.parameters()[name][..., -1] = value
    model.parameters()["classify.bias"][0] = math.nan
    assert first_non_finite(model, ids) == f"parameter {name}"


@pytest.mark.parametrize(
    "share_layers",
    [
        False,
        True,
    ],
)
@pytest.mark.parametrize(
    ("parameter", "culprit"),
    [
        ("encoder.blocks.0.mixer.query.weight", "encoder.blocks.0.mixer.query (Linear)"),
        ("encoder.blocks.0.mixer_norm.gamma", "encoder.blocks.0.mixer_norm (LayerNorm)"),
        ("encoder.blocks.0.feed_forward.expand.weight", "encoder.blocks.0.feed_forward.expand"),
        ("embed.tokens.weight", "embed.tokens (Embedding)"),
        ("classify.weight", "classify (Linear)"),
    ],
)
def test_of_nested_outputs_the_inner_is_named(small_model, ids, share_layers, parameter, culprit):
    model = small_model(share_layers=share_layers)
    model.parameters()[parameter][...] = 1.7e308
    with np.errstate(all="ignore"):
        message = first_non_finite(model, ids)
    assert message.startswith(f"the output of {culprit}")


def test_a_layer_whose_parts_are_finite_is_named_itself(small_model, ids):
    class Overflowing(nf.layers.Sequential):
        def forward(self, x, context):
            y, cache = super().forward(x, context)
            return y * math.inf, cache

    model = small_model()
    inner = nf.layers.Linear(8, 8, seed=0, dtype="float64")
    model.encoder.blocks[1].feed_forward = Overflowing(inner)
    with np.errstate(all="ignore"):
        message = first_non_finite(model, ids)
    assert message == "the output of encoder.blocks.1.feed_forward (Overflowing)"
