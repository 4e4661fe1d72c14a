"""A block of the encoder, and the two kinds of residual connection in it."""

from functools import partial
from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Seed, array_module, checks, generators
from npformer.layers import FFNS, Dropout
from npformer.layers.feed_forward import NoFeedForward
from npformer.layers.sequential import Chain, forward_chain
from npformer.mixers import MIXERS, Mixer, State
from npformer.mixers.probe import check_looks_back
from npformer.models.config import EncoderConfig


def post_norm(
    sublayer: Layer, dropout: Layer, norm: Layer, x: Array, context: Context
) -> tuple[Array, Any]:
    """z = norm(x + dropout(sublayer(x))): the norm is applied to the sum."""
    y, sublayer_cache = sublayer.forward(x, context)
    dropped, dropout_cache = dropout.forward(y, context)
    z, norm_cache = norm.forward(x + dropped, context)
    return z, (sublayer_cache, dropout_cache, norm_cache)


def post_norm_backward(
    sublayer: Layer, dropout: Layer, norm: Layer, dz: Array, cache: Any, gradients: Gradients
) -> Array:
    """Gradient of `post_norm`: both terms of the sum get the gradient of the sum.

    The derivative of s_j = x_j + f_j(x) with respect to x_i is [i = j] plus that of f_j. Multiplied
    by the gradient of s_j and summed over j, the first gives the gradient of s itself, which goes
    around the sublayer, and the second what the sublayer's backward pass makes of it. The norm
    comes after the sum, so its backward pass comes first.
    """
    sublayer_cache, dropout_cache, norm_cache = cache
    dsum = norm.backward(dz, norm_cache, gradients)
    dy = dropout.backward(dsum, dropout_cache, gradients)
    return dsum + sublayer.backward(dy, sublayer_cache, gradients)


def pre_norm(
    sublayer: Layer, dropout: Layer, norm: Layer, x: Array, context: Context
) -> tuple[Array, Any]:
    """z = x + dropout(sublayer(norm(x))): the norm is applied to the sublayer's input."""
    n, norm_cache = norm.forward(x, context)
    y, sublayer_cache = sublayer.forward(n, context)
    dropped, dropout_cache = dropout.forward(y, context)
    return x + dropped, (sublayer_cache, dropout_cache, norm_cache)


def pre_norm_backward(
    sublayer: Layer, dropout: Layer, norm: Layer, dz: Array, cache: Any, gradients: Gradients
) -> Array:
    """Gradient of `pre_norm`: both terms of the sum get the gradient of the sum.

    The sum is the last step, so dz goes around as it is, and passes sublayer and norm on the way
    through.
    """
    sublayer_cache, dropout_cache, norm_cache = cache
    dy = dropout.backward(dz, dropout_cache, gradients)
    dn = sublayer.backward(dy, sublayer_cache, gradients)
    return dz + norm.backward(dn, norm_cache, gradients)


RESIDUALS: dict[str, tuple[Any, Any]] = {
    "post": (post_norm, post_norm_backward),
    "pre": (pre_norm, pre_norm_backward),
}
"""What ``EncoderConfig(norm=...)`` takes."""


class Residual:
    """Half of a block: the passes of its residual connection, with its layers filled in."""

    def __init__(self, passes: tuple[Any, Any], *layers: Layer) -> None:
        self.forward, self.backward = (partial(each, *layers) for each in passes)


class MixerStep:
    """A mixer that continues from a state, as a layer with one input for a call of a block.

    That way the residual connections are the same two functions. The new state is in `state` after
    the forward pass.
    """

    def __init__(self, mixer: Mixer, state: State) -> None:
        self.mixer = mixer
        self.state = state

    def forward(self, x: Array, context: Context) -> tuple[Array, None]:
        """Return what the mixer makes of the tokens that follow."""
        y, self.state = self.mixer.prefill(x, self.state, context)
        return y, None


