"""What does it take to write a GPT, if there is only NumPy?
=========================================================

A language model of characters: its layers, their backward passes, Adam, and writing with a KV
cache. It learns the plays of Shakespeare that come with npformer, or the text of a file,
and then continues its beginning: ``python examples/gpt_in_one_file.py book.txt``.

Each function comes with its backward pass; dy is the gradient of the loss with respect to y and has
y's shape. B sequences, L tokens, d features, h heads. In attention each token has a query Q, which
is compared with the keys K of the tokens up to it, and averages their values V.
"""
# sphinx_gallery_thumbnail_path = 'pictures/gallery_gpt.svg'

import gzip
import os
import sys
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
    t = np.tanh((2.0 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1.0 + t), (x, t)


def gelu_backward(dy, cache):
    x, t = cache
    du = (2.0 / np.pi) ** 0.5 * (1.0 + 3.0 * 0.044715 * x**2)  # du / dx
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t**2) * du)


def attention(Q, K, V):
    """Y = A V, A = softmax(S), S = Q K^T / sqrt(d_head), for the last n of the L tokens with keys.

    Q is (B, h, n, d_head), K and V are (B, h, L, d_head). The first of the n queries is at
    position L - n: query i sees the keys up to L - n + i, or it would see what it should predict.
    """
    n, L = Q.shape[-2], K.shape[-2]
    S = Q @ K.swapaxes(-1, -2) / Q.shape[-1] ** 0.5  # (B, h, n, L)
    S = np.where(np.tri(n, L, L - n, dtype=bool), S, -np.inf)
    A = np.exp(S - S.max(axis=-1, keepdims=True))  # less the maximum: exp cannot overflow
    A /= A.sum(axis=-1, keepdims=True)
    return A @ V, (Q, K, V, A)


def attention_backward(dY, cache):
    Q, K, V, A = cache  # A is 0 where a key comes later, and so is dS
    dA = dY @ V.swapaxes(-1, -2)
    dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True)) / Q.shape[-1] ** 0.5
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
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # (B, L, characters)
    right = (*np.indices(labels.shape), labels)
    dlogits = np.exp(log_p)
    dlogits[right] -= 1.0
    return -log_p[right].mean(), dlogits / labels.size


# The model: w holds the weights by name, g gets their gradients under the same names --------------
# `dx, *g[name] = f_backward(...)` puts the first result into dx and the list of the others into g.


def block(x, w, at, h, kept=None):
    """x = x + attention(norm(x)); x = x + feed_forward(norm(x)). Return x and all caches.

    `kept`, if given, holds keys and values of earlier tokens; those of x are added to it.
    """
    n, norm1_cache = layer_norm(x, *w[at + "mixer_norm"])
    q, q_cache = linear(n, *w[at + "query"])
    k, k_cache = linear(n, *w[at + "key"])
    v, v_cache = linear(n, *w[at + "value"])
    K, V = split(k, h), split(v, h)
    if kept is not None:
        K, V = kept[at] = [np.concatenate(p, axis=2) for p in zip(kept[at], (K, V), strict=True)]
    heads, heads_cache = attention(split(q, h), K, V)
    mixed, out_cache = linear(merge(heads), *w[at + "output"])
    x = x + mixed
    n, norm2_cache = layer_norm(x, *w[at + "feed_forward_norm"])
    before, before_cache = linear(n, *w[at + "expand"])
    hidden, hidden_cache = gelu(before)
    fed, fed_cache = linear(hidden, *w[at + "contract"])
    of_mixer = norm1_cache, q_cache, k_cache, v_cache, heads_cache, out_cache
    return x + fed, (of_mixer, (norm2_cache, before_cache, hidden_cache, fed_cache))


