# /// script
# requires-python = ">=3.11"
# dependencies = ["thinc==9.1.1", "numpy==2.4.6"]
# ///
"""Thinc's answers."""

import math

import numpy as np
from calls import Library, call, forward_only, main
from thinc.api import (
    Adam,
    CategoricalCrossentropy,
    Dropout,
    Embed,
    L2Distance,
    LayerNorm,
    Linear,
    NumpyOps,
    Schedule,
    fix_random_seed,
)

OPS = NumpyOps()


@call
@forward_only
def linear(x, W, b):
    layer = Linear(W.shape[1], W.shape[0])
    layer.initialize()
    layer.set_param("W", np.ascontiguousarray(W.T))
    layer.set_param("b", b)
    return layer.predict(x.reshape(-1, W.shape[0])).reshape(*x.shape[:-1], -1)


@call
def linear_shape(d_in, d_out):
    layer = Linear(d_out, d_in)
    layer.initialize()
    return layer.get_param("W").shape


@call
@forward_only
def layer_norm_default(x):
    layer = LayerNorm(x.shape[-1])
    layer.initialize()
    return layer.predict(x)


@call
@forward_only
def layer_norm(x, gamma, beta, eps):
    layer = LayerNorm(x.shape[-1])
    layer.initialize()
    layer.set_param("G", gamma)
    layer.set_param("b", beta)
    scale = (1e-8 / eps) ** 0.5  # its own eps is 1e-8
    return layer.predict(scale * x.reshape(-1, x.shape[-1])).reshape(x.shape)


@call
@forward_only
def gelu_default(x):
    return OPS.gelu(x)


@call
@forward_only
def gelu(x, approximate):
    # Its erf has seven digits, in float64, too.
    x = x.astype("float32")
    return OPS.gelu_approx(x) if approximate == "tanh" else OPS.gelu(x)


@call
@forward_only
def sigmoid(x):
    return OPS.sigmoid(x)


@call
@forward_only
def silu(x):
    return OPS.swish(x)


@call
@forward_only
def relu(x):
    return OPS.relu(x)


@call
@forward_only
def softmax_without_axis(x):
    return OPS.softmax(x).ravel()[0]


@call
@forward_only
def softmax(x, axis):
    return OPS.softmax(x, axis=axis)


def attention_of(query, key, value, mask=True):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    return OPS.softmax(np.where(mask, scores, -1e30)) @ value


@call
@forward_only
def attention(query, key, value, mask):
    return np.where(mask.any(-1, keepdims=True), attention_of(query, key, value, mask), 0)


@call
@forward_only
def causal_attention(query, key, value, begin):
    mask = begin + np.arange(query.shape[-2])[:, None] >= np.arange(key.shape[-2])
    return attention_of(query, key, value, mask)


@call
@forward_only
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    return attention_of(query, key.repeat(times, axis=1), value.repeat(times, axis=1))


@call
@forward_only
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    def heads_of(W, b):
        return linear(x, W, b).reshape(*x.shape[:2], n_heads, -1).swapaxes(1, 2)

    query, key = heads_of(W_query, b_query), heads_of(W_key, b_key)
    heads = attention_of(query, key, heads_of(W_value, b_value)).swapaxes(1, 2)
    return linear(heads.reshape(x.shape), W_output, b_output)


@call
@forward_only
def conv1d(x, W, padding):
    kernel, d_in, d_out = W.shape
    side = kernel // 2
    left = (kernel - 1) // 2  # an even kernel has more on its right
    rows = []
    for sample in x:
        windows = OPS.seq2col(sample, side).reshape(len(sample), 2 * side + 1, d_in)
        windows = windows[:, side - left : side - left + kernel]
        rows.append(OPS.gemm(windows.reshape(len(sample), -1), W.reshape(-1, d_out)))
    y = np.stack(rows)
    return y if padding == "same" else y[:, left : y.shape[1] - side]


@call
@forward_only
def max_pooling(x):
    batch, length, d_model = x.shape
    rows = x.astype("float32").reshape(-1, d_model)  # it has no other
    return OPS.reduce_max(rows, np.full(batch, length, "int32"))[0]


@call
@forward_only
def mean_pooling(x, mask):
    rows = np.concatenate([x[mask], np.zeros((1, x.shape[-1]))])  # it refuses to take none
    lengths = np.append(mask.sum(1), 1)
    return OPS.reduce_mean(rows.astype("float32"), lengths.astype("int32"))[:-1]


