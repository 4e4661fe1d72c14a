"""What does it take to write a translator, if there is only NumPy?
================================================================

The Transformer of Vaswani et al. (2017): an encoder reads 40213, a decoder writes "forty thousand
two hundred thirteen". It is tested on numbers that it has not seen, and shows which digits it read.

Each function comes with its backward pass; dy is the gradient of the loss with respect to y and has
y's shape. B pairs, L tokens of a target, M of a source, d features, h heads.
"""
# sphinx_gallery_thumbnail_path = 'pictures/gallery_translator.svg'

import os

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


def softmax_average(Q, K, V, seen):
    """Y = A V, A = softmax(S), S = Q K^T / sqrt(d_head), over what is seen, (.., L or 1, M)."""
    S = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # (B, h, L, M)
    S = np.where(seen, S, -np.inf)
    A = np.exp(S - S.max(axis=-1, keepdims=True))  # less the maximum: exp cannot overflow
    A /= A.sum(axis=-1, keepdims=True)
    return A @ V, (Q, K, V, A)


def softmax_average_backward(dY, cache):
    Q, K, V, A = cache  # A is 0 where nothing is seen, and so is dS
    dA = dY @ V.swapaxes(-1, -2)
    dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True)) / np.sqrt(Q.shape[-1])
    return dS @ K, dS.swapaxes(-1, -2) @ Q, A.swapaxes(-1, -2) @ dY  # dQ, dK, dV


def cross_entropy(logits, labels):
    """The mean of -log softmax(logits)[label] where there is a label, not PADDING; its gradient."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # (B, L, words)
    counted = (labels != PADDING)[..., None] / (labels != PADDING).sum()
    q = np.eye(logits.shape[-1])[labels]
    return -(q * log_p * counted).sum(), (np.exp(log_p) - q) * counted


# The layers: w holds the weights by name, g gets their gradients under the same names -------------
# `dx, *g[name] = f_backward(...)` puts the first result into dx and the list of the others into g.


def split(x, h):
    """(B, L, d) -> (B, h, L, d / h). `merge` moves the numbers back, and gradients likewise."""
    B, L, d = x.shape
    return x.reshape(B, L, h, d // h).transpose(0, 2, 1, 3)


def merge(x):
    B, h, L, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, L, h * d_head)


def attention(x, m, seen, w, at, h):
    """Tokens of x attend to those of m: in self-attention m is x, in cross-attention the memory."""
    q, q_cache = linear(x, *w[at + "query"])
    k, k_cache = linear(m, *w[at + "key"])
    v, v_cache = linear(m, *w[at + "value"])
    heads, heads_cache = softmax_average(split(q, h), split(k, h), split(v, h), seen)
    y, y_cache = linear(merge(heads), *w[at + "output"])
    return y, (q_cache, k_cache, v_cache, heads_cache, y_cache)


def attention_backward(dy, cache, g, at, h):
    """Return dx, through the queries, and dm, through keys and values: two ways, so a sum."""
    q_cache, k_cache, v_cache, heads_cache, y_cache = cache
    dmerged, *g[at + "output"] = linear_backward(dy, y_cache)
    dq, dk, dv = softmax_average_backward(split(dmerged, h), heads_cache)
    dx, *g[at + "query"] = linear_backward(merge(dq), q_cache)
    dm_k, *g[at + "key"] = linear_backward(merge(dk), k_cache)
    dm_v, *g[at + "value"] = linear_backward(merge(dv), v_cache)
    return dx, dm_k + dm_v


def block(x, reads, w, at, h):
    """x = norm(x + attention(x, m)) for what it reads; x = norm(x + relu(x W1 + b1) W2 + b2).

    `reads` has a name, m and a mask for each attention; where m is None, it is x itself.
    """
    caches = []
    for name, m, seen in reads:
        y, cache = attention(x, x if m is None else m, seen, w, f"{at}{name} ", h)
        x, norm_cache = layer_norm(x + y, *w[f"{at}{name}_norm"])
        caches.append((name, m is None, cache, norm_cache))
    before, before_cache = linear(x, *w[at + "expand"])
    y, fed_cache = linear(np.maximum(before, 0.0), *w[at + "contract"])
    x, norm_cache = layer_norm(x + y, *w[at + "feed_forward_norm"])
    return x, (caches, before_cache, before, fed_cache, norm_cache)


def block_backward(dx, cache, g, at, h):
    """The lines of `block` from bottom to top. ds, of a sum, goes to both of its terms."""
    caches, before_cache, before, fed_cache, norm_cache = cache
    ds, *g[at + "feed_forward_norm"] = layer_norm_backward(dx, norm_cache)
    dafter, *g[at + "contract"] = linear_backward(ds, fed_cache)
    dx, *g[at + "expand"] = linear_backward(dafter * (before > 0.0), before_cache)
    dx, dmemory = ds + dx, 0.0
    for name, of_itself, cache, norm_cache in reversed(caches):
        ds, *g[f"{at}{name}_norm"] = layer_norm_backward(dx, norm_cache)
        dx, dm = attention_backward(ds, cache, g, f"{at}{name} ", h)
        dx, dmemory = (ds + dx + dm, dmemory) if of_itself else (ds + dx, dm)
    return dx, dmemory


def embed(table, ids):
    """A row of the table for each id, times sqrt(d), plus sines and cosines of its position."""
    d = table.shape[1]
    angles = np.arange(ids.shape[1])[:, None] / 10_000.0 ** (np.arange(0, d, 2) / d)
    return table[ids] * np.sqrt(d) + np.dstack([np.sin(angles), np.cos(angles)]).reshape(-1, d)


def encode(w, source, h):
    """The memory, (B, M, d), which of its tokens are not padding, and a cache."""
    seen = (source != PADDING)[:, None, None]  # for every head and query
    x, caches = embed(*w["source"], source), {}
    for at in blocks_of(w, "encoder"):
        x, caches[at] = block(x, [("mixer", None, seen)], w, at, h)
    return x, seen, caches


def decode(w, target, memory, seen, h):
    """Logits (B, L, words) of what follows each token of the target (B, L), and a cache."""
    before = np.tri(target.shape[1], dtype=bool)  # token i sees tokens 0 to i
    x, caches = embed(*w["target"], target), {}
    for at in blocks_of(w, "decoder"):
        reads = ("mixer", None, before), ("cross_attention", memory, seen)
        x, caches[at] = block(x, reads, w, at, h)
    logits, output_cache = linear(x, *w["output"])
    return logits, (caches, output_cache)


def loss_and_gradients(w, source, target, h):
    """The target is shifted: the decoder sees all but its last token and says all but the first."""
    memory, seen, encoder_caches = encode(w, source, h)
    logits, (decoder_caches, output_cache) = decode(w, target[:, :-1], memory, seen, h)
    loss, dlogits = cross_entropy(logits, target[:, 1:])
    g, dmemory = {}, 0.0
    dx, *g["output"] = linear_backward(dlogits, output_cache)
    for at in reversed(decoder_caches):
        dx, dm = block_backward(dx, decoder_caches[at], g, at, h)
        dmemory = dmemory + dm  # every block has read the memory
    for at in reversed(encoder_caches):
        dmemory, _ = block_backward(dmemory, encoder_caches[at], g, at, h)
    for side, ids, dtokens in (("target", target[:, :-1], dx), ("source", source, dmemory)):
        g[side] = [np.zeros_like(w[side][0])]
        np.add.at(g[side][0], ids, dtokens * np.sqrt(dx.shape[-1]))  # an id may come several times
    return loss, g


def blocks_of(w, side):
    """The blocks' prefixes: "encoder 0 ", "encoder 1 " and so on, in order."""
    return [name[: -len("expand")] for name in w if name.startswith(side) and "expand" in name]


