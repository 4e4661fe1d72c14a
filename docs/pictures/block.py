"""The gradient's paths through a block, and its norm over the depth of an encoder."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

import npformer as nf

INK, SKIP, THROUGH = "#444444", "#0072b2", "#d55e00"
DEPTH, WIDTH, LENGTH = 24, 64, 16


def config(norm):
    """Return the configuration of both pictures."""
    sizes = {"d_model": WIDTH, "n_heads": 4, "d_ff": 4 * WIDTH, "max_len": LENGTH}
    return nf.EncoderConfig(n_layers=DEPTH, norm=norm, **sizes)


def tokens(seed):
    """Return tokens, and a gradient of norm 1."""
    x, dy = np.random.default_rng(seed).normal(size=(2, 8, LENGTH, WIDTH))
    return x, dy / np.linalg.norm(dy)


def sublayers(block):
    """Return the two sublayers of a block, each with its dropout and its norm."""
    mixer = block.mixer, block.mixer_dropout, block.mixer_norm
    network = block.feed_forward, block.feed_forward_dropout, block.feed_forward_norm
    return mixer, network


def draw():
    """Return both pictures."""
    return {"ways": ways(), "depth": depth()}


# A block ------------------------------------------------------------------------------------------


def half_norms(norm, half, dz, caches):
    """Return the gradient's norm at each point of half a block, and the gradient of its input."""
    sublayer, _, layer_norm = half
    sublayer_cache, _, norm_cache = caches
    throw_away = nf.Gradients(sublayer), nf.Gradients(layer_norm)
    if norm == "post":
        dsum = layer_norm.backward(dz, norm_cache, throw_away[1])
        through = sublayer.backward(dsum, sublayer_cache, throw_away[0])
        found = [dz, dsum, through]
    else:
        dsum = dz
        dn = sublayer.backward(dz, sublayer_cache, throw_away[0])
        through = layer_norm.backward(dn, norm_cache, throw_away[1])
        found = [dz, dn, through]
    return [np.linalg.norm(each) for each in found], dsum + through


def ways():
    """Draw a post-norm and a pre-norm block with the norms of their gradients."""
    figure, axis = plt.subplots(figsize=(7.4, 4.1), layout=None)
    axis.set_position([0, 0, 1, 1])
    axis.set(xlim=(0, 740), ylim=(410, 0))
    axis.axis("off")
    x, dz = tokens(0)
    for norm, y in (("post", 130), ("pre", 335)):
        block = nf.EncoderBlock(config(norm), seed=0, dtype="float64")
        _, (mix_cache, feed_cache) = block.forward(x, nf.Context())
        mix, feed = sublayers(block)
        of_feed, dh = half_norms(norm, feed, dz, feed_cache)
        of_mix, dx = half_norms(norm, mix, dh, mix_cache)
        axis.text(12, y - 92, f"{norm}-norm", fontsize=11, weight="bold")
        write(axis, 32, y, "x", np.linalg.norm(dx), INK)
        half(axis, 50, y, norm, "mixer", of_mix)
        write(axis, 365, y, "h", np.linalg.norm(dh), INK)
        half(axis, 382, y, norm, "FFN", of_feed)
        write(axis, 705, y, "z", np.linalg.norm(dz), INK)
    return figure


def half(axis, left, y, norm, name, norms):
    """Draw half a block, starting at `left`: two boxes, the sum, and the path around."""
    dz, middle, through = norms
    post = norm == "post"
    fork = left + 22
    if post:
        boxes = ((name, left + 110), ("norm", left + 250))
        plus = left + 180
    else:
        boxes = (("norm", left + 105), (name, left + 192))
        plus = left + 262
    axis.plot([left, left + 300], [y, y], c=THROUGH, lw=1.2, zorder=1)
    axis.plot([fork, fork, plus, plus], [y, y - 55, y - 55, y - 10], c=SKIP, lw=1.8, zorder=1)
    # the gradient runs from right to left
    axis.plot((fork + plus) / 2, y - 55, marker="<", c=SKIP, ms=7)
    axis.plot(fork + 18, y, marker="<", c=THROUGH, ms=6)
    axis.plot(fork, y, "o", c=INK, ms=5)
    for text, middle_of_box in boxes:
        shape = {"boxstyle": "round,pad=0,rounding_size=5", "fc": "#f2f2f2", "ec": INK}
        axis.add_patch(FancyBboxPatch((middle_of_box - 28, y - 17), 56, 34, zorder=2, **shape))
        axis.text(middle_of_box, y, text, ha="center", va="center", fontsize=10, zorder=3)
    axis.plot(plus, y, "o", ms=17, mfc="white", mec=INK, zorder=2)
    axis.text(plus, y - 0.5, "+", ha="center", va="center", fontsize=13, zorder=3)
    around = middle if post else dz
    number = {"ha": "center", "fontsize": 9.5}
    axis.text((fork + plus) / 2, y - 63, f"{around:.3f}", color=SKIP, **number)
    axis.text(fork + 28, y + 20, f"{through:.3f}", color=THROUGH, **number)
    between = (boxes[0][1] + boxes[1][1]) / 2 if not post else (plus + boxes[1][1]) / 2 - 9
    axis.text(between, y + 33, f"{middle:.3f}", color=THROUGH, **number)
    axis.plot([between] * 2, [y + 4, y + 20], c=THROUGH, lw=0.6)


