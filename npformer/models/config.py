"""EncoderConfig: what an encoder looks like, in plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from npformer.core import INITIALIZERS, checks
from npformer.layers import ACTIVATIONS, FFNS
from npformer.mixers import MIXERS, AveragingMixer, MixerSettings
from npformer.mixers.mixer import MEMORIES, PADDINGS, check_heads
from npformer.mixers.mixture import check_parts

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
        A name in `MIXERS`, or one name for each layer. A name may have options, here and below:
        "mean(power=2)". What names there are, and how to add to them, is in docs/extending.md.
    activation : str
        Of the feed-forward network, a name in `ACTIVATIONS`: "relu", "gelu", "gelu_tanh", "tanh".
    norm : {"post", "pre"}
        "post": x = norm(x + sublayer(x)), the paper's. "pre": x = x + sublayer(norm(x)) with one
        norm more at the end, which trains more easily when deep.
    dropout : float
        Probability of dropping an entry of each sublayer's output and of embedding + position.
    ffn : str
        The feed-forward network, a name in `FFNS`: "linear" or "conv1d"; the numbers are the same.
    initializer : str
        What the matrices of the feed-forward networks and of the mixers' projections are drawn
        from, a name in `INITIALIZERS`, such as "normal(std=0.02)". Random tables and the matrices
        of linear mixing have draws of their own.
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
    initializer: str = "xavier_uniform"

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
        kinds = [MIXERS[MIXERS.parse(mixer, "mixer")[0]] for mixer in self.mixers()]
        ACTIVATIONS.parse(self.activation, "activation")
        checks.choice("norm", self.norm, ("post", "pre"))
        checks.rate("dropout", self.dropout)
        checks.number("norm_eps", self.norm_eps, above=0.0)
        for name in ("dropout", "norm_eps"):  # Python's numbers: NumPy's are no plain values
            object.__setattr__(self, name, float(getattr(self, name)))
        FFNS.parse(self.ffn, "ffn")
        INITIALIZERS.parse(self.initializer, "initializer")
        checks.choice("positions", self.positions, POSITIONS)
        checks.choice("padding", self.padding, PADDINGS)
        checks.choice("memory", self.memory, MEMORIES)
        check_parts(self.mixture)
        object.__setattr__(self, "mixture", tuple(self.mixture))
        if any(isinstance(kind, type) and issubclass(kind, AveragingMixer) for kind in kinds):
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
            initializer=self.initializer,
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
