"""What does it take to write an encoder, if there is only NumPy?
==============================================================

Attention, layer norm, GELU, the loss, all backward passes, Adam and the training loop, on images of
handwritten digits. Each function comes with its backward pass; dy is the gradient of the loss with
respect to y and has y's shape. B samples, L tokens, d features, h heads. In attention each token
has a query Q, which is compared with the keys K of all tokens, and averages their values V.
"""
# sphinx_gallery_thumbnail_path = 'pictures/gallery_encoder.svg'

import os
from pathlib import Path

# Beside other programs, several threads wait for each other: measured 4 to 18 times as slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # NumPy's BLAS reads it as it is loaded

import numpy as np

# The pairs: y, cache = f(...), and the gradients of f's arguments from dy and that cache ----------


def linear(x, W, b):
    """y = x W + b, for every token: (B, L, d_in) -> (B, L, d_out)."""
    return x @ W + b, (x, W)


def linear_backward(dy, cache):
    x, W = cache
    rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, rows.T @ drows, drows.sum(axis=0)  # dx, dW, db: W and b serve all rows


def layer_norm(x, gamma, beta, eps=1e-5):
    """y = gamma n + beta, n = (x - mean) / s, s = sqrt(var + eps), over the features of a token."""
    centred = x - x.mean(axis=-1, keepdims=True)
    s = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    n = centred / s
    return gamma * n + beta, (n, s, gamma)


def layer_norm_backward(dy, cache):
    n, s, gamma = cache
    g = dy * gamma
    dx = (g - g.mean(axis=-1, keepdims=True) - n * (g * n).mean(axis=-1, keepdims=True)) / s
    return dx, (dy * n).sum(axis=(0, 1)), dy.sum(axis=(0, 1))  # dx, dgamma, dbeta


def gelu(x):
    """y = x (1 + t) / 2, t = tanh(u), u = c (x + 0.044715 x^3), c = sqrt(2 / pi)."""
    t = np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1.0 + t), (x, t)


def gelu_backward(dy, cache):
    x, t = cache
    du = np.sqrt(2.0 / np.pi) * (1.0 + 3.0 * 0.044715 * x**2)  # du / dx
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t**2) * du)


def attention(Q, K, V):
    """Y = A V, A = softmax(S), S = Q K^T / sqrt(d_head); all are (B, h, L, d_head)."""
    S = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # (B, h, L, L)
    A = np.exp(S - S.max(axis=-1, keepdims=True))  # less the maximum: exp cannot overflow
    A /= A.sum(axis=-1, keepdims=True)
    return A @ V, (Q, K, V, A)


def attention_backward(dY, cache):
    Q, K, V, A = cache
    dA = dY @ V.swapaxes(-1, -2)
    dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True)) / np.sqrt(Q.shape[-1])
    return dS @ K, dS.swapaxes(-1, -2) @ Q, A.swapaxes(-1, -2) @ dY  # dQ, dK, dV


def split(x, h):
    """(B, L, d) -> (B, h, L, d / h). `merge` moves the numbers back, and gradients likewise."""
    B, L, d = x.shape
    return x.reshape(B, L, h, d // h).transpose(0, 2, 1, 3)


def merge(x):
    B, h, L, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, L, h * d_head)


