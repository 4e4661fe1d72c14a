"""Every layer and mixer that has options, in PyTorch, forward only: a formula of all options."""

from types import SimpleNamespace

import numpy as np

from npformer import layers, mixers

from . import formulas
from .helpers import torch

Given = SimpleNamespace
"""`p`: parameters by name; `o`: all options; `generator` of dropout; `mask`, `memory_mask` and
`types` of the context."""


def linear(given, x, name=""):
    """Return x W + b, also of a convolution with kernel size 1, or x W if there is no b."""
    prefix = f"{name}." if name else ""
    weight = given.p[f"{prefix}weight"]
    bias = given.p.get(f"{prefix}bias")
    y = x @ weight.reshape(weight.shape[-2:])
    return y if bias is None else y + bias


def activation_of(given):
    return getattr(torch.nn.functional, given.o["activation"])


def feed_forward(given, x):
    hidden = activation_of(given)(linear(given, x, "expand"))
    return linear(given, dropped(given, hidden, "dropout"), "contract")


def gated_feed_forward(given, x):
    hidden = activation_of(given)(linear(given, x, "gate")) * linear(given, x, "up")
    return linear(given, dropped(given, hidden, "dropout"), "down")


def dropped(given, x, rate):
    return formulas.dropout(x, given.o[rate], given.generator if given.o[rate] else None)


def layer_norm(given, x):
    gamma = given.p["gamma"]
    beta = given.p.get("beta")
    return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, given.o["eps"])


def rms_norm(given, x):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], given.p["gamma"], given.o["eps"])


def embedding(given, ids):
    rows = given.p["weight"][torch.tensor(ids)]
    return rows * rows.shape[-1] ** 0.5 if given.o["scale"] else rows