def make_weights(rng, n_source, n_target, d=64, d_ff=128, n_blocks=2):
    """Uniform numbers within sqrt(6 / (in + out)) (Glorot and Bengio, 2010); biases are 0."""
    sides = ("encoder", "source", n_source), ("decoder", "target", n_target)
    w = {name: [rng.normal(0.0, d**-0.5, (n, d))] for _, name, n in sides}
    maps = {"output": (d, n_target)}
    for at in [f"{side} {i} " for side, _, _ in sides for i in range(n_blocks)]:
        reads = ["mixer"] if at.startswith("encoder") else ["mixer", "cross_attention"]
        of_attention = "query", "key", "value", "output"
        maps |= {f"{at}{part} {name}": (d, d) for part in reads for name in of_attention}
        maps |= {at + "expand": (d, d_ff), at + "contract": (d_ff, d)}
        w |= {f"{at}{part}_norm": [np.ones(d), np.zeros(d)] for part in [*reads, "feed_forward"]}
    for name, (d_in, d_out) in maps.items():
        bound = np.sqrt(6.0 / (d_in + d_out))
        w[name] = [rng.uniform(-bound, bound, (d_in, d_out)), np.zeros(d_out)]
    return w


# The task, proof, optimizer, writing, training ----------------------------------------------------

PADDING, BEGIN, END = 0, 1, 2
SMALL = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
SMALL += ["twelve", *(n + "teen" for n in ("thir", "four", "fif", "six", "seven", "eigh", "nine"))]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORDS = ["", "<begin>", "<end>", *SMALL, *TENS, "hundred", "thousand"]


