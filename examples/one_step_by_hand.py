"""What happens in one training step?
==================================

All of it, without layers: the pairs of ``nf.functional`` one after another, from pixels to the
loss, back to the gradient of every weight, and then Adam's update. The model's own step gives the
same loss and gradients, bit for bit. B images, L = 8 rows, d features, d_ff inside the feed-forward
network, h heads, C classes. ``dx, *g[name] = f_backward(...)`` puts the first result into dx, and
the list of the others, gradients of weights, into g.
"""

import os
from contextlib import suppress

# Beside other programs, several threads wait for each other: measured 4 to 18 times as slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # NumPy's BLAS reads it as it is loaded

import numpy as np

import npformer as nf

F = nf.functional


def loss_and_gradients_by_hand(p, x, y, n_layers, n_heads):
    """The forward pass, then the same lines from bottom to top. p["classify"] is [W, b]."""
    blocks = [f"encoder.blocks.{i}" for i in range(n_layers)]
    caches, g = [], {}

    # Forward: x is the sequence so far, and every line keeps what its backward line will need.
    x, embed_cache = F.linear(x, *p["embed.tokens"])  # (B, L, 8) -> (B, L, d)
    x = x + p["embed.positions"][0]  # (B, L, d) + (L, d)
    for at in blocks:
        q, q_cache = F.linear(x, *p[f"{at}.mixer.query"])  # (B, L, d)
        k, k_cache = F.linear(x, *p[f"{at}.mixer.key"])
        v, v_cache = F.linear(x, *p[f"{at}.mixer.value"])
        q, k, v = (F.split_heads(part, n_heads) for part in (q, k, v))  # (B, h, L, d / h)
        heads, heads_cache = F.scaled_dot_product_attention(q, k, v)  # (B, h, L, d / h)
        mixed, out_cache = F.linear(F.merge_heads(heads), *p[f"{at}.mixer.output"])  # (B, L, d)
        x, norm1_cache = F.layer_norm(x + mixed, *p[f"{at}.mixer_norm"])  # (B, L, d)
        before, before_cache = F.linear(x, *p[f"{at}.feed_forward.expand"])  # (B, L, d_ff)
        hidden, hidden_cache = F.gelu(before)  # (B, L, d_ff)
        fed, fed_cache = F.linear(hidden, *p[f"{at}.feed_forward.contract"])  # (B, L, d)
        x, norm2_cache = F.layer_norm(x + fed, *p[f"{at}.feed_forward_norm"])  # (B, L, d)
        of_attention = q_cache, k_cache, v_cache, heads_cache, out_cache, norm1_cache
        caches.append((of_attention, (before_cache, hidden_cache, fed_cache, norm2_cache)))
    pooled, pool_cache = F.mean_pooling(x)  # (B, L, d) -> (B, d)
    logits, classify_cache = F.linear(pooled, *p["classify"])  # (B, C)
    loss, loss_cache = F.softmax_cross_entropy(logits, y)  # ()

    # Backward, from bottom to top: da is the gradient of the loss with respect to a.
    dlogits = F.softmax_cross_entropy_backward(1.0, loss_cache)  # (B, C)
    dpooled, *g["classify"] = F.linear_backward(dlogits, classify_cache)  # (B, d); dW, db
    dx = F.mean_pooling_backward(dpooled, pool_cache)  # (B, L, d)
    for at in reversed(blocks):
        of_attention, (before_cache, hidden_cache, fed_cache, norm2_cache) = caches.pop()
        q_cache, k_cache, v_cache, heads_cache, out_cache, norm1_cache = of_attention
        dsum, *g[f"{at}.feed_forward_norm"] = F.layer_norm_backward(dx, norm2_cache)  # (B, L, d)
        dhidden, *g[f"{at}.feed_forward.contract"] = F.linear_backward(dsum, fed_cache)
        dbefore = F.gelu_backward(dhidden, hidden_cache)  # (B, L, d_ff)
        dx_fed, *g[f"{at}.feed_forward.expand"] = F.linear_backward(dbefore, before_cache)
        dx = dsum + dx_fed  # x went into the sum and into the network: (B, L, d)
        dsum, *g[f"{at}.mixer_norm"] = F.layer_norm_backward(dx, norm1_cache)
        dmerged, *g[f"{at}.mixer.output"] = F.linear_backward(dsum, out_cache)
        dheads = F.split_heads(dmerged, n_heads)  # (B, h, L, d / h)
        dq, dk, dv = F.scaled_dot_product_attention_backward(dheads, heads_cache)
        dx_v, *g[f"{at}.mixer.value"] = F.linear_backward(F.merge_heads(dv), v_cache)
        dx_k, *g[f"{at}.mixer.key"] = F.linear_backward(F.merge_heads(dk), k_cache)
        dx_q, *g[f"{at}.mixer.query"] = F.linear_backward(F.merge_heads(dq), q_cache)
        dx = dsum + (dx_v + (dx_k + dx_q))  # x went into the sum, v, k and q: (B, L, d)
    g["embed.positions"] = [dx.sum(axis=0)]  # (L, d): the same rows for every image
    _, *g["embed.tokens"] = F.linear_backward(dx, embed_cache)  # pixels are not trained
    return loss, g