def positions(given, x):
    length, d = x.shape[1:]
    if given.o["kind"] == "learned":
        return x + given.p["table"][:length]
    rates = 10000.0 ** (-2.0 * torch.arange(d // 2, dtype=torch.float64) / d)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    waves = [torch.sin(angles), torch.cos(angles)]
    if given.o["kind"] == "sinusoidal_halves":
        return x + torch.cat(waves, dim=-1)
    return x + torch.stack(waves, dim=-1).flatten(-2)


def pooler(given, x):
    if given.o["of"] == "mean":
        x = formulas.mean_pooling(x, given.mask)
    elif given.o["of"] == "none":
        x = without_padding(given, x)
    else:
        x = x[torch.arange(len(x)), torch.tensor(given.mask.argmax(axis=1))]
    y = activation_of(given)(linear(given, x, "dense"))
    if not given.o["norm"]:
        return y
    gamma = given.p["norm.gamma"]
    beta = given.p.get("norm.beta")
    return torch.nn.functional.layer_norm(y, gamma.shape, gamma, beta)


def tied_output(given, x):
    return torch.nn.functional.linear(x, given.p["weight"], given.p.get("bias"))


def by_head(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merged(heads):
    return heads.transpose(1, 2).flatten(-2)


def averaged(given, scores, value, mask, window=None):
    """Return the output of a mixer that averages values with softmax(scores)."""
    rate = given.o.get("attention_dropout", 0.0)
    heads = formulas.average(
        scores,
        value,
        mask=mask[:, None, None, :],
        causal=given.o.get("causal", False),
        rate=rate,
        generator=given.generator if rate else None,
        window=window,
    )
    return linear(given, merged(heads), "output")


def attention(given, x):
    """Attention with all that later papers added; what is not among the options is not set."""
    o = {"rope_theta": None, "n_kv_heads": None, "window": None, "qk_norm": False, **given.o}
    n_kv_heads = o["n_kv_heads"] or o["n_heads"]
    query = by_head(linear(given, x, "query"), o["n_heads"])
    key, value = (by_head(linear(given, x, name), n_kv_heads) for name in ("key", "value"))
    if o["qk_norm"]:
        gammas = given.p["query_norm.gamma"], given.p["key_norm.gamma"]
        query, key = (
            torch.nn.functional.rms_norm(heads, gamma.shape, gamma, o["norm_eps"])
            for heads, gamma in zip((query, key), gammas, strict=True)
        )
    if o["rope_theta"]:
        at = np.arange(x.shape[1])
        query, key = (formulas.rotary(heads, at, o["rope_theta"]) for heads in (query, key))
    shared = o["n_heads"] // n_kv_heads
    key, value = (heads.repeat_interleave(shared, dim=1) for heads in (key, value))
    scores = formulas.attention_scores(query, key)
    return averaged(given, scores, value, given.mask, o["window"])


def cross_attention(given, x, memory):
    n_heads = given.o["n_heads"]
    query = by_head(linear(given, x, "query"), n_heads)
    key, value = (by_head(linear(given, memory, name), n_heads) for name in ("key", "value"))
    return averaged(given, formulas.attention_scores(query, key), value, given.memory_mask)


def synthesizer(formula, *names):
    def mixer(given, x):
        value = by_head(linear(given, x, "value"), given.o["n_heads"])
        tokens = (x,) if "W1" in names else ()
        scores = formula(*tokens, *(given.p[name] for name in names), x.shape[1])
        return averaged(given, scores, value, given.mask)

    return mixer


def whole_sequences(mix):
    def mixer(given, x):
        if given.o["padding"] == "refuse":
            return mix(given, x)
        is_token = torch.tensor(given.mask)[..., None]
        if given.o["padding"] == "zero":
            return mix(given, torch.where(is_token, x, 0.0))
        y = torch.zeros_like(x)
        rows = []
        for row, sequence, n in zip(y, x, given.mask.sum(axis=1), strict=True):
            rows.append(torch.cat([mix(given, sequence[None, :n])[0], row[n:]]))
        return torch.stack(rows)

    return mixer


def linear_mixing(given, x):
    return formulas.linear_mixing(x, given.p["W_sequence"], given.p["W_features"])


def without_padding(given, x):
    return torch.where(torch.tensor(given.mask)[..., None], x, 0.0)


def state_space(given, x):
    x = without_padding(given, x)
    p = (given.p[name] for name in ("log_step", "log_decay", "frequency", "C"))
    kernel = formulas.state_space_kernel(*p, x.shape[1])
    s = formulas.causal_convolution(x, kernel) + given.p["skip"] * x
    return without_padding(given, linear(given, torch.nn.functional.gelu(s), "output"))


def gated_convolution(given, x):
    inner = without_padding(given, linear(given, without_padding(given, x), "inner"))
    near = formulas.causal_convolution(inner, given.p["short"])
    x0, x1, v = near.chunk(3, dim=-1)
    z = without_padding(given, x1 * v)
    s = formulas.causal_convolution(z, given.p["kernel"]) + given.p["skip"] * z
    return without_padding(given, linear(given, x0 * s, "output"))


DENSE = "W1", "b1", "W2", "b2"
FORMULAS = {
    layers.GELU: lambda given, x: torch.nn.functional.gelu(x, approximate=given.o["approximate"]),
    layers.Linear: linear,
    layers.Conv1d: lambda given, x: formulas.conv1d(
        x, given.p["weight"], given.p.get("bias"), given.o["padding"]
    ),
    layers.LayerNorm: layer_norm,
    layers.RMSNorm: rms_norm,
    layers.Embedding: embedding,
    layers.TokenTypes: lambda given, x: x + embedding(given, given.types),
    layers.Positions: positions,
    layers.PositionwiseFeedForward: feed_forward,
    layers.GatedFeedForward: gated_feed_forward,
    layers.Pooler: pooler,
    layers.TiedOutput: tied_output,
    layers.CrossAttention: cross_attention,
    layers.BlockwiseCrossAttention: cross_attention,
    mixers.Attention: attention,
    mixers.GeneralAttention: attention,
    mixers.BlockwiseAttention: attention,
    mixers.DenseSynthesizer: synthesizer(formulas.dense_scores, *DENSE),
    mixers.FactorizedDenseSynthesizer: synthesizer(
        formulas.factorized_dense_scores, *DENSE, "V1", "c1", "V2", "c2"
    ),
    mixers.RandomSynthesizer: synthesizer(formulas.random_scores, "R"),
    mixers.FixedRandomSynthesizer: synthesizer(formulas.random_scores, "R"),
    mixers.FactorizedRandomSynthesizer: synthesizer(formulas.factorized_random_scores, "R1", "R2"),
    mixers.Fourier: whole_sequences(lambda _, x: torch.fft.fft2(x).real),
    mixers.Hartley: whole_sequences(lambda _, x: formulas.hartley_mixing(x)),
    mixers.LinearMixing: whole_sequences(linear_mixing),
    mixers.RandomMixing: whole_sequences(linear_mixing),
    mixers.StateSpace: state_space,
    mixers.GatedConvolution: gated_convolution,
}