def block_backward(dx, cache, g, at, h):
    """The lines of `block` from bottom to top. What was used twice gets a sum."""
    of_mixer, (norm2_cache, before_cache, hidden_cache, fed_cache) = cache
    norm1_cache, q_cache, k_cache, v_cache, heads_cache, out_cache = of_mixer
    dhidden, *g[at + "contract"] = linear_backward(dx, fed_cache)
    dbefore = gelu_backward(dhidden, hidden_cache)
    dn, *g[at + "expand"] = linear_backward(dbefore, before_cache)
    dx_fed, *g[at + "feed_forward_norm"] = layer_norm_backward(dn, norm2_cache)
    dx = dx + dx_fed
    dmerged, *g[at + "output"] = linear_backward(dx, out_cache)
    dq, dk, dv = attention_backward(split(dmerged, h), heads_cache)
    dn_v, *g[at + "value"] = linear_backward(merge(dv), v_cache)
    dn_k, *g[at + "key"] = linear_backward(merge(dk), k_cache)
    dn_q, *g[at + "query"] = linear_backward(merge(dq), q_cache)
    dx_mixed, *g[at + "mixer_norm"] = layer_norm_backward(dn_q + dn_k + dn_v, norm1_cache)
    return dx + dx_mixed


def forward(w, ids, h, kept=None):
    """Logits (B, L, characters) of what follows each of the ids (B, L), and `backward`'s cache.

    The table gives a row for each character, and is also the matrix of the output.
    """
    (table,), (positions,) = w["table"], w["positions"]
    begin = 0 if kept is None else kept[blocks_of(w)[0]][0].shape[2]
    x, caches = table[ids] + positions[begin : begin + ids.shape[1]], {}
    for at in blocks_of(w):
        x, caches[at] = block(x, w, at, h, kept)
    n, norm_cache = layer_norm(x, *w["final_norm"])
    return n @ table.T, (ids, caches, norm_cache, n, table, positions)


def backward(dlogits, cache, h):
    """The gradient of every weight."""
    ids, caches, norm_cache, n, table, positions = cache
    g = {"table": [np.zeros_like(table)], "positions": [np.zeros_like(positions)]}
    g["table"][0] += np.einsum("blv,bld->vd", dlogits, n)  # as the matrix of the output
    dx, *g["final_norm"] = layer_norm_backward(dlogits @ table, norm_cache)
    for at in reversed(caches):
        dx = block_backward(dx, caches[at], g, at, h)
    np.add.at(g["table"][0], ids, dx)  # as the embedding: a row for each time it was looked up
    g["positions"][0][: ids.shape[1]] += dx.sum(axis=0)  # the same positions in all sequences
    return g


def loss_and_gradients(w, ids, labels, h):
    logits, cache = forward(w, ids, h)
    loss, dlogits = cross_entropy(logits, labels)
    return loss, backward(dlogits, cache, h)


def blocks_of(w):
    """The blocks' prefixes: "block 0 ", "block 1 " and so on, in order."""
    return [name.removesuffix("query") for name in w if name.endswith("query")]


def make_weights(rng, characters, L=64, d=64, d_ff=256, n_blocks=2):
    """Uniform numbers within sqrt(6 / (in + out)) (Glorot and Bengio, 2010); biases are 0."""

    def maps(d_in, d_out):
        bound = np.sqrt(6.0 / (d_in + d_out))
        return [rng.uniform(-bound, bound, (d_in, d_out)), np.zeros(d_out)]

    w = {
        name: [rng.normal(0.0, 0.02, (n, d))]
        for name, n in (("table", characters), ("positions", L))
    }
    for i in range(n_blocks):
        for name in ("query", "key", "value", "output"):
            w[f"block {i} {name}"] = maps(d, d)
        w[f"block {i} expand"], w[f"block {i} contract"] = maps(d, d_ff), maps(d_ff, d)
        for name in ("mixer_norm", "feed_forward_norm"):
            w[f"block {i} {name}"] = [np.ones(d), np.zeros(d)]
    return w | {"final_norm": [np.ones(d), np.zeros(d)]}


# Proof, optimizer, writing, training --------------------------------------------------------------


def check_gradients(w, ids, labels, h, step=1e-5, entries=3):
    """The largest error of some entries of every gradient, against central differences."""
    _, g = loss_and_gradients(w, ids, labels, h)
    rng, worst = np.random.default_rng(0), 0.0
    for array, gradient in ((a, b) for name in w for a, b in zip(w[name], g[name], strict=True)):
        for index in rng.integers(0, array.size, entries):
            place, losses = np.unravel_index(index, array.shape), []
            kept = array[place]
            for moved in (kept + step, kept - step):
                array[place] = moved
                losses.append(cross_entropy(forward(w, ids, h)[0], labels)[0])
            array[place] = kept
            numeric = (losses[0] - losses[1]) / (2.0 * step)
            worst = max(worst, abs(numeric - gradient[place]))
    return worst


