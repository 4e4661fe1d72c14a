"""Rank collapse over depth, as in Dong et al. (2021, arXiv 2103.03404), with random weights."""

import numpy as np

import npformer as nf
from benchmarks.results_files import markdown
from npformer import layers

LENGTH, D_MODEL, HEADS, DEPTH = 32, 64, 4, 24
SEEDS = range(5)
SHOWN = (1, 2, 4, 8, 16, 24)

# Has a layer a feed-forward network, a residual connection, a norm after the sum?
VARIANTS = {
    "attention alone": (False, False, False),
    "+ feed-forward": (True, False, False),
    "+ norm": (False, False, True),
    "+ feed-forward + norm": (True, False, True),
    "+ residual": (False, True, False),
    "+ residual + feed-forward": (True, True, False),
    "+ residual + norm": (False, True, True),
    "the whole block": (True, True, True),
}


def residual(x):
    """Return |x - mean token| / |x|, both Frobenius norms: 0 if all tokens are equal."""
    return float(np.linalg.norm(x - x.mean(axis=-2, keepdims=True)) / np.linalg.norm(x))


def depths(seed, feed_forward, residual_connection, norm):
    """Return the residual after 0, 1, ... layers with their initial weights, in float64."""
    rng = np.random.default_rng(seed)
    config = nf.EncoderConfig(d_model=D_MODEL, n_heads=HEADS, d_ff=4 * D_MODEL, max_len=LENGTH)
    x = rng.standard_normal((1, LENGTH, D_MODEL))
    normed = layers.LayerNorm(D_MODEL, dtype="float64")
    found = [residual(x)]
    for _ in range(DEPTH):
        block = nf.EncoderBlock(config, seed=rng, dtype="float64")
        for sublayer in (block.mixer, block.feed_forward)[: 1 + feed_forward]:
            y = sublayer(x)
            x = x + y if residual_connection else y
            x = normed(x) if norm else x
        found.append(residual(x))
    return found


def collapse(say):
    """Return the geometric mean over seeds, for each variant and depth."""
    found = {}
    for name, what in VARIANTS.items():
        logs = np.mean([np.log(np.maximum(depths(s, *what), 1e-300)) for s in SEEDS], axis=0)
        found[name] = [float(f"{value:.3g}") for value in np.exp(logs)]
        say({name: found[name][-1]})
    return found


def collapse_table(found):
    """Return a row for each variant, and columns for some depths."""
    rows = [(name, *(f"{values[n]:.1e}" for n in SHOWN)) for name, values in found.items()]
    return markdown(("layers", *SHOWN), rows)