def cross_entropy(logits, labels):
    """The mean of -log softmax(logits)[label]; the cache is its gradient, which needs no dy."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # (B, classes)
    right = np.arange(len(labels)), labels
    dlogits = np.exp(log_p)
    dlogits[right] -= 1.0
    return -log_p[right].mean(), dlogits / len(labels)


# The encoder: w holds the weights by name, g gets their gradients under the same names ------------
# `dx, *g[name] = f_backward(...)` puts the first result into dx and the list of the others into g.


def block(x, w, at, h):
    """x = norm(x + attention(x)); x = norm(x + feed_forward(x)). Return x and all caches."""
    q, q_cache = linear(x, *w[at + "query"])
    k, k_cache = linear(x, *w[at + "key"])
    v, v_cache = linear(x, *w[at + "value"])
    heads, heads_cache = attention(split(q, h), split(k, h), split(v, h))
    mixed, out_cache = linear(merge(heads), *w[at + "output"])
    x, norm1_cache = layer_norm(x + mixed, *w[at + "mixer_norm"])
    before, before_cache = linear(x, *w[at + "expand"])
    hidden, hidden_cache = gelu(before)
    fed, fed_cache = linear(hidden, *w[at + "contract"])
    x, norm2_cache = layer_norm(x + fed, *w[at + "feed_forward_norm"])
    of_mixer = q_cache, k_cache, v_cache, heads_cache, out_cache, norm1_cache
    return x, (of_mixer, (before_cache, hidden_cache, fed_cache, norm2_cache))


def block_backward(dx, cache, g, at, h):
    """The lines of `block` from bottom to top. What was used twice gets a sum."""
    of_mixer, (before_cache, hidden_cache, fed_cache, norm2_cache) = cache
    q_cache, k_cache, v_cache, heads_cache, out_cache, norm1_cache = of_mixer
    dsum, *g[at + "feed_forward_norm"] = layer_norm_backward(dx, norm2_cache)
    dhidden, *g[at + "contract"] = linear_backward(dsum, fed_cache)
    dbefore = gelu_backward(dhidden, hidden_cache)
    dx_fed, *g[at + "expand"] = linear_backward(dbefore, before_cache)
    dsum, *g[at + "mixer_norm"] = layer_norm_backward(dsum + dx_fed, norm1_cache)
    dmerged, *g[at + "output"] = linear_backward(dsum, out_cache)
    dq, dk, dv = attention_backward(split(dmerged, h), heads_cache)
    dx_v, *g[at + "value"] = linear_backward(merge(dv), v_cache)
    dx_k, *g[at + "key"] = linear_backward(merge(dk), k_cache)
    dx_q, *g[at + "query"] = linear_backward(merge(dq), q_cache)
    return dsum + dx_q + dx_k + dx_v


def forward(w, x, h):
    """Logits (B, classes) of images x (B, L, features), and the cache for `backward`."""
    x, embed_cache = linear(x, *w["embed"])
    x = x + w["positions"][0]  # (B, L, d) + (L, d)
    caches = {}
    for at in blocks_of(w):
        x, caches[at] = block(x, w, at, h)
    flat = x.reshape(len(x), -1)  # all tokens side by side: (B, L d)
    logits, classify_cache = linear(flat, *w["classify"])
    return logits, (embed_cache, caches, classify_cache, x.shape)


def backward(dlogits, cache, h):
    """The gradient of every weight."""
    embed_cache, caches, classify_cache, shape = cache
    g = {}
    dflat, *g["classify"] = linear_backward(dlogits, classify_cache)
    dx = dflat.reshape(shape)
    for at in reversed(caches):
        dx = block_backward(dx, caches[at], g, at, h)
    g["positions"] = [dx.sum(axis=0)]  # the same positions in all images
    _, *g["embed"] = linear_backward(dx, embed_cache)
    return g


def loss_and_gradients(w, x, labels, h):
    logits, cache = forward(w, x, h)
    loss, dlogits = cross_entropy(logits, labels)
    return loss, backward(dlogits, cache, h)


def blocks_of(w):
    """The blocks' prefixes: "block 0 ", "block 1 " and so on, in order."""
    return [name.removesuffix("query") for name in w if name.endswith("query")]


