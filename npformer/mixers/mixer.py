"""What all token mixers share."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

from npformer.core import INITIALIZERS, Array, Context, Layer, Seed, array_module, checks
from npformer.core.support.warn_once import warn_once
from npformer.layers.state import State, StateShapes, take_positions
from npformer.mixers.padding import STRATEGIES

PADDINGS = tuple(STRATEGIES)


def or_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return a check of a setting that may be None, which is off."""
    return lambda name, value: None if value is None else check(name, value)


MUST_BE: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("d_model", "n_heads", "max_len", "rank"), checks.positive),
    "causal": checks.flag,
    "padding": partial(checks.choice, choices=PADDINGS),
    "memory": partial(checks.choice, choices=("auto", "stored", "blocks")),
    "initializer": INITIALIZERS.checked,
    "attention_dropout": checks.rate,
    "rope_theta": or_none(partial(checks.number, above=0.0)),
    **dict.fromkeys(("n_kv_heads", "d_head", "window"), or_none(checks.positive)),
    **dict.fromkeys(("qk_norm", "bias"), checks.flag),
    "norm_eps": partial(checks.number, above=0.0),
}
"""What each setting of a mixer must be: a function returns it checked, as Python's number."""


def keep_checked(settings: Any, must_be: dict[str, Callable[[str, Any], Any]]) -> None:
    """Replace settings, which may be frozen, by what their checks return."""
    for name, check in must_be.items():
        object.__setattr__(settings, name, check(name, getattr(settings, name)))


OPTIONAL_SETTINGS = (
    "attention_dropout",
    "rope_theta",
    "n_kv_heads",
    "d_head",
    "window",
    "qk_norm",
    "bias",
    "norm_eps",
)
"""Settings that a mixer gets only if they are not what they have always been."""


@dataclass(frozen=True)
class MixerSettings:
    """What a mixer is built from: those settings of an `EncoderConfig` that concern mixers."""

    d_model: int
    n_heads: int = 1
    max_len: int = 128
    causal: bool = False
    padding: str = "refuse"
    memory: str = "auto"
    rank: int = 8
    mixture: tuple[str, ...] = ("attention", "random_synthesizer")
    initializer: str = "xavier_uniform"
    attention_dropout: float = 0.0
    rope_theta: float | None = None
    n_kv_heads: int | None = None
    d_head: int | None = None
    window: int | None = None
    qk_norm: bool = False
    bias: bool = True
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        keep_checked(self, MUST_BE)

    @property
    def head_size(self) -> int:
        """Features of a head: `d_head`, or d_model / n_heads."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values: `n_kv_heads`, or as many as of queries."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    def only(self, *names: str) -> dict[str, Any]:
        """Return the settings of these names, as keywords; other names are ignored.

        What is off is left out: mixers from elsewhere need not know of it.
        """
        off = {f.name: f.default for f in fields(self) if f.name in OPTIONAL_SETTINGS}
        given = {name: value for name, value in vars(self).items() if name in names}
        return {name: v for name, v in given.items() if name not in off or v != off[name]}


class Mixer(Layer):
    """A layer in which tokens see each other: (batch, length, d_model) to the same shape.

    ``context.mask`` is False for padding. A mixer gives padding no weight at all, or refuses the
    mask unless a setting says how to treat padding. There x and dy may hold NaN, unless the
    `Padding` says that it is hidden.

    Attributes
    ----------
    dropout_follows : bool
        Whether there is dropout between this mixer and the residual connection, as in its paper.
    """

    dropout_follows: bool = True

    @classmethod
    @abstractmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        """Make this mixer for an encoder. Options of a mixer are further keywords."""

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        """Return names and shapes of what a state keeps of one sequence of up to `length` tokens.

        A mixer without its own `prefill` keeps its inputs, and computes everything anew.
        """
        return {"x": (length, d_model)}

    def start(self, batch: int, length: int, like: Array) -> State:
        """Return the state before the first token, for up to `length` tokens in each sequence.

        Backend, dtype and the number of features are those of the array `like`.
        """
        return State.empty(self.state_shapes(length, like.shape[-1]), batch, like)

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        """Return what the mixer makes of the tokens after those of a state, and the new state.

        With an empty state this is `forward` at evaluation. Rows may end in padding: they continue
        from their last kept token.

        Parameters
        ----------
        x : array, shape (batch, length, d_model)
        state : State
        context : Context
        """
        n = x.shape[1]
        warn_once(
            self,
            f"{type(self).__name__} does not define how to continue from earlier tokens, so each "
            "token computes all of them anew. Define state_shapes and prefill (docs/writing.md)",
        )
        state = state.extend(n, context, x=x)
        y, _ = self.forward(state.so_far("x"), Context(mask=state.mask(x), keep=False))
        return take_positions(y, state.positions(n, y, axis=1)), state

    def step(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        """Return what the mixer makes of one more token, (batch, 1, d_model), and the new state."""
        checks.shape("x", x, (None, 1, "d_model"), "One token at a time")
        return self.prefill(x, state, context)

    @abstractmethod
    def explain(self, x: Array, context: Context) -> Array:
        """Return the mixing weights for x, (batch, heads, length, length).

        Entry (i, j) is the weight of token j for token i, and 0 if one of them is padding.
        Attention and synthesizers give their weights, whose rows sum to 1. The others have one
        head: Fourier and Hartley give the transform over the sequence, which is complex, linear
        mixing W_sequence, and long convolutions the mean over features of absolute values.
        """


def between_kept(matrices: Array, mask: Array | None) -> Array:
    """Return mixing weights, a copy with 0 where one of both is padding."""
    if mask is None:
        return matrices.copy()
    both = mask[:, None, :, None] & mask[:, None, None, :]
    return array_module(matrices).where(both, matrices, 0.0)


def looking_back(weights: Array, skip: Array, length: int) -> Array:
    """Return a long convolution, and `skip` of the token itself: (length, length, d_model)."""
    xp = array_module(weights)
    back = xp.arange(length)[:, None] - xp.arange(length)
    matrices = weights[xp.maximum(back, 0)] * (back >= 0)[..., None]
    return matrices + xp.eye(length, dtype=weights.dtype)[..., None] * skip
