"""EncoderConfig: the settings of an encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Self

from npformer.core import checks, described
from npformer.core.explained_errors import in_our_words
from npformer.functional.heads import check_heads
from npformer.layers import ACTIVATIONS, FFNS, NORMS
from npformer.mixers import MIXERS, AttentionScores, AveragingMixer, MixerSettings
from npformer.mixers.mixer import MUST_BE as OF_MIXERS
from npformer.mixers.mixer import keep_checked
from npformer.mixers.mixture import check_parts

POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "rotary", "none")
RATES = ("dropout", "token_dropout", "attention_dropout", "ffn_dropout")
FLAGS = ("scale_embeddings", "embedding_norm", "embedding_projection", "share_layers", "causal")
MUST_BE = OF_MIXERS | {
    **dict.fromkeys(RATES, checks.rate),
    **dict.fromkeys(FLAGS, checks.flag),
    "n_layers": partial(checks.whole, at_least=1, at_most=checks.MOST_LAYERS),
    "d_ff": checks.positive,
    "n_token_types": partial(checks.whole, at_least=0),
    "norm": partial(checks.choice, choices=("post", "pre")),
    "norm_kind": NORMS.checked,
    "norm_eps": partial(checks.number, above=0.0),
    "rope_theta": partial(checks.number, above=0.0),
    "positions": partial(checks.choice, choices=POSITIONS),
    "activation": ACTIVATIONS.checked,
    "ffn": FFNS.checked,
}
"""What each setting must be, besides `mixer`, `mixture` and `position_padding_id`."""


@dataclass(frozen=True)
class EncoderConfig:
    """The settings of an encoder. They cannot be changed: `dataclasses.replace` makes a copy.

    A value that is a name in a table may have options: "mean(power=2)". docs/extending.md lists the
    tables and shows how to add to them.

    Attributes
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
        Probability of dropping the whole embedding of a token, before positions are added: word
        dropout (Iyyer et al., 2015). It helps if there are few texts.
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
        attention turns its queries and keys by their positions (Su et al., 2021). Only attention
        can do that.
    rope_theta : float
        With rotary positions: the slowest pair of features turns once in
        2 pi rope_theta^(1 - 2 / d_head) tokens, d_head = d_model / n_heads.
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
        Epsilon of the norms.
    n_token_types : int
        How many types of tokens have an embedding that is added: 2 in BERT, for the first and the
        second sentence, 4 in FNet.
    position_padding_id : int, optional
        The id of padding that has no position, as in RoBERTa, where positions count the tokens
        that are not padding. A token that is kept, at or behind this id, is then an error.
    embedding_norm, embedding_projection : bool
        Whether a layer norm follows the sum of the embeddings, as in BERT and FNet, and then a
        linear map, as in FNet.
    initializer : str
        What the matrices of the feed-forward networks and of the mixers' projections are drawn
        from: a name in `INITIALIZERS`, such as "normal(std=0.02)". Random tables and the matrices
        of linear mixing have distributions of their own.
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
    rope_theta: float = 10000.0

    def __post_init__(self) -> None:
        # NumPy's numbers become Python's, and lists become tuples.
        keep_checked(self, MUST_BE)
        keep = partial(object.__setattr__, self)
        if self.position_padding_id is not None:
            checks.whole("position_padding_id", self.position_padding_id, at_least=0)
        check_parts(self.mixture)
        keep("mixture", tuple(self.mixture))
        if not isinstance(self.mixer, str | Sequence):
            raise TypeError(
                f"mixer is {described(self.mixer)}; expected a name, or a list, one for each layer"
            )
        keep("mixer", self.mixer if isinstance(self.mixer, str) else tuple(self.mixer))
        self._check_mixers()

    def _check_mixers(self) -> None:
        """Check that each layer has a mixer that is known and fits the other settings."""
        names = self.mixers()
        if len(names) != self.n_layers:
            raise ValueError(
                f"mixer has {len(names)} names; expected one name, or one for each of the "
                f"n_layers = {self.n_layers}"
            )
        kinds = [MIXERS[MIXERS.parse(name, "mixer")[0]] for name in names]
        if any(isinstance(kind, type) and issubclass(kind, AveragingMixer) for kind in kinds):
            check_heads(self.d_model, self.n_heads)
        elif self.attention_dropout > 0.0 and all(isinstance(kind, type) for kind in kinds):
            raise ValueError(
                f"attention_dropout is {self.attention_dropout} and {', '.join(names)} has no "
                "weights to drop; expected 0, or attention or a synthesizer"
            )
        if self.positions == "rotary":
            self._check_turns(names, kinds)
        if self.share_layers and len(set(names)) > 1:
            raise ValueError(
                f"share_layers=True with mixers {', '.join(names)}; expected one mixer for all "
                "layers, because they are one and the same block"
            )

    def _check_turns(self, names: Sequence[str], kinds: Sequence[Any]) -> None:
        """Check that each mixer has queries and keys, which rotary positions turn in pairs."""
        for name, kind in zip(names, kinds, strict=True):
            if not (isinstance(kind, type) and issubclass(kind, AttentionScores)):
                raise ValueError(
                    f"positions is 'rotary' and a mixer is {name}, which has no queries and keys "
                    "to turn; expected attention, or other positions, such as 'sinusoidal'"
                )
        if (d_head := self.d_model // self.n_heads) % 2:
            raise ValueError(
                f"positions is 'rotary' and a head has d_model / n_heads = {d_head} features; "
                "expected an even number, because they are turned in pairs"
            )

    @property
    def adds_positions(self) -> bool:
        """Whether a table of positions is added to the embeddings."""
        return self.positions not in ("rotary", "none")

    def make_norm(self, dtype: str) -> Any:
        """Return a new norm over the features of a token."""
        return NORMS.make(self.norm_kind, self.d_model, self.norm_eps, dtype=dtype)

    def mixers(self) -> tuple[str, ...]:
        """Return the name of each layer's mixer."""
        if isinstance(self.mixer, str):
            return (self.mixer,) * self.n_layers
        return tuple(self.mixer)

    def mixer_settings(self) -> MixerSettings:
        """Return the settings that mixers get."""
        given = {f.name: getattr(self, f.name) for f in fields(MixerSettings)}
        turned = self.positions == "rotary"
        return MixerSettings(**given | {"rope_theta": self.rope_theta if turned else None})

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can hold."""
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


EncoderConfig.__init__ = in_our_words(EncoderConfig.__init__)  # type: ignore[method-assign]
