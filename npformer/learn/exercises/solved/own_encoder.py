# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""An encoder made of your own pairs, trained on handwritten digits.

An image of 8 x 8 pixels is a sequence: each of its rows is a token with 8 features.

    h = linear(x) + positions
    h = h + multi_head(layer_norm(h))                   the two halves of a block,
    h = h + linear(relu(linear(layer_norm(h))))         N_BLOCKS times
    logits = linear(pooling(layer_norm(h)))             10 for each image

The functions are those that you wrote in exercises 01, 03, 06, 07, 13, 16 and 17:
`yours` takes them from your files beside this one. If one is still to do, do it first, or write the
two functions here in place of its line.

You put them together, forward and backward, and write the step of training. A referee compares your
logits with the formulas above, as soon as the encoder is written, and your gradients with central
differences. Then it calls `train`, which has a minute, and asks for 95 % of 360 digits that `train`
has not seen. In `train`, everything is yours to change.
"""

import numpy as np

import npformer as nf
from npformer.learn.exercises.yours import yours

N_BLOCKS, N_HEADS = 2, 4

# %% Given: your pairs

# linear(x, W, b)                         linear_backward(dy, cache): dx, dW, db
# relu(x)                                 relu_backward(dy, cache): dx
# layer_norm(x, gamma, beta)              layer_norm_backward(dy, cache): dx, dgamma, dbeta
# multi_head(x, Wq, Wk, Wv, Wo, n_heads)  multi_head_backward(dy, cache): dx, dWq, dWk, dWv, dWo
# pooling(x, mask)                        pooling_backward(dy, cache): dx
# cross_entropy(logits, labels)           cross_entropy_backward(dloss, cache): dlogits
# adam_update(theta, g, m, v, t, lr)      returns the new theta, m and v
#
# Each forward pass returns its result and a cache. mask is (batch, length), of bool: True for a
# token, False for padding. An image has no padding.

linear, linear_backward = yours("linear", "linear_backward")
relu, relu_backward = yours("relu", "relu_backward")
layer_norm, layer_norm_backward = yours("layer_norm", "layer_norm_backward")
multi_head, multi_head_backward = yours("multi_head", "multi_head_backward")
pooling, pooling_backward = yours("pooling", "pooling_backward")
cross_entropy, cross_entropy_backward = yours("cross_entropy", "cross_entropy_backward")
adam_update = yours("adam_update")


# %% Given: the parameters


def parameters(d_model=32, d_ff=64, seed=0):
    """Return the parameters by name, in the order of the forward pass; i is a block's number."""
    rng = np.random.default_rng(seed)

    def weight(n, m):
        return (rng.normal(size=(n, m)) / np.sqrt(n)).astype("float32")

    def row(n, value=0.0):
        return np.full(n, value, dtype="float32")

    p = {"We": weight(8, d_model), "be": row(d_model), "positions": weight(8, d_model)}
    for i in range(N_BLOCKS):
        p |= {f"gamma1.{i}": row(d_model, 1.0), f"beta1.{i}": row(d_model)}
        p |= {f"{name}.{i}": weight(d_model, d_model) for name in ("Wq", "Wk", "Wv", "Wo")}
        p |= {f"gamma2.{i}": row(d_model, 1.0), f"beta2.{i}": row(d_model)}
        p |= {f"W1.{i}": weight(d_model, d_ff), f"b1.{i}": row(d_ff)}
        p |= {f"W2.{i}": weight(d_ff, d_model), f"b2.{i}": row(d_model)}
    p |= {"gamma": row(d_model, 1.0), "beta": row(d_model)}
    return p | {"W": weight(d_model, 10), "b": row(10)}


# %% Your part: a block