class EncoderBlock(Chain):
    """A mixer, then a feed-forward network, each with a residual connection and a norm.

    ``config.norm`` chooses between `post_norm` (Vaswani et al., 2017) and `pre_norm`. With
    ``config.ffn="none"`` the block is its mixer alone: the residual connection and the norm of the
    second sublayer go with the network. What would remain of them, norm(x + 0), is a second norm of
    what is normalised already (post-norm), or x and a norm that nothing reads (pre-norm).

    Parameters
    ----------
    config : EncoderConfig
    mixer : str
        The mixer of this block: a name in `MIXERS`, with options if it has any.
    layer : int
        Which block this is, from 0, where settings differ from layer to layer.
    """

    def __init__(
        self,
        config: EncoderConfig,
        mixer: str = "attention",
        *,
        layer: int = 0,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        rng = generators.from_seed(seed)
        self._add_mixer(config, mixer, layer, rng, dtype)
        self._add_feed_forward(config, rng, dtype)

    def _add_mixer(
        self, config: EncoderConfig, mixer: str, layer: int, rng: Any, dtype: str
    ) -> None:
        checks.instance("config", config, EncoderConfig)
        checks.whole("layer", layer, 0, config.n_layers - 1)
        self.norm, self._d_model = config.norm, config.d_model
        self.mixer = MIXERS.make(mixer, config.mixer_settings(layer), seed=rng, dtype=dtype)
        if config.causal:
            check_looks_back(self.mixer, config.d_model, config.max_len, dtype)
        self.mixer_dropout = Dropout(config.dropout if self.mixer.dropout_follows else 0.0)
        normed = config.starts_normed and layer == 0
        self.mixer_norm = Dropout(0.0) if normed else config.make_norm(dtype)  # 0: the identity

    def _add_feed_forward(self, config: EncoderConfig, rng: Any, dtype: str) -> None:
        sizes = config.d_model, config.d_ff, config.activation
        drawn: dict[str, Any] = {"seed": rng, "dtype": dtype, "initializer": config.initializer}
        if config.ffn_dropout > 0.0:  # networks from elsewhere need not know of it, nor of a bias
            drawn["dropout"] = config.ffn_dropout
        if not config.bias:
            drawn["bias"] = False
        feed_forward = FFNS.make(config.ffn, *sizes, **drawn)
        if not isinstance(feed_forward, NoFeedForward):
            self.feed_forward = feed_forward
            self.feed_forward_dropout = Dropout(config.dropout)
            self.feed_forward_norm = config.make_norm(dtype)

    def chain(self) -> list[Residual]:
        """Return the halves of the block: the mixer's, then the feed-forward network's."""
        return [Residual(self.residual(), *part) for part in self.parts()]

    def halves(self, mixer: Any, *between: Any) -> list[Residual]:
        """Return the residual connections around a mixer, other sublayers, and the network."""
        (_, *mix), *network = self.parts()
        return [Residual(self.residual(), *part) for part in ((mixer, *mix), *between, *network)]

    def parts(self) -> tuple[tuple[Layer, Layer, Layer], ...]:
        """Return sublayer, dropout and norm of each half of the block: of one, or of both."""
        mix = self.mixer, self.mixer_dropout, self.mixer_norm
        if not hasattr(self, "feed_forward"):
            return (mix,)
        return mix, (self.feed_forward, self.feed_forward_dropout, self.feed_forward_norm)

    def start(self, batch: int, length: int) -> Any:
        """Return the state before the first token of each sequence, of up to `length` tokens."""
        like = next(iter(self.named_parameters().values())).value
        return self.mixer.start(batch, length, array_module(like).empty(self._d_model, like.dtype))

    def prefill(self, x: Array, state: Any, context: Context) -> tuple[Array, Any]:
        """Return y at evaluation for the tokens after those of a state, and the new state.

        See `Mixer.prefill`.
        """
        step = MixerStep(self.mixer, state)
        return forward_chain(self.halves(step), x, context)[0], step.state

    def residual(self) -> tuple[Any, Any]:
        """Return the forward and the backward function of the residual connections."""
        return RESIDUALS[self.norm]