def adam_step(w, g, m, v, t, lr, beta1=0.9, beta2=0.99, eps=1e-8):
    """Step t, from 1 (Kingma and Ba, 2015, algorithm 1), in place."""
    for name in w:
        for theta, dtheta, m_, v_ in zip(w[name], g[name], m[name], v[name], strict=True):
            m_ += (1.0 - beta1) * (dtheta - m_)
            v_ += (1.0 - beta2) * (dtheta**2 - v_)
            theta -= lr * (m_ / (1.0 - beta1**t)) / (np.sqrt(v_ / (1.0 - beta2**t)) + eps)


def write(w, ids, n, h, rng=None, cache=True):
    """Yield n ids that follow `ids`: the likeliest ones or, with a generator, drawn ones.

    With the cache, only the newest token goes through the model; keys and values of those before it
    are kept. When the positions are used up, it starts over with the second half of what it saw.
    """
    ids, L = list(ids), len(w["positions"][0])
    kept, new = None, []
    for _ in range(n):
        if kept is None:
            d_head = w["table"][0].shape[1] // h
            kept = {at: [np.zeros((1, h, 0, d_head))] * 2 for at in blocks_of(w)}
            new = ids = ids if len(ids) <= L else ids[-(L // 2) :]
        logits = forward(w, np.array([new]), h, kept)[0][0, -1]
        p = np.exp(logits - logits.max())
        token = int(p.argmax() if rng is None else rng.choice(len(p), p=p / p.sum()))
        yield token
        ids, new = [*ids, token], [token]
        if len(ids) > L or not cache:
            kept = None


def train(text, steps=1600, batch=8, lr=4e-3, h=4, seed=0):
    """Windows from anywhere in the text, and a learning rate that falls to 0.

    Returns the weights, and the characters in the order of their ids.
    """
    characters = sorted(set(text))
    ids = np.array([characters.index(each) for each in text])
    rng = np.random.default_rng(seed)
    w = make_weights(rng, len(characters))
    L = len(w["positions"][0])
    some = ids[: 2 * 9].reshape(2, 9)
    print(f"largest error of a gradient: {check_gradients(w, some[:, :-1], some[:, 1:], h):.1e}")
    w = {name: [a.astype("float32") for a in w[name]] for name in w}  # enough to train, and faster
    m = {name: [np.zeros_like(a) for a in arrays] for name, arrays in w.items()}
    v = {name: [np.zeros_like(a) for a in arrays] for name, arrays in w.items()}
    for t in range(1, steps + 1):
        starts = rng.integers(0, len(ids) - L, batch)
        windows = ids[starts[:, None] + np.arange(L + 1)]
        loss, g = loss_and_gradients(w, windows[:, :-1], windows[:, 1:], h)  # shifted by one
        adam_step(w, g, m, v, t, lr * (1.0 - (t - 1) / steps))
        if t % 200 == 0:
            print(f"step {t}  loss {loss:.2f} nats a character")
    return w, characters


def main(text, n=300, h=4):
    """Train, and continue the beginning of the text."""
    w, characters = train(text, h=h)
    prompt = [characters.index(each) for each in text[:32]]
    rest = write(w, prompt, n, h, np.random.default_rng(0))
    print(text[:32] + "".join(characters[token] for token in rest))


if __name__ == "__main__":
    here = Path(main.__code__.co_filename).resolve()  # __file__; if pasted, the folder of Python
    clone = next(folder for folder in here.parents if (folder / "npformer").is_dir())
    plays = clone / "npformer" / "data" / "shakespeare.txt.gz"
    book = Path(sys.argv[1]) if sys.argv[1:] else plays
    raw = book.read_bytes()
    main((gzip.decompress(raw) if book.suffix == ".gz" else raw).decode())
