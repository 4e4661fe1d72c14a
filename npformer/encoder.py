"""The encoder: blocks of a token mixer and a feed-forward network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from npformer import checks, initializers, kernels
from npformer.backend import Array, backend_of
from npformer.initializers import Seed
from npformer.layers import ACTIVATIONS, FFNS, Dropout, LayerNorm, PositionwiseFeedForward
from npformer.mixers import MIXERS, AveragingMixer, MixerSettings
from npformer.mixers.mixer import MEMORIES, PADDINGS, check_heads
from npformer.mixers.mixture import check_parts
from npformer.module import Context, Gradients, Layer

POSITIONS = ("sinusoidal", "learned", "none")


@dataclass(frozen=True)
class EncoderConfig:
    """What an encoder looks like. It cannot be changed; make another with `dataclasses.replace`.

    Attributes
    ----------
    d_model : int
        Features of a token.
    n_layers : int
        Blocks.
    n_heads : int
        Heads of a mixer that has heads.
    d_ff : int
        Features inside the feed-forward network.
    max_len : int
        The longest sequence.
    mixer : str or sequence of str
        A name in `MIXERS`, or one name for each layer.
    activation : str
        Of the feed-forward network: "relu", "gelu", "gelu_tanh" or "tanh".
    norm : {"post", "pre"}
        "post": x = norm(x + sublayer(x)), the paper's. "pre": x = x + sublayer(norm(x)) with one
        norm more at the end, which trains more easily when deep.
    dropout : float
        Probability of dropping an entry of each sublayer's output and of embedding + position.
    ffn : {"linear", "conv1d"}
        How the feed-forward network is written; the numbers are the same.
    positions : {"sinusoidal", "learned", "none"}
        What a model adds to the embeddings.
    scale_embeddings : bool
        Multiply token embeddings by sqrt(d_model), as Vaswani et al. do.
    n_token_types : int
        Types of tokens, each with an embedding that is added: BERT has 2, for the first and the
        second sentence, FNet 4. 0 has none.
    embedding_norm : bool
        Layer norm of the sum of the embeddings, as BERT and FNet do.
    embedding_projection : bool
        A linear map after that, as FNet has.
    share_layers : bool
        One block applied n_layers times: its weights are tied across depth.
    causal : bool
        Token i sees the tokens 0 to i only.
    padding : {"refuse", "per_length", "zero"}
        What mixers do that cannot skip padding (Fourier): refuse a mask, mix each sequence at its
        own length, or mix padding as zeros.
    memory : {"auto", "stored", "blocks"}
        Whether attention keeps its weights for the backward pass, or takes queries in blocks and
        computes the weights again. "auto" takes blocks for long sequences.
    rank : int
        k of the Factorized Random Synthesizer: 8 in the paper.
    mixture : sequence of str
        What the mixer "mixture" mixes: names in `npformer.mixers.SCORES`.
    norm_eps : float
        Epsilon of the layer norms.

    Raises
    ------
    ValueError
        A size is not a whole number from 1, a name is unknown, or heads do not divide d_model.
    """

    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    d_ff: int = 256
    max_len: int = 128
    mixer: str | Sequence[str] = "attention"
    activation: str = "gelu"
    norm: str = "post"
    dropout: float = 0.0
    ffn: str = "linear"
    positions: str = "sinusoidal"
    scale_embeddings: bool = True
    share_layers: bool = False
    causal: bool = False
    padding: str = "refuse"
    memory: str = "auto"
    rank: int = 8
    mixture: Sequence[str] = ("attention", "random_synthesizer")
    norm_eps: float = 1e-5
    n_token_types: int = 0
    embedding_norm: bool = False
    embedding_projection: bool = False

    def __post_init__(self) -> None:
        for name in ("d_model", "n_layers", "n_heads", "d_ff", "max_len", "rank"):
            object.__setattr__(self, name, checks.positive(name, getattr(self, name)))
        n_types = checks.whole("n_token_types", self.n_token_types, at_least=0)
        object.__setattr__(self, "n_token_types", n_types)
        for name in (
            "scale_embeddings",
            "embedding_norm",
            "embedding_projection",
            "share_layers",
            "causal",
        ):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is {getattr(self, name)!r}; expected True or False")
        if not isinstance(self.mixer, str | Sequence):
            raise TypeError(
                f"mixer is {self.mixer!r}; expected a name, or a list of one name for each layer"
            )
        if not isinstance(self.mixer, str):
            object.__setattr__(self, "mixer", tuple(self.mixer))
            if len(self.mixer) != self.n_layers:
                raise ValueError(
                    f"mixer has {len(self.mixer)} names; expected one name, or one for each of "
                    f"the n_layers = {self.n_layers}"
                )
        for mixer in self.mixers():
            checks.choice("mixer", mixer, MIXERS)
        checks.choice("activation", self.activation, ACTIVATIONS)
        checks.choice("norm", self.norm, ("post", "pre"))
        checks.rate("dropout", self.dropout)
        checks.number("norm_eps", self.norm_eps, above=0.0)
        for name in ("dropout", "norm_eps"):  # Python's numbers: NumPy's are no plain values
            object.__setattr__(self, name, float(getattr(self, name)))
        checks.choice("ffn", self.ffn, FFNS)
        checks.choice("positions", self.positions, POSITIONS)
        checks.choice("padding", self.padding, PADDINGS)
        checks.choice("memory", self.memory, MEMORIES)
        check_parts(self.mixture)
        object.__setattr__(self, "mixture", tuple(self.mixture))
        if any(issubclass(MIXERS[mixer], AveragingMixer) for mixer in self.mixers()):
            check_heads(self.d_model, self.n_heads)
        if self.share_layers and len(set(self.mixers())) > 1:
            raise ValueError(
                f"share_layers=True with mixers {', '.join(self.mixers())}; expected one mixer for "
                "all layers, for they are one and the same block"
            )

    def mixers(self) -> tuple[str, ...]:
        """Return the name of each layer's mixer."""
        if isinstance(self.mixer, str):
            return (self.mixer,) * self.n_layers
        return tuple(self.mixer)

    def mixer_settings(self) -> MixerSettings:
        """Return what mixers are told."""
        return MixerSettings(
            d_model=self.d_model,
            n_heads=self.n_heads,
            max_len=self.max_len,
            causal=self.causal,
            padding=self.padding,
            memory=self.memory,
            rank=self.rank,
            mixture=tuple(self.mixture),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        plain = asdict(self)
        plain["mixer"] = self.mixer if isinstance(self.mixer, str) else list(self.mixer)
        plain["mixture"] = list(self.mixture)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the configuration that `to_dict` wrote.

        Raises
        ------
        ValueError
            A key that no configuration has.
        """
        unknown = sorted(set(plain) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(
                f"the configuration has {', '.join(unknown)}, which this version of npformer does "
                "not know; it was written by a newer one. Update npformer"
            )
        return cls(**plain)


class EncoderBlock(Layer):
    """One block: a mixer, then a feed-forward network, each with a residual connection and a norm.

    Post-norm (Vaswani et al., 2017): x = norm(x + dropout(sublayer(x))).
    Pre-norm: x = x + dropout(sublayer(norm(x))).

    Parameters
    ----------
    config : EncoderConfig
    mixer : str
        This block's mixer, a name in `MIXERS`.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """

    def __init__(
        self,
        config: EncoderConfig,
        mixer: str = "attention",
        *,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.choice("mixer", mixer, MIXERS)
        rng = initializers.generator(seed)
        d_model, rate = config.d_model, config.dropout
        self.norm = config.norm
        self.mixer = MIXERS[mixer].build(config.mixer_settings(), seed=rng, dtype=dtype)
        self.mixer_dropout = Dropout(rate if self.mixer.dropout_follows else 0.0)
        self.mixer_norm = LayerNorm(d_model, config.norm_eps, dtype=dtype)
        self.feed_forward = PositionwiseFeedForward(
            d_model, config.d_ff, config.activation, ffn=config.ffn, seed=rng, dtype=dtype
        )
        self.feed_forward_dropout = Dropout(rate)
        self.feed_forward_norm = LayerNorm(d_model, config.norm_eps, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        mix = (self.mixer, self.mixer_dropout, self.mixer_norm)
        think = (self.feed_forward, self.feed_forward_dropout, self.feed_forward_norm)
        x, mix_cache = self._residual(*mix, x, context)
        x, think_cache = self._residual(*think, x, context)
        return x, (mix_cache, think_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        mix = (self.mixer, self.mixer_dropout, self.mixer_norm)
        think = (self.feed_forward, self.feed_forward_dropout, self.feed_forward_norm)
        mix_cache, think_cache = cache
        dy = self._residual_backward(*think, dy, think_cache, gradients)
        return self._residual_backward(*mix, dy, mix_cache, gradients)

    def _residual(
        self, sublayer: Layer, dropout: Dropout, norm: LayerNorm, x: Array, context: Context
    ) -> tuple[Array, Any]:
        if self.norm == "post":
            y, sublayer_cache = sublayer.forward(x, context)
            fused = kernels.fused("residual_norm", x, context)  # one launch on a GPU; none on a CPU
            if fused is not None:
                scale_and_shift = norm.gamma.value, norm.beta.value
                z, fused_cache = fused(x, y, *scale_and_shift, norm.eps, dropout.rate, context)
                return z, ("fused", (sublayer_cache, fused_cache))
            y, dropout_cache = dropout.forward(y, context)
            z, norm_cache = norm.forward(kernels.add(x, y, context), context)
        else:
            n, norm_cache = norm.forward(x, context)
            y, sublayer_cache = sublayer.forward(n, context)
            y, dropout_cache = dropout.forward(y, context)
            z = kernels.add(x, y, context)
        return z, ("layers", (sublayer_cache, dropout_cache, norm_cache))

    def _residual_backward(
        self,
        sublayer: Layer,
        dropout: Dropout,
        norm: LayerNorm,
        dz: Array,
        cache: Any,
        gradients: Gradients,
    ) -> Array:
        way, saved = cache
        if way == "fused":
            sublayer_cache, fused_cache = saved
            dsum, dy, dgamma, dbeta = kernels.backward(dz, fused_cache)
            gradients.add(norm.gamma, dgamma)
            gradients.add(norm.beta, dbeta)
            dsum += sublayer.backward(dy, sublayer_cache, gradients)
            return dsum
        sublayer_cache, dropout_cache, norm_cache = saved
        if self.norm == "post":
            # z = norm(x + y): the sum hands its gradient to both terms
            dsum = norm.backward(dz, norm_cache, gradients)
            dy = dropout.backward(dsum, dropout_cache, gradients)
            dsum += sublayer.backward(dy, sublayer_cache, gradients)
            return dsum
        # z = x + y
        dy = dropout.backward(dz, dropout_cache, gradients)
        dn = sublayer.backward(dy, sublayer_cache, gradients)
        return dz + norm.backward(dn, norm_cache, gradients)


class Encoder(Layer):
    """A stack of blocks: (batch, length, d_model) to the same shape.

    Parameters
    ----------
    config : EncoderConfig
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    blocks : list of EncoderBlock
        With ``share_layers`` the same block n_layers times.
    final_norm : LayerNorm or None
        Pre-norm encoders end in one.
    """

    def __init__(self, config: EncoderConfig, seed: Seed = 0, dtype: str = "float32") -> None:
        if not isinstance(config, EncoderConfig):
            raise TypeError(
                f"config is a {type(config).__name__}; expected an EncoderConfig. "
                "Write npformer.EncoderConfig(d_model=64, ...)"
            )
        rng = initializers.generator(seed)
        self.config = config
        mixers = config.mixers()
        if config.share_layers:
            block = EncoderBlock(config, mixers[0], seed=rng, dtype=dtype)
            self.blocks = [block] * config.n_layers
        else:
            self.blocks = [EncoderBlock(config, m, seed=rng, dtype=dtype) for m in mixers]
        self.final_norm = (
            LayerNorm(config.d_model, config.norm_eps, dtype=dtype)
            if config.norm == "pre"
            else None
        )
        self.flatten()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.floating(x=x)
        checks.shape("x", x, ("batch", "length", self.config.d_model), "Features are the last axis")
        checks.has_tokens("x", x)
        if x.shape[1] > self.config.max_len:
            raise ValueError(
                f"x has length {x.shape[1]}; expected at most max_len = {self.config.max_len}. "
                "Cut the sequence, or build the encoder with a larger max_len"
            )
        if context.mask is not None:
            backend_of(x=x, mask=context.mask)
            checks.mask("mask", context.mask, tuple(x.shape[:2]))
        caches = []
        for block in self.blocks:
            x, cache = block.forward(x, context)
            if context.keep:
                caches.append(cache)
        if self.final_norm is None:
            return x, (caches, None)
        x, norm_cache = self.final_norm.forward(x, context)
        return x, (caches, norm_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        caches, norm_cache = cache
        if self.final_norm is not None:
            dy = self.final_norm.backward(dy, norm_cache, gradients)
        for block, block_cache in zip(reversed(self.blocks), reversed(caches), strict=True):
            dy = block.backward(dy, block_cache, gradients)
        return dy