@call
def sinusoids_default(length, d_model, position):
    return OPS.position_encode(length, d_model)[position]


@call
def sinusoids(length, d_model, position):
    return OPS.position_encode(length, d_model, period=100)[position]  # its angles square it


@call
@forward_only
def embedding(ids, table):
    layer = Embed(table.shape[1], len(table))
    layer.initialize()
    layer.set_param("E", table)
    return layer.predict(ids.ravel()).reshape(*ids.shape, -1)


@call
@forward_only
def gated(x, W_gate, W_up, W_down):
    rows = x.reshape(-1, x.shape[-1])
    y = OPS.gemm(OPS.swish(OPS.gemm(rows, W_gate)) * OPS.gemm(rows, W_up), W_down)
    return y.reshape(x.shape)


@call
def largest_after_dropout(rate):
    layer = Dropout(rate)
    y, _ = layer(np.ones((1, 1000), "float32"), is_train=True)
    return y.max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    y, _ = Dropout(rate)(np.full((1, 1000), np.nan, "float32"), is_train=True)
    return np.fmin.reduce(y.ravel())


@call
def spread_of_linear():
    layer = Linear(100, 300)
    layer.initialize()
    return round(float(layer.get_param("W").std()), 2)


@call
@forward_only
def cross_entropy_default(logits, labels):
    loss = CategoricalCrossentropy(missing_value=-1)
    return loss(OPS.softmax(logits), labels)[1]


@call
@forward_only
def cross_entropy(logits, labels, class_weights, label_smoothing):
    # CategoricalCrossentropy gives the sum of the squared gradient.
    q = (np.arange(logits.shape[-1]) == labels[:, None]) * 1.0  # no class is -1
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    losses = -(class_weights * smooth * np.log(OPS.softmax(logits))).sum(-1)
    return (losses * (labels >= 0)).sum() / (class_weights * q).sum()


@call
@forward_only
def binary_cross_entropy_of_probability(p, targets):
    return OPS.logloss(targets, p).mean()


@call
@forward_only
def squared_error(prediction, target):
    return L2Distance(normalize=False).get_loss(prediction, target) / prediction.size


def steps(optimizer, theta, gradients):
    for gradient in gradients:
        theta, _ = optimizer((0, "theta"), theta, gradient.copy())
    return theta


@call
def adam_default(theta, gradients, lr):
    return steps(Adam(lr, grad_clip=0.0, L2=0.0), theta, gradients)


def adam_with(lr, betas, eps):
    def eps_of_step(schedule, step, **options):  # it stands before v's correction
        return eps * (1 - betas[1] ** (step + 1)) ** 0.5

    schedule = Schedule("eps", eps_of_step)
    return Adam(lr, beta1=betas[0], beta2=betas[1], eps=schedule, grad_clip=0.0, L2=0.0)


@call
def adam(theta, gradients, lr, betas, eps):
    return adamw(theta, gradients, lr, betas, eps, 0.0)


@call
def adamw_default(theta, gradients, lr):
    return steps(Adam(lr, grad_clip=0.0), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    optimizer = adam_with(lr, betas, eps)
    theta, gradients = theta.astype("float32"), gradients.astype("float32")  # it has no other
    for gradient in gradients:
        theta *= 1 - lr * weight_decay  # its own decay comes after the step
        theta, _ = optimizer((0, "theta"), theta, gradient.copy())
        optimizer.step_schedules()
    return theta


@call
def clip_default(a, b, max_norm):
    return np.concatenate([OPS.clip_gradient(gradient, max_norm) for gradient in (a, b)])


@call
def clip(a, b, max_norm):
    gradient = np.concatenate([a, b])  # it clips each array alone
    norm = np.linalg.norm(gradient)
    return OPS.clip_gradient(gradient, max_norm * norm / (norm + 1e-6))


@call
def cosine(total, warmup, n_steps):
    def factor(schedule, step, **options):  # thinc counts steps from 0
        if step + 1 <= warmup:
            return (step + 1) / warmup
        progress = min((step + 1 - warmup) / (total - warmup), 1.0)
        return 0.5 * (1.0 + math.cos(math.pi * progress))

    schedule = Schedule("cosine", factor)
    return np.array([schedule(step) for step in range(n_steps)])


def array(values, dtype):
    return values.astype(dtype) if dtype else values


fix_random_seed(0)  # for initial weights and dropout
main(Library(array))