def adam_by_hand(p, g, m, v, t, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Step t of Adam, from t = 1, in place."""
    for name in p:
        for theta, dtheta, m_, v_ in zip(p[name], g[name], m[name], v[name], strict=True):
            m_ += (1.0 - beta1) * (dtheta - m_)  # a moving average of gradients
            v_ += (1.0 - beta2) * (dtheta**2 - v_)  # and of their squares
            m_hat, v_hat = m_ / (1.0 - beta1**t), v_ / (1.0 - beta2**t)  # they began at 0
            theta -= lr * m_hat / (np.sqrt(v_hat) + eps)


def by_layer(named):
    """{"classify.weight": W, "classify.bias": b} -> {"classify": [W, b]}."""
    layers = {}
    for name, array in named.items():
        layers.setdefault(name.rpartition(".")[0], []).append(array)
    return layers


def build(dtype="float64"):
    """A small encoder and 16 images of digits."""
    config = nf.EncoderConfig(
        d_model=16, n_layers=2, n_heads=4, d_ff=32, max_len=8, positions="learned"
    )
    model = nf.SequenceClassifier(config, n_classes=10, n_features=8, seed=0, dtype=dtype)
    x, y = nf.data.digits(dtype=dtype).train
    return model, x[:16], y[:16]


def difference(one, other):
    """The largest difference between arrays under the same names."""
    pairs = [pair for name in one for pair in zip(one[name], other[name], strict=True)]
    return max(abs(a - b).max() for a, b in pairs)


if __name__ == "__main__":
    model, x, y = build()
    p = {name: [a.copy() for a in arrays] for name, arrays in by_layer(model.parameters()).items()}
    m = {name: [np.zeros_like(a) for a in arrays] for name, arrays in p.items()}
    v = {name: [np.zeros_like(a) for a in arrays] for name, arrays in p.items()}

    loss, g = loss_and_gradients_by_hand(p, x, y, n_layers=2, n_heads=4)
    with nf.use_kernels(False):  # the code that people read, without what makes it fast
        loss_of_model, gradients = model.loss_and_gradients(x, y)
    print(f"loss by hand {loss:.15f}, of the model {loss_of_model:.15f}")
    print(f"gradients by hand and of the model differ by {difference(g, by_layer(gradients))}")

    adam_by_hand(p, g, m, v, t=1)
    nf.Adam(model.parameters()).step(gradients)  # the same formula, multiplied out
    print(f"weights after Adam's step differ by {difference(p, by_layer(model.parameters())):.1e}")

    for t in range(2, 52):
        loss, g = loss_and_gradients_by_hand(p, x, y, n_layers=2, n_heads=4)
        adam_by_hand(p, g, m, v, t)
        if t % 10 == 1:
            print(f"step {t}, all by hand: loss {loss:.4f}")

    with suppress(ImportError):  # a picture, where matplotlib is installed
        import matplotlib.pyplot as plt

        figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
        norms = {name: sum((a**2).sum() for a in arrays) ** 0.5 for name, arrays in g.items()}
        axis.barh(list(norms), list(norms.values()))
        axis.tick_params(axis="y", labelsize=6)
        axis.set(xlabel=f"norm of the gradient in step {t}, from the loss, below, to the pixels")
        plt.show()