def make_weights(rng, features=8, L=8, d=64, d_ff=128, n_blocks=2, classes=10):
    """Uniform numbers within sqrt(6 / (in + out)) (Glorot and Bengio, 2010); biases are 0."""

    def maps(d_in, d_out):
        bound = np.sqrt(6.0 / (d_in + d_out))
        return [rng.uniform(-bound, bound, (d_in, d_out)), np.zeros(d_out)]

    w = {"embed": maps(features, d), "positions": [rng.normal(0.0, 0.02, (L, d))]}
    for i in range(n_blocks):
        for name in ("query", "key", "value", "output"):
            w[f"block {i} {name}"] = maps(d, d)
        w[f"block {i} mixer_norm"] = [np.ones(d), np.zeros(d)]
        w[f"block {i} expand"], w[f"block {i} contract"] = maps(d, d_ff), maps(d_ff, d)
        w[f"block {i} feed_forward_norm"] = [np.ones(d), np.zeros(d)]
    return w | {"classify": maps(L * d, classes)}


# Proof, optimizer, data, training -----------------------------------------------------------------


def check_gradients(w, x, labels, h, step=1e-5, entries=3):
    """The largest error of some entries of every gradient, against central differences."""
    _, g = loss_and_gradients(w, x, labels, h)
    rng, worst = np.random.default_rng(0), 0.0
    for array, gradient in ((a, b) for name in w for a, b in zip(w[name], g[name], strict=True)):
        for index in rng.integers(0, array.size, entries):
            place, losses = np.unravel_index(index, array.shape), []
            kept = array[place]
            for moved in (kept + step, kept - step):
                array[place] = moved
                losses.append(cross_entropy(forward(w, x, h)[0], labels)[0])
            array[place] = kept
            numeric = (losses[0] - losses[1]) / (2.0 * step)
            worst = max(worst, abs(numeric - gradient[place]))
    return worst


def adam_step(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8):
    """Step t, from 1 (Kingma and Ba, 2015, algorithm 1), in place."""
    for name in w:
        for theta, dtheta, m_, v_ in zip(w[name], g[name], m[name], v[name], strict=True):
            m_ += (1.0 - beta1) * (dtheta - m_)
            v_ += (1.0 - beta2) * (dtheta**2 - v_)
            theta -= lr * (m_ / (1.0 - beta1**t)) / (np.sqrt(v_ / (1.0 - beta2**t)) + eps)


def digits():
    """Images of 8 rows of 8 pixels, from -1 to 1, and labels; a fifth of each class is the test."""
    here = Path(digits.__code__.co_filename).resolve()  # __file__; if pasted, the folder of Python
    clone = next(folder for folder in here.parents if (folder / "npformer").is_dir())
    with np.load(clone / "npformer" / "data" / "digits.npz") as file:
        x, labels = file["images"] / 8.0 - 1.0, file["labels"].astype(int)
        parts = file["stratified_train"], file["stratified_test"]
    return [(x[part], labels[part]) for part in parts]


def accuracy(w, x, labels, h):
    return (forward(w, x, h)[0].argmax(axis=-1) == labels).mean()


def train(epochs=12, batch=32, lr=1e-3, h=4, seed=0):
    """Minibatches, and a learning rate that falls to 0; return the weights."""
    (x, labels), (x_test, labels_test) = digits()
    rng = np.random.default_rng(seed)
    w = make_weights(rng)
    m = {name: [np.zeros_like(a) for a in arrays] for name, arrays in w.items()}
    v = {name: [np.zeros_like(a) for a in arrays] for name, arrays in w.items()}
    print(f"largest error of a gradient: {check_gradients(w, x[:4], labels[:4], h):.1e}")
    t, steps = 0, epochs * -(-len(x) // batch)  # rounded up
    for epoch in range(1, epochs + 1):
        order, losses = rng.permutation(len(x)), []
        for start in range(0, len(x), batch):
            rows = order[start : start + batch]
            loss, g = loss_and_gradients(w, x[rows], labels[rows], h)
            t += 1
            adam_step(w, g, m, v, t, lr * (1.0 - (t - 1) / steps))
            losses.append(loss)
        print(f"epoch {epoch:2}  loss {np.mean(losses):.4f}")
    print(f"test accuracy {accuracy(w, x_test, labels_test, h):.4f}")
    return w


if __name__ == "__main__":
    train()