def write(axis, x, y, name, norm, colour):
    """Write a wire's label, and the norm of its gradient below."""
    axis.text(x, y - 8, name, ha="center", fontsize=11, style="italic", color=colour)
    axis.text(x, y + 20, f"{norm:.3f}", ha="center", fontsize=9.5, weight="bold", color=colour)


# An encoder ---------------------------------------------------------------------------------------


def post_norm(sublayer, dropout, norm, x, context):
    """z = norm(x + sublayer(x)): half of a post-norm block, without dropout."""
    y, sublayer_cache = sublayer.forward(x, context)
    z, norm_cache = norm.forward(x + y, context)
    return z, (sublayer_cache, None, norm_cache)


def post_norm_backward(sublayer, dropout, norm, dz, cache, gradients):
    """Gradient of `post_norm`."""
    sublayer_cache, _, norm_cache = cache
    dsum = norm.backward(dz, norm_cache, gradients)
    return dsum + sublayer.backward(dsum, sublayer_cache, gradients)


def pre_norm(sublayer, dropout, norm, x, context):
    """z = x + sublayer(norm(x)): half of a pre-norm block, without dropout."""
    n, norm_cache = norm.forward(x, context)
    y, sublayer_cache = sublayer.forward(n, context)
    return x + y, (sublayer_cache, None, norm_cache)


def pre_norm_backward(sublayer, dropout, norm, dz, cache, gradients):
    """Gradient of `pre_norm`."""
    sublayer_cache, _, norm_cache = cache
    dn = sublayer.backward(dz, sublayer_cache, gradients)
    return dz + norm.backward(dn, norm_cache, gradients)


def no_sum(sublayer, dropout, norm, x, context):
    """z = norm(sublayer(x)): what half a block would be without the sum."""
    y, sublayer_cache = sublayer.forward(x, context)
    z, norm_cache = norm.forward(y, context)
    return z, (sublayer_cache, None, norm_cache)


def no_sum_backward(sublayer, dropout, norm, dz, cache, gradients):
    """Gradient of `no_sum`: a chain of two."""
    sublayer_cache, _, norm_cache = cache
    return sublayer.backward(norm.backward(dz, norm_cache, gradients), sublayer_cache, gradients)


def alone(sublayer, dropout, norm, x, context):
    """z = sublayer(x)."""
    return sublayer.forward(x, context)


def alone_backward(sublayer, dropout, norm, dz, cache, gradients):
    """Gradient of `alone`."""
    return sublayer.backward(dz, cache, gradients)


KINDS = {
    "pre": (pre_norm, pre_norm_backward),
    "post": (post_norm, post_norm_backward),
    "norm": (no_sum, no_sum_backward),
    "alone": (alone, alone_backward),
}


def over_depth(kind, seed):
    """Return the gradient's norm below each block, in total and through the skips alone."""
    forward, backward = KINDS[kind]
    encoder = nf.Encoder(config("pre" if kind == "pre" else "post"), seed=seed, dtype="float64")
    x, dy = tokens(100 + seed)
    halves = [half for block in encoder.blocks for half in sublayers(block)]
    caches = []
    for each in halves:
        x, cache = forward(*each, x, nf.Context())
        caches.append(cache)
    gradients, skip = nf.Gradients(encoder), dy
    norms, skips = [1.0], [1.0]
    for each, cache in zip(reversed(halves), reversed(caches), strict=True):
        dy = backward(*each, dy, cache, gradients)
        if kind == "post":
            skip = each[2].backward(skip, cache[2], gradients)
        norms.append(np.linalg.norm(dy))
        skips.append(np.linalg.norm(skip))
    return norms[::-2], skips[::-2]


def depth():
    """Draw the norms over the depth of four kinds of encoder, with five seeds each."""
    figure, (whole, around) = plt.subplots(1, 2, figsize=(7.4, 3.2), sharey=True)
    below = np.arange(DEPTH + 1)
    named = {
        "pre": ("pre-norm", SKIP),
        "post": ("post-norm", THROUGH),
        "norm": ("no sum", "#777777"),
        "alone": ("no sum, no norm", "#009e73"),
    }
    for kind, (label, colour) in named.items():
        runs = [over_depth(kind, seed) for seed in range(5)]
        for norms, _ in runs:
            whole.semilogy(below, norms, c=colour, lw=0.6, alpha=0.5)
        mean = np.exp(np.mean([np.log(norms) for norms, _ in runs], axis=0))
        whole.semilogy(below, mean, c=colour, label=label)
        if kind in ("pre", "post"):
            skips = np.exp(np.mean([np.log(skips) for _, skips in runs], axis=0))
            around.semilogy(below, skips, c=colour)
    whole.set_title("all ways together", fontsize=10)
    around.set_title("the way around all sublayers", fontsize=10)
    whole.set_ylabel("norm of the gradient")
    whole.legend(fontsize=9, frameon=False)
    for axis in (whole, around):
        axis.set_xlabel("blocks below")
        axis.set_xticks(range(0, DEPTH + 1, 4))
    return figure
