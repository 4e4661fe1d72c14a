"""Wrong answers as readers write them, and what each of them must be told."""

import functools
import re
import textwrap

from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.referee import judge
from npformer.learn.exercises.table import exercise

RAISE = "    raise NotImplementedError  # your code\n"


def with_body(name, body):
    """Return a reader's file with some lines in place of its blank."""
    blank = exercise(name).blank
    assert blank.count(RAISE) == 1
    return blank.replace(RAISE, textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n")


@functools.cache
def verdict(name, text):
    """Mark a reader's file in this process."""
    return judge(exercise(name), Answer(text, f"{name}.py"))


_WRONG = """
# exercise: what is said | and also said
#     what the reader wrote
linear_backward: right for x of shape (6, 3) | dW is not summed over the batch | right: dx
    return dy @ W.T, x.T @ dy if x.ndim == 2 else np.swapaxes(x, 1, 2) @ dy, dy.sum(axis=0)
linear_backward: dW is transposed | db is 6 times too small, by the factor of the number of rows
    rows, drows = x.reshape(-1, len(W)), dy.reshape(-1, W.shape[1])
    return dy @ W.T, drows.T @ rows, drows.mean(axis=0)
conv1d_backward: dx: each offset overwrites | right: dW, db
    dpadded, dW = np.zeros_like(padded), np.zeros_like(W)
    for k in range(kernel):
        dpadded[:, k : k + length] = np.einsum("blo,io->bli", dy, W[k])
        dW[k] = (padded[:, k : k + length].transpose(0, 2, 1) @ dy).sum(axis=0)
    return dpadded[:, p : p + length], dW, dy.sum(axis=(0, 1))
conv1d_backward: dx: the kernel is turned round | db
    dpadded, dW = np.zeros_like(padded), np.zeros_like(W)
    for k in range(kernel):
        dpadded[:, k : k + length] += dy @ W[::-1][k].T
        dW[k] = (padded[:, k : k + length].transpose(0, 2, 1) @ dy).sum(axis=0)
    return dpadded[:, p : p + length], dW, dy.sum(axis=1)
relu_backward: the backward pass changed its dy
    dy[x <= 0] = 0
    return dy
relu_backward: gradient times y
    return dy * np.maximum(x, 0)
gelu_backward: one term of the product rule is missing: Phi depends on x too
    return dy * phi
gelu_backward: right in float64 | comes out as float64
    return dy * (phi + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))
softmax_backward: its own x_i
    return dy * (y - y * y)
softmax_backward: the sum runs over the wrong axis
    return y * (dy - np.sum(dy * y, axis=0))
layer_norm_backward: dx: gamma is missing | right: dgamma, dbeta
    inner = (dy * normalised).mean(-1, keepdims=True)
    dx = dy - dy.mean(-1, keepdims=True) - normalised * inner
    rows = tuple(range(dy.ndim - 1))
    return dx * inverse_std, (dy * normalised).sum(rows), dy.sum(rows)
layer_norm_backward: dx: mean and variance are treated as constants
    rows = tuple(range(dy.ndim - 1))
    return dy * gamma * inverse_std, (dy * normalised).sum(0), dy.sum(0)
cross_entropy_backward: right for rows that all have a label | rows without a label are not counted
    p = np.exp(log_p)
    p[np.arange(len(p)), right] -= 1
    return np.where(has_label[:, None], p, 0) * dloss / len(p)
cross_entropy_backward: the wrong way round
    p = np.exp(log_p)
    p[np.arange(len(p)), right] -= 1
    return -p * dloss / count * has_label[:, None]
embedding_backward: right for ids that all differ | only one of its rows is there
    dtable = np.zeros(table_shape)
    dtable[ids] += dy
    return dtable
embedding_backward: dtable has the wrong shape
    return dy
dropout_backward: the scaling of the entries that were kept is missing
    if cache is None:
        return dy
    kept, scale = cache
    return dy * kept
dropout_backward: right for training | for evaluation | line 37 failed, `kept, scale = cache`
    kept, scale = cache
    return dy * kept * scale
residual_backward: dW1: one of the two paths from h to z is missing | right: dW2
    d, dW2 = layer_backward(dz, g_cache)
    d, dW1 = layer_backward(d, f_cache)
    return d, dW1, dW2
residual_backward: the backward pass changed its dy
    d, dW2 = layer_backward(dz, g_cache)
    dz += d
    d, dW1 = layer_backward(dz, f_cache)
    return dz + d, dW1, dW2
scores_backward: dquery: the scale is missing | dkey: the scale is missing
    return dS @ key, np.swapaxes(dS, -1, -2) @ query
scores_backward: right for a single head; but for batch and heads: | failed
    return dS @ key * scale, dS.T @ query * scale
attention_backward: dquery: in the softmax only the dependence of each weight on its own |
  right: dvalue
    dA = dy @ value.swapaxes(-1, -2)
    dS = weights * dA * (1 - weights) * scale
    return dS @ key, dS.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ dy
attention_backward: dquery: the backward pass of the softmax sums over the queries
    dA = dy @ value.swapaxes(-1, -2)
    dS = weights * (dA - np.sum(dA * weights, axis=-2, keepdims=True)) * scale
    return dS @ key, dS.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ dy
multi_head_backward: dWq: heads are split by a reshape alone | right: dWo
    B, L, d = x.shape
    dheads = (dy @ Wo.T).reshape(B, n_heads, L, d // n_heads)
    dQ, dK, dV = (merge(one) for one in attend_backward(dheads, attend_cache))
    flat = lambda a: a.reshape(-1, d)
    dWs = [flat(x).T @ flat(one) for one in (dQ, dK, dV)]
    dx = dQ @ Wq.T + dK @ Wk.T + dV @ Wv.T
    return dx, *dWs, flat(merged).T @ flat(dy)
multi_head_backward: dWq is not summed over the batch |
  dx: x is used three times, and the paths through the queries and the keys are missing
    dQ, dK, dV = (merge(d) for d in attend_backward(split(dy @ Wo.T, n_heads), attend_cache))
    dWq, dWk, dWv = (x.swapaxes(1, 2) @ d for d in (dQ, dK, dV))
    return dV @ Wv.T, dWq, dWk, dWv, (merged.swapaxes(1, 2) @ dy).sum(axis=0)
dense_synthesizer_backward: dx: the ReLU is left out | dW1: the ReLU is left out |
  right: dvalue, dW2, db2
    dA = dy @ value.swapaxes(1, 2)
    dS = weights * (dA - np.sum(dA * weights, axis=2, keepdims=True))
    dh = dS @ W2[:, :length].T
    rows = lambda a: a.reshape(-1, a.shape[-1])
    dW1, dW2 = rows(x).T @ rows(dh), np.zeros_like(W2)
    dW2[:, :length] = rows(hidden).T @ rows(dS)
    db2 = np.append(dS.sum((0, 1)), np.zeros(W2.shape[1] - length, dS.dtype))
    return dh @ W1.T, weights.swapaxes(1, 2) @ dy, dW1, dh.sum((0, 1)), dW2, db2
dense_synthesizer_backward: right for a sequence of max_len tokens |
  dW2: only the columns that were used
    dA = dy @ value.swapaxes(1, 2)
    dS = weights * (dA - np.sum(dA * weights, axis=2, keepdims=True))
    dh = dS @ W2[:, :length].T * (hidden > 0)
    rows = lambda a: a.reshape(-1, a.shape[-1])
    dW1, dW2 = rows(x).T @ rows(dh), rows(hidden).T @ rows(dS)
    dV = weights.swapaxes(1, 2) @ dy
    return dh @ W1.T, dV, dW1, dh.sum((0, 1)), dW2, dS.sum((0, 1))
fourier_backward: it is the inverse transform
    return np.fft.ifft2(dy).real
fourier_backward: dx is complex
    return np.fft.fft2(dy)
pooling_backward: right for sequences without padding | the mask is forgotten
    return np.repeat((dy / count)[:, None], mask.shape[1], axis=1)
pooling_backward: divided by the whole length
    return np.where(mask[..., None], dy[:, None] / mask.shape[1], 0.0)
adam_update: theta: m and v are not corrected
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    return theta - lr * m / (np.sqrt(v) + eps), m, v
adam_update: v: it decays with the other moment's beta
    m = beta1 * m + (1 - beta1) * g
    v = beta1 * v + (1 - beta1) * g**2
    return theta - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v
cross_attention_backward: dmemory: the memory is used twice, and the way through the keys |
  right: dx
    dQ, dK, dV = attend_backward(dy @ Wo.T, attend_cache)
    product = lambda a, d: np.einsum("bli,blo->io", a, d)
    dWs = product(x, dQ), product(memory, dK), product(memory, dV), product(taken, dy)
    return dQ @ Wq.T, dV @ Wv.T, *dWs
cross_attention_backward: dx: the last product is left out | right: dWo
    dQ, dK, dV = attend_backward(dy, attend_cache)
    product = lambda a, d: np.einsum("bli,blo->io", a, d)
    dWs = product(x, dQ), product(memory, dK), product(memory, dV), product(taken, dy)
    return dQ @ Wq.T, dK @ Wk.T + dV @ Wv.T, *dWs
causal_mask: right for four tokens without a cache; but for one query after | top left
    return np.tril(np.ones((n_queries, n_keys), bool))
causal_mask: mask: it is turned round
    return np.triu(np.ones((n_queries, n_keys), bool), begin)
cached_step: cached_step returned one array; expected a tuple: y, keys, values
    scores = np.append(keys @ (x @ Wq), (x @ Wk) @ (x @ Wq)) / math.sqrt(len(x))
    weights = np.exp(scores)
    keys, values = np.vstack([keys, x @ Wk]), np.vstack([values, x @ Wv])
    return (weights / weights.sum()) @ values
cached_step: y: the scores are not divided by sqrt(d)
    keys, values = np.vstack([keys, x @ Wk]), np.vstack([values, x @ Wv])
    weights = np.exp(keys @ (x @ Wq))
    return (weights / weights.sum()) @ values, keys, values
sampling: right for temperature 1, and temperature 0.5, and top_k of 3; but for top_p
    p = softmax(logits / temperature)
    order = np.argsort(-p)
    if top_k is not None:
        p[order[top_k:]] = 0.0
    if top_p is not None:
        p[order[np.cumsum(p[order]) > top_p]] = 0.0
    return p / p.sum()
sampling: right for temperature 1, and temperature 0.5; but for top_k of 3: | the distribution
    z = logits / temperature
    if top_k is not None:
        z = np.where(z >= np.sort(z)[-top_k], z, 0.0)
    p = softmax(z)
    return p / p.sum()
beam_search: right for one beam, which is greedy; but for two beams: | the sequence
    tokens = []
    for _ in range(n):
        tokens.append(int(follow(tokens).argmax()))
    return tokens
beam_search: the sequence is a tuple; expected an array
    live = [(0.0, [])]
    for _ in range(n):
        live = [
            max((log_p + more, [*tokens, token]) for token, more in enumerate(follow(tokens)))
            for log_p, tokens in live
        ]
    return live[0]
rotary_backward: it turns in the direction of the forward pass
    da, db = np.split(dy, 2, axis=-1)
    return np.concatenate([da * cos - db * sin, da * sin + db * cos], axis=-1)
rotary_backward: the two halves are swapped
    da, db = np.split(dy, 2, axis=-1)
    return np.concatenate([db * cos - da * sin, da * cos + db * sin], axis=-1)
grouped_attention_backward: dkey has the wrong shape
    return attend_backward(dy, attend_cache)
grouped_attention_backward: right for two heads that share one; but for four heads that share two |
  right: dquery | dkey: the wrong heads are summed
    dquery, *both = attend_backward(dy, attend_cache)
    dkey, dvalue = (sum(np.split(each, times, axis=1)) for each in both)
    return dquery, dkey, dvalue
"""
WRONG = [
    (name, body, re.split(r" \|\s+", says))
    for name, says, body in re.findall(r"^(\w+): ((?:.* \|\n)*.*)\n((?:    .*\n)+)", _WRONG, re.M)
]

MIXER = '''
import numpy as np
import npformer as nf
from npformer.mixers import Mixer

class OwnMixer(Mixer):
    """Each token gets the one before it, times w; the first one gets nothing."""

    @classmethod
    def build(cls, settings, *, seed, dtype):
        return cls(settings.d_model, dtype)

    def __init__(self, d_model, dtype="float32"):
        self.w = nf.Parameter(np.ones(d_model, dtype=dtype))

    def hidden(self, x, mask):
        return x if mask is None else np.where(mask[..., None], x, 0.0)

    def forward(self, x, context):
        x = self.hidden(x, context.mask)
        y = np.zeros_like(x)
        y[:, 1:] = x[:, :-1] * self.w.value
        return self.hidden(y, context.mask), (x, context.mask)

    def backward(self, dy, cache, gradients):
        x, mask = cache
        dy = self.hidden(dy, mask)
        gradients.add(self.w, (dy[:, 1:] * x[:, :-1]).sum(axis=(0, 1)))
        dx = np.zeros_like(x)
        dx[:, :-1] = dy[:, 1:] * self.w.value
        return dx

    def explain(self, x, context):
        kept = np.ones(x.shape[:2], bool) if context.mask is None else context.mask
        pairs = kept[:, :, None] & kept[:, None, :]
        return (np.eye(x.shape[1], k=-1) * pairs)[:, None]
'''
"""A right mixer that nobody has published."""

WRONG_MIXERS = [
    # what stands in MIXER, what stands there instead, what is said
    ("y[:, 1:] = x[:, :-1] * self.w.value", "y[:] = x * self.w.value", "nothing is mixed"),
    ("y[:, 1:] = x[:, :-1]", "y[1:] = x[:-1]", "one sequence of the batch sees another"),
    ("y = np.zeros_like(x)", "y = np.zeros((*x.shape[:2], 9))[..., :8].mean(axis=1)", "failed"),
    ("return self.hidden(y, context.mask), (x", "return y[:, :-1], (x", "y has shape (3, 3, 8)"),
    ("x[:, :-1] * self.w.value", "np.roll(x, 1, 1)[:, 1:] * self.w.value + x.max()", "another"),
    ("y[:, 1:] = x[:, :-1] * self.w.value", "y[:] = np.roll(x, 1, 1) * self.w.value", "dx"),
    ("        gradients.add(self.w", "        (self.w", "dw is 0: backward adds no gradient"),
    ("dx[:, :-1] = dy[:, 1:]", "dx[:, :-1] = -dy[:, 1:]", "dx has the wrong sign, everywhere"),
    ("sum(axis=(0, 1))", "sum(axis=1)", "failed"),
    ("dy[:, 1:] * self.w.value", "dy[:, 1:]", "dx is wrong in"),
    ("np.where(mask[..., None], x, 0.0)", "x * mask[..., None]", "NaN at padding, in x or in dy"),
    ("dy = self.hidden(dy, mask)", "pass", "NaN at padding, in x or in dy"),
    ("k=-1", "k=1", "explain without a mask says"),
    (" * pairs", "+ 0 * pairs", "explain is not 0 in all rows and columns of padding"),
    ("[:, None]\n", "\n", "explain gives an array of shape (3, 4, 4); expected"),
    ("return dx\n", "dy *= 2.0\n        return dx\n", "backward pass changed its dy"),
]
