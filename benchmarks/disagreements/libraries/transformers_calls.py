# /// script
# requires-python = ">=3.11"
# dependencies = ["transformers==5.24.0", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""Answers of transformers: parts of its models."""

from types import SimpleNamespace

import numpy as np
import torch
from calls import Library, call, main
from torch.func import functional_call
from transformers import CLIPVisionConfig, LlamaConfig, get_cosine_schedule_with_warmup
from transformers.activations import ACT2FN
from transformers.models.clip.modeling_clip import CLIPAttention
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as turn_neighbours
from transformers.models.llama.modeling_llama import (
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
    eager_attention_forward,
    repeat_kv,
)
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.pytorch_utils import Conv1D


@call
def linear(x, W, b):
    layer = Conv1D(*W.shape[::-1])
    return functional_call(layer, {"weight": W, "bias": b}, (x,))


@call
def linear_shape(d_in, d_out):
    return tuple(Conv1D(d_out, d_in).weight.shape)


@call
def rms_norm_default(x):
    return LlamaRMSNorm(x.shape[-1])(x)


@call
def rms_norm(x, gamma, eps):
    # LlamaRMSNorm computes float64 arrays in float32.
    return functional_call(LlamaRMSNorm(len(gamma), eps), {"weight": gamma}, (x,)).float()


@call
def gelu_default(x):
    return ACT2FN["gelu"](x)


@call
def gelu(x, approximate):
    return ACT2FN["gelu" if approximate == "none" else "gelu_new"](x)


@call
def silu(x):
    return ACT2FN["silu"](x)


@call
def relu(x):
    return ACT2FN["relu"](x)


def attention_of(query, key, value, mask):
    bias = torch.zeros(mask.shape).masked_fill(~mask, -1e30)
    layer = SimpleNamespace(num_key_value_groups=1, training=False)
    y, _ = eager_attention_forward(layer, query, key, value, bias, query.shape[-1] ** -0.5)
    return y.transpose(1, 2).float()  # its softmax computes float64 arrays in float32


@call
def attention(query, key, value, mask):
    y = attention_of(query, key, value, mask)
    return y.masked_fill(~mask.any(-1, keepdim=True), 0)


@call
def causal_attention(query, key, value, begin):
    queries = begin + torch.arange(query.shape[-2])
    mask = queries[:, None] >= torch.arange(key.shape[-2])
    return attention_of(query, key, value, mask)


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    config = CLIPVisionConfig(hidden_size=x.shape[-1], num_attention_heads=n_heads)
    config._attn_implementation = "eager"
    weights = {
        "q_proj.weight": W_query.T,
        "q_proj.bias": b_query,
        "k_proj.weight": W_key.T,
        "k_proj.bias": b_key,
        "v_proj.weight": W_value.T,
        "v_proj.bias": b_value,
        "out_proj.weight": W_output.T,
        "out_proj.bias": b_output,
    }
    y, _ = functional_call(CLIPAttention(config).eval(), weights, (x,))
    return y.float()  # its softmax computes float64 arrays in float32


@call
def gated(x, W_gate, W_up, W_down):
    config = LlamaConfig(
        hidden_size=len(W_gate), intermediate_size=len(W_down), num_attention_heads=1
    )
    weights = {
        "gate_proj.weight": W_gate.T,
        "up_proj.weight": W_up.T,
        "down_proj.weight": W_down.T,
    }
    return functional_call(LlamaMLP(config), weights, (x,))


@call
def grouped_attention_default(query, key, value):
    return grouped_attention(query, key, value)


@call
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    weights = query @ repeat_kv(key, times).mT / query.shape[-1] ** 0.5
    return weights.softmax(-1) @ repeat_kv(value, times)


def llama_angles(x, positions, theta):
    config = LlamaConfig(
        hidden_size=x.shape[-1],
        num_attention_heads=1,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
    )
    return LlamaRotaryEmbedding(config)(x, positions[None])


@call
def rotary_default(x, positions):
    cosines, sines = llama_angles(x, positions, 10000.0)
    return apply_rotary_pos_emb(x, x, cosines, sines)[0]


@call
def rotary_of_second_layer(x, positions, theta):
    rotary_default(x, positions)
    cosines, sines = llama_angles(x, positions, theta)
    return apply_rotary_pos_emb(x, x, cosines, sines)[0]


@call
def rotary(x, positions, theta, layout):
    # Angles are computed in float32.
    x = x.float()
    cosines, sines = llama_angles(x, positions, theta)
    if layout == "halves":
        return apply_rotary_pos_emb(x, x, cosines, sines)[0]
    half = x.shape[-1] // 2
    cosines, sines = (t[..., :half].repeat_interleave(2, dim=-1) for t in (cosines, sines))
    return turn_neighbours(x, x, cosines, sines)[0]


@call
def sinusoids_default(length, d_model, position):
    layer = MarianSinusoidalPositionalEmbedding(length, d_model)
    layer.weight.data = layer.create_weight()
    return layer.weight[position]


@call
def sinusoids(length, d_model, position):
    layer = MarianSinusoidalPositionalEmbedding(length, d_model)
    layer.weight.data = layer.create_weight()
    return layer.weight[position].reshape(2, -1).T.reshape(-1)


@call
def cosine_default(total, warmup, n_steps):
    return factors(get_cosine_schedule_with_warmup, total, warmup, n_steps)


@call
def cosine(total, warmup, n_steps):
    return factors(get_cosine_schedule_with_warmup, total, warmup, n_steps + 1)[1:]


def factors(schedule_of, total, warmup, n_steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = schedule_of(optimizer, warmup, total)
    rates = []
    for _ in range(n_steps):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return np.array(rates)


def array(values, dtype):
    return torch.tensor(values, dtype=getattr(torch, dtype) if dtype else None)


def to_numpy(y):
    return y.detach().numpy() if isinstance(y, torch.Tensor) else y


def gradients(function, arrays, names, dy):
    for name in names:
        arrays[name].requires_grad_()
    y = function(**arrays)
    y.backward(dy.to(y.dtype))
    return y, {name: arrays[name].grad for name in names}


main(Library(array, to_numpy, gradients))
