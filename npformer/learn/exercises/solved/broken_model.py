# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""A broken model: find what is wrong with it, and mend it.

Below are four parts of an encoder and a function that builds a model from them. The model runs, and
its loss goes down. Yet it has four bugs, which people have made in published code; the museum of
bugs (docs/museum.md) has each of them. There is no blank: change what is wrong, and no more.

`check` runs the museum's invariants on the model and says which of them fails, but not where. Some
bugs make a wrong gradient; others are wrong forward passes with a backward pass that agrees, and no
gradient check sees those.
"""

import numpy as np

import npformer as nf
from npformer import functional as F
from npformer.layers import Dropout, LayerNorm
from npformer.mixers import Attention
from npformer.models import EncoderBlock

# %% Layer norm


class MyLayerNorm(LayerNorm):
    """y = gamma (x - mean) / sqrt(var + eps) + beta."""

    def forward(self, x, context):
        """Normalise each row, then scale and shift."""
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        inverse_std = 1.0 / np.sqrt(variance + self.eps)
        normalised = centred * inverse_std
        return self.gamma.value * normalised + self.beta.value, (normalised, inverse_std)

    def backward(self, dy, cache, gradients):
        """Gradients of gamma and beta, and dx."""
        normalised, inverse_std = cache
        d = normalised.shape[-1]
        gradients.add(self.gamma, (dy * normalised).reshape(-1, d).sum(axis=0))
        gradients.add(self.beta, dy.reshape(-1, d).sum(axis=0))
        g = dy * self.gamma.value
        along_mean = g.mean(axis=-1, keepdims=True)
        along_row = (g * normalised).mean(axis=-1, keepdims=True)
        return (g - along_mean - normalised * along_row) * inverse_std


# %% Dropout


class MyDropout(Dropout):
    """Drop some entries in training; do nothing at evaluation."""

    def forward(self, x, context):
        """context.training tells training from evaluation."""
        kept, scale = np.ones(x.shape, dtype=bool), 1.0
        if context.training:
            kept = context.dropout_generator().random(x.shape) >= self.rate
            scale = 1.0 / (1.0 - self.rate)
        return np.where(kept, x, 0.0) * scale, (kept, scale)

    def backward(self, dy, cache, gradients):
        """Entries that were dropped have no gradient."""
        kept, scale = cache
        return np.where(kept, dy, 0.0) * scale


# %% Attention


class MyAttention(Attention):
    """softmax(Q K^T / sqrt(d_head)) V for each head."""

    def forward(self, x, context):
        """Return the heads, side by side, through the last map."""
        merged, heads_cache = self.heads(x, context)
        y, output_cache = self.output.forward(merged, context)
        return y, (heads_cache, output_cache)

    def backward(self, dy, cache, gradients):
        """Gradient of `forward`."""
        heads_cache, output_cache = cache
        dmerged = self.output.backward(dy, output_cache, gradients)
        return self.heads_backward(dmerged, heads_cache, gradients)

    def heads(self, x, context):
        """Return the heads side by side, (batch, length, d_model), and a cache."""
        layers = self.query, self.key, self.value
        projected = [layer.forward(x, context) for layer in layers]
        query, key, value = (F.split_heads(y, self.n_heads) for y, _ in projected)
        scores, scores_cache = F.attention_scores(query, key)  # (batch, heads, length, length)
        seen = np.ones(scores.shape[-2:], dtype=bool)
        if self.causal:  # token i sees the tokens 0 to i
            seen = np.tril(seen)
        if context.mask is not None:  # nobody sees padding
            seen = seen & context.mask[:, None, None, :]
        y, average_cache = F.average(scores, value, np.broadcast_to(seen, scores.shape))
        return F.merge_heads(y), ([cache for _, cache in projected], scores_cache, average_cache)

    def heads_backward(self, dmerged, cache, gradients):
        """Gradient of `heads`."""
        caches, scores_cache, average_cache = cache
        dy = F.split_heads(dmerged, self.n_heads)
        dscores, dvalue = F.average_backward(dy, average_cache)
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        layers = self.query, self.key, self.value
        dx = 0.0
        for layer, d, of_layer in zip(layers, (dquery, dkey, dvalue), caches, strict=True):
            dx = dx + layer.backward(F.merge_heads(d), of_layer, gradients)
        return dx


# %% The block


class MyBlock(EncoderBlock):
    """h = norm(x + mixer(x)), y = norm(h + feed_forward(h))."""

    def __init__(self, config, seed):
        super().__init__(config, seed=seed, dtype="float64")
        d_model, rate = config.d_model, config.dropout
        self.mixer = MyAttention(
            d_model, config.n_heads, causal=config.causal, seed=seed, dtype="float64"
        )
        self.mixer_dropout = MyDropout(rate)
        self.mixer_norm = MyLayerNorm(d_model, dtype="float64")
        self.feed_forward_dropout = MyDropout(rate)
        self.feed_forward_norm = MyLayerNorm(d_model, dtype="float64")

    def forward(self, x, context):
        """Two sublayers, each with dropout, residual connection and norm."""
        mixed, mix_cache = self.mixer.forward(x, context)
        dropped, drop_cache = self.mixer_dropout.forward(mixed, context)
        h, norm_cache = self.mixer_norm.forward(x + dropped, context)
        fed, feed_cache = self.feed_forward.forward(h, context)
        dropped, drop_cache_2 = self.feed_forward_dropout.forward(fed, context)
        y, norm_cache_2 = self.feed_forward_norm.forward(h + dropped, context)
        return y, (mix_cache, drop_cache, norm_cache, feed_cache, drop_cache_2, norm_cache_2)

    def backward(self, dy, cache, gradients):
        """The forward pass from bottom to top."""
        mix_cache, drop_cache, norm_cache, feed_cache, drop_cache_2, norm_cache_2 = cache
        dsum = self.feed_forward_norm.backward(dy, norm_cache_2, gradients)
        dfed = self.feed_forward_dropout.backward(dsum, drop_cache_2, gradients)
        dh = dsum + self.feed_forward.backward(dfed, feed_cache, gradients)
        dsum = self.mixer_norm.backward(dh, norm_cache, gradients)
        dmixed = self.mixer_dropout.backward(dsum, drop_cache, gradients)
        return dsum + self.mixer.backward(dmixed, mix_cache, gradients)


# %% The model


def build(n_features=8, n_classes=3, causal=True):
    """A classifier of sequences with two of these blocks."""
    config = nf.EncoderConfig(
        d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=5, dropout=0.2, causal=causal
    )
    model = nf.SequenceClassifier(config, n_classes, n_features=n_features, dtype="float64")
    model.encoder.blocks[:] = [MyBlock(config, seed) for seed in range(config.n_layers)]
    return model.flatten()
