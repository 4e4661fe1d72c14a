"""A block of the encoder: a mixer, then a feed-forward network, each with a residual connection."""

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Seed, array_module, checks, generators
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers import FFNS, Dropout
from npformer.mixers import MIXERS
from npformer.mixers.probe import check_looks_back
from npformer.models.config import EncoderConfig


@drop_class_from_names
class EncoderBlock(Layer):
    """A mixer, then a feed-forward network, each with a residual connection and a norm.

    Post-norm, as in Vaswani et al. (2017), applies the norm to the sum::

        x = norm(x + dropout(mixer(x)))
        x = norm(x + dropout(feed_forward(x)))

    Pre-norm applies the norm to the sublayer's input::

        x = x + dropout(mixer(norm(x)))
        x = x + dropout(feed_forward(norm(x)))

    In the backward pass both terms of a sum s = x + f(x) get the gradient of the sum. The
    derivative of s_j = x_j + f_j(x) with respect to x_i is [i = j] plus that of f_j. Multiplied by
    ds_j and summed over j, the first gives ds itself, which goes around the sublayer, and the
    second the sublayer's backward pass of ds.

    With ``config.ffn="none"`` the block is its mixer alone: the residual connection and the norm of
    the second sublayer go with the network. What would remain of them, norm(x + 0), is a second
    norm of what is normalised already (post-norm), or x and a norm that nothing reads (pre-norm).

    Parameters
    ----------
    config : EncoderConfig
    mixer : str
        The mixer of this block: a name in `MIXERS`, with options if it has any.
    layer : int
        Which block this is, from 0, where settings differ from layer to layer.

    Attributes
    ----------
    mixer, mixer_dropout, mixer_norm : Layer
    feed_forward, feed_forward_dropout, feed_forward_norm : Layer or None
        None with ``config.ffn="none"``.
    """

    feed_forward: Any
    feed_forward_dropout: Any
    feed_forward_norm: Any

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
        self.norm = config.norm
        self._d_model = config.d_model
        self.mixer = MIXERS.make(mixer, config.mixer_settings(layer), seed=rng, dtype=dtype)
        if config.causal:
            check_looks_back(self.mixer, config.d_model, config.max_len, dtype)
        self.mixer_dropout = Dropout(config.dropout if self.mixer.dropout_follows else 0.0)
        is_normed_already = config.starts_normed and layer == 0
        identity = Dropout(0.0)
        self.mixer_norm = identity if is_normed_already else config.make_norm(dtype)

    def _add_feed_forward(self, config: EncoderConfig, rng: Any, dtype: str) -> None:
        self.feed_forward = None
        self.feed_forward_dropout = None
        self.feed_forward_norm = None
        name, _ = FFNS.parse(config.ffn)
        if name == "none":
            return
        options: dict[str, Any] = {}
        if config.ffn_dropout > 0.0:  # networks from elsewhere need not know of it, nor of a bias
            options["dropout"] = config.ffn_dropout
        if not config.bias:
            options["bias"] = False
        self.feed_forward = FFNS.make(
            config.ffn,
            config.d_model,
            config.d_ff,
            config.activation,
            seed=rng,
            dtype=dtype,
            initializer=config.initializer,
            **options,
        )
        self.feed_forward_dropout = Dropout(config.dropout)
        self.feed_forward_norm = config.make_norm(dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self.feed_forward is None:
            return self.mixer_alone(x, context)
        if self.norm == "post":
            y, mixer_cache = self.mixer.forward(x, context)
            y, mixer_dropout_cache = self.mixer_dropout.forward(y, context)
            x, mixer_norm_cache = self.mixer_norm.forward(x + y, context)
            y, network_cache = self.feed_forward.forward(x, context)
            y, network_dropout_cache = self.feed_forward_dropout.forward(y, context)
            z, network_norm_cache = self.feed_forward_norm.forward(x + y, context)
        else:
            y, mixer_norm_cache = self.mixer_norm.forward(x, context)
            y, mixer_cache = self.mixer.forward(y, context)
            y, mixer_dropout_cache = self.mixer_dropout.forward(y, context)
            x = x + y
            y, network_norm_cache = self.feed_forward_norm.forward(x, context)
            y, network_cache = self.feed_forward.forward(y, context)
            y, network_dropout_cache = self.feed_forward_dropout.forward(y, context)
            z = x + y
        mixer_caches = mixer_cache, mixer_dropout_cache, mixer_norm_cache
        network_caches = network_cache, network_dropout_cache, network_norm_cache
        return z, (mixer_caches, network_caches)

    def backward(self, dz: Array, cache: Any, gradients: Gradients) -> Array:
        if self.feed_forward is None:
            return self.mixer_alone_backward(dz, cache, gradients)
        mixer_caches, network_caches = cache
        mixer_cache, mixer_dropout_cache, mixer_norm_cache = mixer_caches
        network_cache, network_dropout_cache, network_norm_cache = network_caches
        if self.norm == "post":
            # z = norm(x + dropout(feed_forward(x)))
            dsum = self.feed_forward_norm.backward(dz, network_norm_cache, gradients)
            dy = self.feed_forward_dropout.backward(dsum, network_dropout_cache, gradients)
            dx = dsum + self.feed_forward.backward(dy, network_cache, gradients)
            # x = norm(x + dropout(mixer(x)))
            dsum = self.mixer_norm.backward(dx, mixer_norm_cache, gradients)
            dy = self.mixer_dropout.backward(dsum, mixer_dropout_cache, gradients)
            return dsum + self.mixer.backward(dy, mixer_cache, gradients)
        # z = x + dropout(feed_forward(norm(x)))
        dy = self.feed_forward_dropout.backward(dz, network_dropout_cache, gradients)
        dy = self.feed_forward.backward(dy, network_cache, gradients)
        dx = dz + self.feed_forward_norm.backward(dy, network_norm_cache, gradients)
        # x = x + dropout(mixer(norm(x)))
        dy = self.mixer_dropout.backward(dx, mixer_dropout_cache, gradients)
        dy = self.mixer.backward(dy, mixer_cache, gradients)
        return dx + self.mixer_norm.backward(dy, mixer_norm_cache, gradients)

    # Without a feed-forward network -----------------------------------------------------------

    def mixer_alone(self, x: Array, context: Context) -> tuple[Array, Any]:
        """z = norm(x + dropout(mixer(x))), or x + dropout(mixer(norm(x)))."""
        if self.norm == "post":
            y, mixer_cache = self.mixer.forward(x, context)
            y, dropout_cache = self.mixer_dropout.forward(y, context)
            z, norm_cache = self.mixer_norm.forward(x + y, context)
        else:
            y, norm_cache = self.mixer_norm.forward(x, context)
            y, mixer_cache = self.mixer.forward(y, context)
            y, dropout_cache = self.mixer_dropout.forward(y, context)
            z = x + y
        return z, (mixer_cache, dropout_cache, norm_cache)

    def mixer_alone_backward(self, dz: Array, cache: Any, gradients: Gradients) -> Array:
        """Gradient of `mixer_alone`."""
        mixer_cache, dropout_cache, norm_cache = cache
        if self.norm == "post":
            dsum = self.mixer_norm.backward(dz, norm_cache, gradients)
            dy = self.mixer_dropout.backward(dsum, dropout_cache, gradients)
            return dsum + self.mixer.backward(dy, mixer_cache, gradients)
        dy = self.mixer_dropout.backward(dz, dropout_cache, gradients)
        dy = self.mixer.backward(dy, mixer_cache, gradients)
        return dz + self.mixer_norm.backward(dy, norm_cache, gradients)

    # The second half alone: for a decoder, and for one token after another -----------------------

    def network(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return what the last sublayer makes of x: the feed-forward network, if there is one."""
        if self.feed_forward is None:
            return x, None
        if self.norm == "post":
            y, network_cache = self.feed_forward.forward(x, context)
            y, dropout_cache = self.feed_forward_dropout.forward(y, context)
            z, norm_cache = self.feed_forward_norm.forward(x + y, context)
        else:
            y, norm_cache = self.feed_forward_norm.forward(x, context)
            y, network_cache = self.feed_forward.forward(y, context)
            y, dropout_cache = self.feed_forward_dropout.forward(y, context)
            z = x + y
        return z, (network_cache, dropout_cache, norm_cache)

    def network_backward(self, dz: Array, caches: Any, gradients: Gradients) -> Array:
        """Gradient of `network`."""
        if self.feed_forward is None:
            return dz
        network_cache, dropout_cache, norm_cache = caches
        if self.norm == "post":
            dsum = self.feed_forward_norm.backward(dz, norm_cache, gradients)
            dy = self.feed_forward_dropout.backward(dsum, dropout_cache, gradients)
            return dsum + self.feed_forward.backward(dy, network_cache, gradients)
        dy = self.feed_forward_dropout.backward(dz, dropout_cache, gradients)
        dy = self.feed_forward.backward(dy, network_cache, gradients)
        return dz + self.feed_forward_norm.backward(dy, norm_cache, gradients)

    # One token after another ------------------------------------------------------------------

    def start(self, batch: int, length: int) -> Any:
        """Return the state before the first token of each sequence, of up to `length` tokens."""
        weight = next(iter(self.named_parameters().values())).value
        token = array_module(weight).empty(self._d_model, weight.dtype)
        return self.mixer.start(batch, length, like=token)

    def prefill(self, x: Array, state: Any, context: Context) -> tuple[Array, Any]:
        """Return y at evaluation for tokens that follow those in `state`, and the new state.

        See `Mixer.prefill`.
        """
        if self.norm == "post":
            y, state = self.mixer.prefill(x, state, context)
            y, _ = self.mixer_dropout.forward(y, context)
            x, _ = self.mixer_norm.forward(x + y, context)
        else:
            y, _ = self.mixer_norm.forward(x, context)
            y, state = self.mixer.prefill(y, state, context)
            y, _ = self.mixer_dropout.forward(y, context)
            x = x + y
        z, _ = self.network(x, context)
        return z, state
