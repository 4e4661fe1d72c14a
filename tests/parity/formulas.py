"""Every pair of `npformer.functional` in PyTorch, forward only, under the same arguments."""

import math

import numpy as np

from npformer import functional as F
from tests.pairs import NAMES

from .helpers import torch


def conv1d(x, W, b=None, padding="same"):
    """(batch, length, in), (kernel, in, out) -> PyTorch's channels first, and back."""
    y = torch.nn.functional.conv1d(x.transpose(1, 2), W.permute(2, 1, 0), b, padding=padding)
    return y.transpose(1, 2)


def causal_convolution(x, kernel):
    """As PyTorch has it: a correlation with the kernels turned around, a group for each feature."""
    length = x.shape[-2]
    size = min(length, len(kernel))
    weight = kernel[:size].flip(0).T[:, None, :]
    before = torch.nn.functional.pad(x.mT, (size - 1, 0))
    return torch.nn.functional.conv1d(before, weight, groups=x.shape[-1]).mT


def state_space_kernel(log_step, log_decay, frequency, C, length):
    A = torch.complex(-torch.exp(log_decay), frequency)
    z = torch.exp(log_step)[:, None] * A
    w = torch.complex(C[0], C[1]) * (torch.exp(z) - 1.0) / A
    powers = torch.exp(torch.arange(length)[:, None, None] * z)
    return 2.0 * (w * powers).sum(dim=-1).real


def state_space_step(log_step, log_decay, frequency):
    """The zero-order hold: what is in the state decays, and an input is integrated over a step."""
    A = torch.complex(-torch.exp(log_decay), frequency)
    decay = torch.exp(torch.exp(log_step)[:, None] * A)
    gain = (decay - 1.0) / A
    return (decay.real, decay.imag), (gain.real, gain.imag)


def softmax(x, axis=-1, mask=None):
    """The weights of what is masked underflow to 0; a row with nothing to keep is made 0."""
    keep = torch.ones(x.shape, dtype=bool) if mask is None else torch.as_tensor(mask)
    return torch.softmax(torch.where(keep, x, -1e300), dim=axis) * keep


def allowed(scores, mask=None, causal=False, begin=0, window=None):
    """Which keys each query sees, in NumPy: the first query is token `begin`."""
    i, j = np.indices(scores.shape[-2:])
    i = i + begin
    keep = j <= i if causal else np.ones(i.shape, dtype=bool)
    if window is not None:
        keep = keep & (j > i - window if causal else abs(i - j) <= window // 2)
    return keep if mask is None else keep & mask


def averaging_weights(scores, mask=None, causal=False, window=None):
    return softmax(scores, mask=allowed(scores, mask, causal, window=window))


def average(scores, value, mask=None, causal=False, rate=0.0, generator=None, begin=0, window=None):
    weights = softmax(scores, mask=allowed(scores, mask, causal, begin, window))
    if generator is not None:  # each sample drops its own
        weights = weights.expand(*value.shape[:-2], *scores.shape[-2:])
    return dropout(weights, rate, generator) @ value


def attention_scores(query, key):
    return query @ key.mT / math.sqrt(query.shape[-1])


def attention(query, key, value, mask=None, causal=False, block=None, begin=0, window=None):
    attend = torch.nn.functional.scaled_dot_product_attention
    if mask is None and window is None and begin == 0:
        return attend(query, key, value, is_causal=causal)
    keep = allowed(attention_scores(query, key), mask, causal, begin, window)
    return attend(query, key, value, attn_mask=torch.tensor(keep))


def dense_scores(x, W1, b1, W2, b2, columns):
    hidden = torch.relu(x @ W1 + b1)
    if W2.ndim == 2:
        return (hidden @ W2 + b2)[..., :columns]
    hidden_by_head = hidden.chunk(len(W2), dim=-1)
    by_head = [hidden_of_head @ W2[h] + b2[h] for h, hidden_of_head in enumerate(hidden_by_head)]
    return torch.stack(by_head, dim=1)[..., :columns]


def factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2, columns):
    """H_B(F(x)) * H_C(G(x)): F(x) tiled as often as G(x) is long, G(x) repeated likewise."""
    a, b = W2.shape[-1], V2.shape[-1]
    short, long = dense_scores(x, W1, b1, W2, b2, a), dense_scores(x, V1, c1, V2, c2, b)
    tiled = torch.tile(short, (*[1] * (short.ndim - 1), b))
    return (tiled * torch.repeat_interleave(long, a, dim=-1))[..., :columns]


def dense_synthesizer(x, value, *maps, mask=None, causal=False):
    return average(dense_scores(x, *maps, x.shape[-2]), value, mask, causal)


def factorized_dense_synthesizer(x, value, *maps, mask=None, causal=False):
    return average(factorized_dense_scores(x, *maps, x.shape[-2]), value, mask, causal)


def random_scores(R, length):
    return R[..., :length, :length]


def factorized_random_scores(R1, R2, length):
    return random_scores(R1 @ R2.mT, length)


def random_synthesizer(value, R, mask=None, causal=False):
    return average(random_scores(R, value.shape[-2]), value, mask, causal)


def factorized_random_synthesizer(value, R1, R2, mask=None, causal=False):
    return random_synthesizer(value, R1 @ R2.mT, mask, causal)


def mixture_scores(logits, *scores):
    alpha = torch.softmax(logits, dim=0)
    return sum(
        weight * scores_of_part for weight, scores_of_part in zip(alpha, scores, strict=True)
    )


