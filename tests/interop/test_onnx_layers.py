"""Converters of single layers, with options that no stock model has, and any padding."""

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.interop.onnx import Graph
from npformer.mixers import MIXERS, MixerSettings
from tests.interop.test_onnx import WHOLE, check_equal, session_of

SETTINGS = {"d_model": 12, "n_heads": 2, "max_len": 10}
DRAWN = {"seed": 0, "dtype": "float32"}
TOKEN_LAYERS = {
    "kernel 1, same": L.Conv1d(12, 5, 1, padding="same", **DRAWN),
    "kernel 1, valid": L.Conv1d(12, 5, 1, padding="valid", **DRAWN),
    "kernel 2, same": L.Conv1d(12, 5, 2, padding="same", bias=False, **DRAWN),
    "kernel 2, valid": L.Conv1d(12, 5, 2, padding="valid", bias=False, **DRAWN),
    "kernel 3, same": L.Conv1d(12, 5, 3, padding="same", **DRAWN),
    "kernel 3, valid": L.Conv1d(12, 5, 3, padding="valid", **DRAWN),
    "kernel 4, same": L.Conv1d(12, 5, 4, padding="same", **DRAWN),
    "kernel 4, valid": L.Conv1d(12, 5, 4, padding="valid", **DRAWN),
    "no bias": L.Linear(12, 5, bias=False, **DRAWN),
    "tied": L.TiedOutput(L.Embedding(7, 12, **DRAWN)),
    "tied, bias": L.TiedOutput(L.Embedding(7, 12, **DRAWN), bias=True),
    "eps": L.LayerNorm(12, 0.5),
    "each token": L.TimeDistributed(L.Sequential(L.Linear(12, 5, **DRAWN), L.GELU("tanh"))),
    "network": L.PositionwiseFeedForward(12, 7, **DRAWN),
}
POOLINGS = {name: L.POOLINGS.make(name, d_model=12, **DRAWN) for name in L.POOLINGS}


def mixer(name, **changes):
    settings = MixerSettings(**SETTINGS | {"padding": "per_length"} | changes)
    return MIXERS[name].build(settings, **DRAWN)


MIXING = {name: mixer(name) for name in MIXERS}
MIXING |= {f"causal {name}": mixer(name, causal=True) for name in MIXERS if name not in WHOLE}
MIXING |= {f"{name}, zero": mixer(name, padding="zero") for name in WHOLE}


def check_alone(layer, x, mask, path):
    rng = np.random.default_rng(0)
    for _, parameter in layer.named_parameters().items():
        parameter.value[...] += 0.1 * rng.normal(size=parameter.shape)
    expected, _ = layer.forward(x, nf.Context(mask=mask))
    names = {parameter: name for name, parameter in layer.named_parameters().items()}
    graph = Graph(names, SETTINGS["max_len"], SETTINGS["d_model"])
    value = graph.input("x", "float32", [*[None] * (x.ndim - 1), 12])
    graph.mask = None if mask is None else graph.input("mask", "bool", ["batch", "length"])
    graph.length = graph.node("Shape", value, start=1, end=2)
    graph.output("y", graph.apply(layer, value), [None] * expected.ndim)
    path.write_bytes(graph.model({}).SerializeToString())
    (y,) = session_of(path).run(None, {"x": x} if mask is None else {"x": x, "mask": mask})
    check_equal(y, expected, mask if expected.ndim == 3 else None)
    if mask is not None and expected.ndim == 3 and not expected[~mask].any():
        assert not y[~mask].any()  # what a layer leaves at padding is 0 in both


@pytest.mark.parametrize("length", [4, 9])
@pytest.mark.parametrize("name", TOKEN_LAYERS)
def test_layers_of_tokens(name, length, tmp_path):
    x = np.random.default_rng(1).normal(size=(3, length, 12)).astype("float32")
    check_alone(TOKEN_LAYERS[name], x, None, tmp_path / "layer.onnx")


@pytest.mark.parametrize("name", [*MIXING, *POOLINGS])
def test_values_at_padding_have_no_effect(name, tmp_path):
    layer = (MIXING | POOLINGS)[name]
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 9, 12)).astype("float32")
    check_alone(layer, x, None, tmp_path / "all.onnx")
    masks = [np.arange(9) < np.array([[9], [5], [1]])]
    if name not in WHOLE:  # the rest take padding anywhere, also before a token
        masks.append(np.array([[0, 0, 1, 1, 0, 1, 1, 0, 1], [1] * 9, [0] * 8 + [1]], dtype=bool))
    for mask in masks:
        at_padding = np.where(mask[..., None], x, 1e3 * rng.normal(size=x.shape))
        check_alone(layer, at_padding.astype("float32"), mask, tmp_path / "masked.onnx")


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_layer_of_single_tokens_gets_no_mask(pooling, tmp_path):
    rng = np.random.default_rng(1)
    mask = np.arange(4) < np.array([[4], [3], [2]])
    x = rng.normal(size=(3, 4, 2, 12)).astype("float32")
    of_parts = L.TimeDistributed(POOLINGS[pooling])  # tokens of two parts, of which none is padding
    check_alone(of_parts, x, mask, tmp_path / "parts.onnx")
    check_alone(L.Sequential(of_parts, POOLINGS[pooling]), x, mask, tmp_path / "both.onnx")


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_ignores_nan_at_padding(norm, tmp_path):
    config = nf.EncoderConfig(**SETTINGS, d_ff=20, norm=norm)
    x = np.random.default_rng(1).normal(size=(3, 9, 12)).astype("float32")
    mask = np.arange(9) < np.array([[9], [5], [1]])
    x[~mask] = np.nan
    check_alone(nf.Encoder(config, seed=0), x, mask, tmp_path / "encoder.onnx")