def block(h, p, i):
    """Return the new h, and a cache; both h are (batch, length, d_model)."""
    # your code
    n, norm1 = layer_norm(h, p[f"gamma1.{i}"], p[f"beta1.{i}"])
    weights = (p[f"{name}.{i}"] for name in ("Wq", "Wk", "Wv", "Wo"))
    a, attention = multi_head(n, *weights, N_HEADS)
    h = h + a
    n, norm2 = layer_norm(h, p[f"gamma2.{i}"], p[f"beta2.{i}"])
    u, first = linear(n, p[f"W1.{i}"], p[f"b1.{i}"])
    r, active = relu(u)
    f, second = linear(r, p[f"W2.{i}"], p[f"b2.{i}"])
    return h + f, (norm1, attention, norm2, first, active, second)
    # end of your code


def block_backward(dh, cache, i):
    """Return the gradient of the h that came in, and those of the block's parameters by name."""
    # your code
    norm1, attention, norm2, first, active, second = cache
    g = {}
    d, g[f"W2.{i}"], g[f"b2.{i}"] = linear_backward(dh, second)
    d = relu_backward(d, active)
    d, g[f"W1.{i}"], g[f"b1.{i}"] = linear_backward(d, first)
    d, g[f"gamma2.{i}"], g[f"beta2.{i}"] = layer_norm_backward(d, norm2)
    dh = dh + d
    d, g[f"Wq.{i}"], g[f"Wk.{i}"], g[f"Wv.{i}"], g[f"Wo.{i}"] = multi_head_backward(dh, attention)
    d, g[f"gamma1.{i}"], g[f"beta1.{i}"] = layer_norm_backward(d, norm1)
    return dh + d, g
    # end of your code


# %% Your part: the encoder


def encoder(x, p):
    """Return the logits, (batch, 10), of images x, (batch, 8, 8), and a cache."""
    # your code
    h, embedding = linear(x, p["We"], p["be"])
    h = h + p["positions"]
    blocks = []
    for i in range(N_BLOCKS):
        h, cache = block(h, p, i)
        blocks.append(cache)
    n, norm = layer_norm(h, p["gamma"], p["beta"])
    pooled, pool = pooling(n, np.ones(n.shape[:2], dtype=bool))  # no padding
    logits, head = linear(pooled, p["W"], p["b"])
    return logits, (embedding, blocks, norm, pool, head)
    # end of your code


def encoder_backward(dlogits, cache):
    """Return the gradients of all parameters, by name."""
    # your code
    embedding, blocks, norm, pool, head = cache
    g = {}
    d, g["W"], g["b"] = linear_backward(dlogits, head)
    d = pooling_backward(d, pool)
    d, g["gamma"], g["beta"] = layer_norm_backward(d, norm)
    for i in reversed(range(N_BLOCKS)):
        d, of_block = block_backward(d, blocks[i], i)
        g |= of_block
    g["positions"] = d.sum(axis=0)  # every image of the batch has the same
    _, g["We"], g["be"] = linear_backward(d, embedding)
    return g
    # end of your code


# %% Your part: a step of training


def train(x, labels, epochs=20, batch=32, lr=0.005, seed=0):
    """Return parameters that know the digits of x, (n, 8, 8); labels (n,) are 0 to 9."""
    p, rng = parameters(seed=seed), np.random.default_rng(seed)
    m = {name: np.zeros_like(array) for name, array in p.items()}
    v = {name: np.zeros_like(array) for name, array in p.items()}
    t, steps = 0, epochs * -(-len(x) // batch)
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for begin in range(0, len(x), batch):
            rows = order[begin : begin + batch]  # the images of this step
            t += 1
            rate = lr * (1.0 - t / steps)  # of this step: it falls to 0
            # your code
            logits, cache = encoder(x[rows], p)
            _, loss_cache = cross_entropy(logits, labels[rows])
            g = encoder_backward(cross_entropy_backward(1.0, loss_cache), cache)
            for name in p:
                p[name], m[name], v[name] = adam_update(p[name], g[name], m[name], v[name], t, rate)
            # end of your code
    return p


# %% Try it: run this file

if __name__ == "__main__":
    digits = nf.data.digits()
    trained = train(*digits.train)
    for which in ("train", "test"):
        images, right = getattr(digits, which)
        found = encoder(images, trained)[0].argmax(axis=-1)
        print(f"{which}: {(found == right).mean():.1%} of {len(right)} are right")
