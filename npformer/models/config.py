"""EncoderConfig: the settings of an encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from numbers import Integral
from typing import Any, Self

from npformer.core import checks, describe
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.layers import ACTIVATIONS, FFNS, NORMS
from npformer.mixers import MixerSettings
from npformer.mixers.mixer import MUST_BE as OF_MIXERS
from npformer.mixers.mixer import keep_checked, or_none
from npformer.mixers.mixture import check_parts
from npformer.models.config_checks import check_mixers, check_number

POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "rotary", "none")
RATES = ("dropout", "token_dropout", "attention_dropout", "ffn_dropout")
FLAGS = ("scale_embeddings", "embedding_norm", "embedding_projection", "share_layers", "causal")
PER_LAYER: dict[str, Any] = {
    "window": or_none(checks.positive),
    "rope_theta": partial(checks.number, above=0.0),
}
"""Checks of the settings, besides the mixer, that may have a value for each layer."""
MUST_BE = {name: check for name, check in OF_MIXERS.items() if name not in PER_LAYER} | {
    **dict.fromkeys(RATES, checks.rate),
    **dict.fromkeys(FLAGS, checks.flag),
    "n_layers": partial(checks.whole, at_least=1, at_most=checks.MOST_LAYERS),
    "d_ff": checks.positive,
    "n_token_types": partial(checks.whole, at_least=0),
    "norm": partial(checks.choice, choices=("post", "pre")),
    "norm_kind": NORMS.check,
    "positions": partial(checks.choice, choices=POSITIONS),
    "activation": ACTIVATIONS.check,
    "ffn": FFNS.check,
}
"""Checks of the other settings, without `mixer`, `mixture` and `position_padding_id`."""


@dataclass(frozen=True)
class EncoderConfig:
    """The settings of an encoder. They cannot be changed: `dataclasses.replace` makes a copy.

    A value that is a name in a table may have options: "mean(power=2)". docs/extending.md lists the
    tables and shows how to add to them.

    Parameters
    ----------
    d_model, n_layers, n_heads, d_ff, max_len : int
        Features of a token, blocks, attention heads, features inside the feed-forward network, and
        length of the longest sequence.
    mixer : str or sequence of str
        A name in `MIXERS`, or one name for each layer.
    activation : str
        Activation of the feed-forward network, a name in `ACTIVATIONS`: "relu", "gelu",
        "gelu_tanh", "silu", "tanh".
    norm : {"post", "pre"}
        "post": x = norm(x + sublayer(x)), as in the paper. "pre": x = x + sublayer(norm(x)), and
        another norm at the end; deep encoders are easier to train that way.
    norm_kind : str
        A name in `NORMS`: "layer", or "rms", which leaves the mean where it is and has no shift
        (Zhang and Sennrich, 2019).
    dropout : float
        Probability of dropping an entry of the embeddings, and of the output of each sublayer.
    token_dropout : float
        Probability of dropping the whole embedding of a token, before the positional encoding: word
        dropout (Iyyer et al., 2015). It helps if there are few texts. Beside a tiny `norm_eps`,
        see there.
    attention_dropout : float
        Probability of dropping a weight of attention or of a synthesizer, after the softmax, as in
        BERT; 0 in Vaswani et al.
    ffn_dropout : float
        Probability of dropping a feature inside the feed-forward network, after the activation, as
        in PyTorch's TransformerEncoderLayer.
    ffn : str
        The feed-forward network, a name in `FFNS`: "linear"; "conv1d", which gives the same
        numbers; "gated", in which one map of the tokens is multiplied by another (Shazeer, 2020),
        SwiGLU with the activation "silu"; or "none", for blocks that are a mixer alone.
    positions : {"sinusoidal", "sinusoidal_halves", "learned", "rotary", "none"}
        What is added to the embeddings. "sinusoidal_halves": all sines, then all cosines, as in
        Marian, instead of alternating as in Vaswani et al. (2017). "rotary": nothing is added;
        attention rotates its queries and keys by their positions (Su et al., 2021). Only attention
        can do that.
    rope_theta : float, or sequence of float
        With rotary positional encoding: the slowest pair of features rotates once in
        2 pi rope_theta^(1 - 2 / d_head) tokens. One number, or one for each layer.
    n_kv_heads : int, optional
        Grouped queries: how many heads of keys and values the n_heads share (Ainslie et al., 2023).
        None: each head has its own keys and values.
    d_head : int, optional
        Features of a head of attention. None: d_model / n_heads.
    window : int, sequence or None
        Local attention: a token sees those at most window // 2 away (Beltagy et al., 2020) or, with
        `causal`, the last `window` up to itself (Jiang et al., 2023). None sees all. One value, or
        one for each layer. Only attention has it, as the settings from `rope_theta` to `qk_norm`.
    qk_norm : bool
        Whether attention has an RMS norm of each head's queries and keys (Henry et al., 2020).
    bias : bool
        Whether attention's maps and the feed-forward networks' have a bias, and layer norms a
        shift. Other mixers always have a bias, and so does a decoder's cross-attention, which has
        n_heads heads of d_model / n_heads features.
    scale_embeddings : bool
        Whether token embeddings are multiplied by sqrt(d_model), as in Vaswani et al. (2017).
    share_layers : bool
        Whether one block is applied n_layers times, so that all layers have the same weights.
    causal : bool
        Whether token i sees only the tokens 0 to i.
    padding : {"refuse", "per_length", "zero"}
        How mixers that cannot skip padding, such as Fourier, treat it: refuse a mask, mix each
        sequence at its own length, or mix padding as zeros.
    memory : {"auto", "stored", "blocks"}
        Whether attention keeps its weights for the backward pass, or takes queries in blocks and
        computes the weights again. "auto" chooses blocks for long sequences.
    rank : int
        Rank of the tables of the Factorized Random Synthesizer: 8 in the paper.
    mixture : sequence of str
        The parts of the mixer "mixture": names in `npformer.mixers.SCORES`.
    norm_eps : float
        Epsilon of the norms. A norm multiplies the gradient of a row that is constant by
        1 / sqrt(norm_eps): 316 for 1e-5, and 1e6 for BERT's 1e-12. With `token_dropout` and no
        positions that are added, all rows of a short text may be 0, in norm after norm: use 1e-5.
    n_token_types : int
        How many types of tokens have an embedding that is added: 2 in BERT, for the first and the
        second sentence, 4 in FNet.
    position_padding_id : int, optional
        The id of padding that has no position, as in RoBERTa, where positions count the tokens
        that are not padding. A token that is kept, at or behind this id, is then an error.
    embedding_norm, embedding_projection : bool
        Whether a norm follows the sum of the embeddings, as in BERT and FNet, and then a linear
        map, as in FNet. With norm="pre" that norm is the first block's too, as in ModernBERT: its
        mixer has no norm before it.
    initializer : str
        What the matrices of the feed-forward networks and of the mixers' projections are drawn
        from: a name in `INITIALIZERS`, such as "normal(std=0.02)". Random tables and the matrices
        of linear mixing have other distributions.
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
    initializer: str = "xavier_uniform"
    token_dropout: float = 0.0
    attention_dropout: float = 0.0
    ffn_dropout: float = 0.0
    position_padding_id: int | None = None
    norm_kind: str = "layer"
    rope_theta: float | Sequence[float] = 10000.0
    n_kv_heads: int | None = None
    d_head: int | None = None
    window: int | Sequence[int | None] | None = None
    qk_norm: bool = False
    bias: bool = True

    def __post_init__(self) -> None:
        # NumPy's numbers become Python's, and lists become tuples.
        keep_checked(self, MUST_BE)
        keep = partial(object.__setattr__, self)
        for name in PER_LAYER:
            keep(name, self._check_per_layer(name, getattr(self, name)))
        if self.position_padding_id is not None:
            checks.whole("position_padding_id", self.position_padding_id, at_least=0)
        check_parts(self.mixture)
        keep("mixture", tuple(self.mixture))
        if not isinstance(self.mixer, str | Sequence):
            raise TypeError(
                f"mixer is {describe(self.mixer)}; expected a name, or a list, one for each layer"
            )
        keep("mixer", self.mixer if isinstance(self.mixer, str) else tuple(self.mixer))
        check_mixers(self)

    def _check_per_layer(self, name: str, value: Any) -> Any:
        """Check a setting that may have a value for each layer; return a tuple if these differ."""
        check = PER_LAYER[name]
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            return check(name, value)
        values = tuple(check(f"{name}[{i}]", entry) for i, entry in enumerate(value))
        check_number(self, name, values)
        if len(set(values)) == 1:
            return values[0]
        return values

    @classmethod
    def modern(cls, *, causal: bool = False, **settings: Any) -> Self:
        """Return the settings of today's Transformers; `settings` override them.

        An encoder is like ModernBERT (Warner et al., 2024, arXiv 2412.13663): pre-norm with a norm
        of the embeddings, rotary positional encoding, GEGLU, no bias; two of three layers see 128
        tokens.
        With `causal` the model is like Llama (Touvron et al., 2023, arXiv 2302.13971): RMS norm,
        SwiGLU, and keys and values shared by two heads of queries if their number is even.

        Parameters
        ----------
        causal : bool
        **settings
            As for `EncoderConfig`. By default d_ff is 8/3 d_model, rounded up to a multiple of 8:
            three matrices then have as many weights as two of 4 d_model.
        """
        checks.flag("causal", causal)
        modern: dict[str, Any] = {
            "norm": "pre",
            "positions": "rotary",
            "ffn": "gated",
            "bias": False,
            "scale_embeddings": False,
            "initializer": "normal(std=0.02)",
        }
        d_model = settings.get("d_model", cls.d_model)
        if isinstance(d_model, Integral):
            modern["d_ff"] = two_thirds_of_four(int(d_model))
        if causal:
            modern |= llama_settings(n_heads=settings.get("n_heads", cls.n_heads))
        else:
            modern |= modern_bert_settings(n_layers=settings.get("n_layers", cls.n_layers))
        return cls(**(modern | settings))

    @property
    def adds_positions(self) -> bool:
        """Whether a table of positions is added to the embeddings."""
        return self.positions not in ("rotary", "none")

    @property
    def starts_normed(self) -> bool:
        """Whether the norm of the embeddings is also the first block's: see `embedding_norm`."""
        return self.norm == "pre" and self.embedding_norm and not self.share_layers

    def make_norm(self, dtype: str) -> Any:
        """Return a new norm over the features of a token."""
        options: dict[str, Any] = {"dtype": dtype}
        if not self.bias and NORMS.parse(self.norm_kind, "norm_kind")[0] != "rms":  # has no shift
            options["bias"] = False
        return NORMS.make(self.norm_kind, self.d_model, self.norm_eps, **options)

    def mixers(self) -> tuple[str, ...]:
        """Return the name of each layer's mixer."""
        if isinstance(self.mixer, str):
            return (self.mixer,) * self.n_layers
        return tuple(self.mixer)

    def mixer_settings(self, layer: int = 0) -> MixerSettings:
        """Return the settings that the mixer of a layer gets."""
        settings = {field.name: getattr(self, field.name) for field in fields(MixerSettings)}
        for name in PER_LAYER:
            if isinstance(settings[name], tuple):
                settings[name] = settings[name][layer]
        if self.positions != "rotary":
            settings["rope_theta"] = None
        return MixerSettings(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as values that JSON can represent."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the configuration that `to_dict` wrote. An unknown key is an error."""
        checks.instance("the configuration", plain, Mapping)
        unknown = sorted(map(str, set(plain) - {field.name for field in fields(cls)}))
        if unknown:
            raise ValueError(
                f"the configuration has {', '.join(unknown)}, which this version of npformer does "
                "not know; it was written by a newer one. Update npformer"
            )
        return cls(**plain)


def two_thirds_of_four(d_model: int) -> int:
    """Return 8/3 d_model, rounded up to a multiple of 8."""
    return -(-8 * d_model // 24) * 8


def llama_settings(n_heads: Any) -> dict[str, Any]:
    """Return what `EncoderConfig.modern` sets for a causal model."""
    settings: dict[str, Any] = {"norm_kind": "rms", "activation": "silu", "causal": True}
    if isinstance(n_heads, Integral) and n_heads % 2 == 0:
        settings["n_kv_heads"] = n_heads // 2
    return settings


def modern_bert_settings(n_layers: Any) -> dict[str, Any]:
    """Return what `EncoderConfig.modern` sets for an encoder."""
    settings: dict[str, Any] = {"activation": "gelu", "embedding_norm": True}
    if isinstance(n_layers, Integral):
        sees_all = [i % 3 == 0 for i in range(n_layers)]
        settings["window"] = [None if all_tokens else 128 for all_tokens in sees_all]
        settings["rope_theta"] = [160000.0 if all_tokens else 10000.0 for all_tokens in sees_all]
    return settings


EncoderConfig.__init__ = refuse_unknown_arguments(EncoderConfig.__init__)  # type: ignore[method-assign]