def hartley_mixing(x):
    transform = torch.fft.fft2(x)
    return transform.real - transform.imag


def linear_mixing(x, W, V):
    length = x.shape[1]
    return W[:length, :length] @ x @ V


def dropout(x, rate, generator=None):
    if generator is None:
        return x
    scaled, _ = F.dropout(np.ones(x.shape), rate, generator)
    assert set(np.unique(scaled)) <= {0.0, 1.0 / (1.0 - rate)}
    return x * torch.tensor(scaled)


def token_dropout(x, rate, generator=None):
    if generator is None:
        return x
    factors, _ = F.token_dropout(np.ones(x.shape), rate, generator)
    assert set(np.unique(factors)) <= {0.0, 1.0}
    assert (factors == factors[..., :1]).all()
    return x * torch.tensor(factors)


def mean_pooling(x, mask=None):
    if mask is None:
        return x.mean(dim=1)
    tokens_by_row = [row[torch.tensor(keep)] for row, keep in zip(x, mask, strict=True)]
    return torch.stack([row.sum(dim=0) / max(1, len(row)) for row in tokens_by_row])


def max_pooling(x, mask=None):
    if mask is None:
        return x.amax(dim=1)
    tokens_by_row = [row[torch.tensor(keep)] for row, keep in zip(x, mask, strict=True)]
    return torch.stack(
        [r.amax(dim=0) if len(r) else torch.zeros(r.shape[1:]) for r in tokens_by_row]
    )


def softmax_cross_entropy(logits, labels, label_smoothing=0.0, weights=None, class_weights=None):
    labels = torch.tensor(labels).flatten()
    same = np.ones(logits.shape[-1])
    by_class = torch.tensor(same if class_weights is None else class_weights)
    of_rows = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        labels,
        by_class,
        ignore_index=F.NO_LABEL,
        reduction="mean" if weights is None else "none",
        label_smoothing=label_smoothing,
    )
    if weights is None:
        return of_rows
    counts = torch.tensor(weights).flatten() * (labels != F.NO_LABEL)
    return (counts * of_rows).sum() / (counts * by_class[labels.clamp(min=0)]).sum()


def binary_cross_entropy_with_logits(logits, targets, weights=None, class_weights=None):
    targets = torch.tensor(targets)
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits
    if weights is None and class_weights is None:
        return cross_entropy(logits, targets)
    counts = torch.ones(()) if weights is None else torch.tensor(weights)
    weight_of_class = (1.0, 1.0) if class_weights is None else class_weights.tolist()
    right = targets * cross_entropy(logits, torch.ones_like(logits), reduction="none")
    wrong = (1.0 - targets) * cross_entropy(logits, torch.zeros_like(logits), reduction="none")
    losses = weight_of_class[1] * right + weight_of_class[0] * wrong
    by_class = torch.where(targets > 0.5, weight_of_class[1], weight_of_class[0])
    return (counts * losses).sum() / (counts * by_class).sum()


def mean_squared_error(prediction, target, weights=None):
    target = torch.tensor(target)
    if weights is None:
        return torch.nn.functional.mse_loss(prediction, target)
    of_rows = torch.nn.functional.mse_loss(prediction, target, reduction="none").mean(dim=-1)
    return (torch.tensor(weights) * of_rows).sum() / weights.sum()


def rotary(x, positions, theta=10000.0, layout="halves"):
    """By complex numbers: a turn is a product with e^(i t)."""
    half = x.shape[-1] // 2
    rates = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    turns = torch.polar(torch.ones(()).double(), torch.tensor(positions)[..., None] * rates)
    together = x.unflatten(-1, (2, half)).mT if layout == "halves" else x.unflatten(-1, (half, 2))
    turned = torch.view_as_real(torch.view_as_complex(together.contiguous()) * turns)
    return (turned.mT if layout == "halves" else turned).flatten(-2)


def gated(x, W_gate, W_up, W_down, activation="silu"):
    return (getattr(torch.nn.functional, activation)(x @ W_gate) * (x @ W_up)) @ W_down


REFERENCES = {name: globals()[name] for name in NAMES if name in globals()}
REFERENCES["averaging_weights"] = averaging_weights  # the backward pass is that of softmax
REFERENCES |= {
    "linear": lambda x, W, b=None: torch.nn.functional.linear(x, W.T, b),
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "layer_norm": lambda x, gamma, beta, eps=1e-5: torch.nn.functional.layer_norm(
        x, gamma.shape, gamma, beta, eps
    ),
    "repeat_heads": lambda x, times: x.repeat_interleave(times, dim=1),
    "rms_norm": lambda x, gamma, eps=1e-5: torch.nn.functional.rms_norm(x, gamma.shape, gamma, eps),
    "scaled_dot_product_attention": attention,
    "blockwise_attention": attention,
    "fourier_mixing": lambda x: torch.fft.fft2(x).real,
    "short_convolution": causal_convolution,
    "embedding": lambda ids, table: torch.nn.functional.embedding(torch.tensor(ids), table),
    "bag": lambda ids, weights, table: torch.nn.functional.embedding_bag(
        torch.tensor(ids), table, per_sample_weights=weights, mode="sum"
    ),
}
FORWARD_ONLY = {
    "split_heads": lambda x, n_heads: x.unflatten(-1, (n_heads, -1)).transpose(1, 2),
    "merge_heads": lambda x: x.transpose(1, 2).flatten(-2),
    "state_space_step": state_space_step,
}
"""Functions that have no backward pass."""