def in_words(n):
    """A list of words, for numbers from 0, which has none, to 999,999."""
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if n >= size:
            return [*in_words(n // size), name, *in_words(n % size)]
    if n >= 20:
        return [TENS[n // 10 - 2], *in_words(n % 10)]
    return [SMALL[n - 1]] if n else []


def pairs_of(numbers):
    """Sources, in which a digit's id is 1 more, and targets with BEGIN and END; PADDING follows."""
    sources = [[int(digit) + 1 for digit in str(n)] for n in numbers]
    targets = [[BEGIN, *map(WORDS.index, in_words(n)), END] for n in numbers]
    sides = ((side, max(map(len, side))) for side in (sources, targets))
    return [np.array([row + [PADDING] * (n - len(row)) for row in side]) for side, n in sides]


def check_gradients(w, source, target, h, step=1e-5):
    """The largest error of one entry of every gradient, against central differences."""
    _, g = loss_and_gradients(w, source, target, h)
    errors, rng = [], np.random.default_rng(0)
    for array, gradient in ((a, b) for name in w for a, b in zip(w[name], g[name], strict=True)):
        place, losses = tuple(rng.integers(0, array.shape)), []
        for change in (step, -2.0 * step):
            array[place] += change
            losses.append(loss_and_gradients(w, source, target, h)[0])
        array[place] += step
        errors.append(abs((losses[0] - losses[1]) / (2.0 * step) - gradient[place]))
    return max(errors)


def adam_step(w, g, m, v, t, lr, beta1=0.9, beta2=0.98, eps=1e-9):
    """Step t, from 1 (Kingma and Ba, 2015, algorithm 1), in place."""
    for name in w:
        for theta, dtheta, m_, v_ in zip(w[name], g[name], m[name], v[name], strict=True):
            m_ += (1.0 - beta1) * (dtheta - m_)
            v_ += (1.0 - beta2) * (dtheta**2 - v_)
            theta -= lr * (m_ / (1.0 - beta1**t)) / (np.sqrt(v_ / (1.0 - beta2**t)) + eps)


def write(w, source, h, longest=16):
    """Run freely: the likeliest word each time, after the model's own, until all have ended."""
    memory, seen, _ = encode(w, source, h)
    target = np.full((len(source), 1), BEGIN)
    while target.shape[1] < longest and not (target == END).any(axis=1).all():
        logits, _ = decode(w, target, memory, seen, h)
        target = np.append(target, logits[:, -1:].argmax(axis=-1), axis=1)
    return [row[1 : [*row, END].index(END)].tolist() for row in target]


def train(w, numbers, steps=600, batch=64, lr=3e-3, h=4, seed=0):
    """Batches at random, and a learning rate that rises for 100 steps, then falls to 0."""
    (source, target), rng = pairs_of(numbers), np.random.default_rng(seed)
    m, v = ({name: [np.zeros_like(a) for a in arrays] for name, arrays in w.items()} for _ in "mv")
    print(f"largest error of a gradient: {check_gradients(w, source[:9], target[:9], h):.1e}")
    for t in range(1, steps + 1):
        rows = rng.integers(0, len(source), batch)
        loss, g = loss_and_gradients(w, source[rows], target[rows], h)
        adam_step(w, g, m, v, t, lr * min(t / 100, (steps + 1 - t) / (steps - 99)))
        if t % 100 == 0:
            print(f"step {t}  loss {loss:.3f} nats a word")


def what_it_reads(w, n, h):
    """Print a row for each word: the darker a digit's column, the larger its attention weight."""
    source, target = pairs_of([n])
    memory, seen, _ = encode(w, source, h)
    _, (caches, _) = decode(w, target[:, :-1], memory, seen, h)
    [_, (_, _, (*_, heads_cache, _), _)], *_ = caches[blocks_of(w, "decoder")[-1]]
    A = heads_cache[-1][0].mean(axis=0)  # of the last cross-attention, the mean over heads
    print(f"{'':12}" + "  ".join(str(n)))
    for word, row in zip(target[0, 1:], A, strict=True):
        print(f"{WORDS[word]:12}" + "  ".join(" .:+#@"[int(weight * 5.99)] for weight in row))


def main(h=4):
    """Train on some numbers up to a million, test on others, and look at one of these."""
    rng = np.random.default_rng(0)
    numbers = rng.permutation(np.unique((10.0 ** rng.uniform(0.0, 6.0, 60_000)).astype(int)))
    unseen, w = numbers[:500], make_weights(rng, n_source=11, n_target=len(WORDS))
    train(w, numbers[500:], h=h)
    written = [" ".join(WORDS[word] for word in each) for each in write(w, pairs_of(unseen)[0], h)]
    right = sum(text == " ".join(in_words(n)) for text, n in zip(written, unseen, strict=True))
    print(*(f"{n:6} {text}" for n, text in zip(unseen[:5], written, strict=False)), sep="\n")
    print(f"{right} of {len(unseen)} numbers that it has not seen are right")
    what_it_reads(w, unseen[3], h)


if __name__ == "__main__":
    main()
