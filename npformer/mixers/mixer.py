"""What all token mixers share."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

from npformer.core import INITIALIZERS, Array, Context, Layer, Seed, array_module, checks
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.core.support.warn_once import warn_once
from npformer.layers.state import State, StateShapes, take_positions
from npformer.mixers.padding import STRATEGIES

PADDINGS = tuple(STRATEGIES)


def or_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return a check that also accepts None, which turns a setting off."""
    return lambda name, value: None if value is None else check(name, value)


MUST_BE: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("d_model", "n_heads", "max_len", "rank"), checks.positive),
    "causal": checks.flag,
    "padding": partial(checks.choice, choices=PADDINGS),
    "memory": partial(checks.choice, choices=("auto", "stored", "blocks")),
    "initializer": INITIALIZERS.check,
    "attention_dropout": checks.rate,
    "rope_theta": or_none(partial(checks.number, above=0.0)),
    **dict.fromkeys(("n_kv_heads", "d_head", "window"), or_none(checks.positive)),
    **dict.fromkeys(("qk_norm", "bias"), checks.flag),
    "norm_eps": partial(checks.number, above=0.0),
}
"""The check of each setting of a mixer: a function that returns the value, as a Python number."""


def keep_checked(settings: Any, must_be: dict[str, Callable[[str, Any], Any]]) -> None:
    """Check the fields of a dataclass, which may be frozen, and store what the checks return."""
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
"""Settings that `MixerSettings.only` leaves out while they have their default."""


@dataclass(frozen=True)
class MixerSettings:
    """The settings of an `EncoderConfig` from which mixers are built."""

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
        """Features of a head: `d_head`, or d_model / n_heads if that is None."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values: `n_kv_heads`, or `n_heads` if that is None."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    def only(self, *names: str) -> dict[str, Any]:
        """Return the settings of these names, as keyword arguments; unknown names are ignored.

        Optional settings are left out if they have their default, so that mixers from elsewhere
        need not know them.
        """
        settings = {}
        for field in fields(self):
            value = getattr(self, field.name)
            is_off = field.name in OPTIONAL_SETTINGS and value == field.default
            if field.name in names and not is_off:
                settings[field.name] = value
        return settings


@drop_class_from_names
class Mixer(Layer):
    """A layer in which tokens see each other: (batch, length, d_model) to the same shape.

    ``context.mask`` is False for padding. A mixer gives padding no weight at all, or refuses the
    mask unless a setting says how to treat padding. x and dy may hold NaN at padding, unless the
    `Padding` is marked as hidden.

    Attributes
    ----------
    dropout_follows : bool
        Whether dropout follows this mixer, before the residual connection, as in its paper.
    """

    dropout_follows: bool = True

    @classmethod
    @abstractmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        """Make this mixer for an encoder. Options of a mixer are further keywords."""

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        """Return names and shapes of a state's arrays for a sequence of up to `length` tokens.

        A mixer that does not define `prefill` stores its inputs, and computes all tokens again.
        """
        return {"x": (length, d_model)}

    def start(self, batch: int, length: int, like: Array) -> State:
        """Return the state before the first token, for up to `length` tokens in each sequence.

        The state has the backend, dtype and number of features of the array `like`.
        """
        return State.empty(self.state_shapes(length, like.shape[-1]), batch, like)

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        """Return the outputs for tokens that follow those of a state, and the new state.

        With an empty state this is `forward` at evaluation. Rows may end in padding; the next
        tokens then follow their last token that is not.

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
        """Return the output for one more token, (batch, 1, d_model), and the new state."""
        checks.shape("x", x, (None, 1, "d_model"), "One token at a time")
        return self.prefill(x, state, context)

    @abstractmethod
    def explain(self, x: Array, context: Context) -> Array:
        """Return the mixing weights for x, (batch, heads, length, length).

        Entry (i, j) is the weight of token j for token i, and 0 if one of them is padding. Rows of
        attention and synthesizers sum to 1. Other mixers have one head: Fourier and Hartley return
        the transform over the sequence, which is complex; linear mixing W_sequence; and long
        convolutions the mean over features of absolute values.
        """


def mask_weights(matrices: Array, mask: Array | None) -> Array:
    """Return a copy of mixing weights, with 0 where either token is padding."""
    if mask is None:
        return matrices.copy()
    is_pair_of_tokens = mask[:, None, :, None] & mask[:, None, None, :]
    return array_module(matrices).where(is_pair_of_tokens, matrices, 0.0)


def convolution_matrices(weights: Array, skip: Array, length: int) -> Array:
    """Return a causal convolution plus `skip` times the token, as (length, length, d_model)."""
    xp = array_module(weights)
    distance = xp.arange(length)[:, None] - xp.arange(length)
    matrices = weights[xp.maximum(distance, 0)] * (distance >= 0)[..., None]
    return matrices + xp.eye(length, dtype=weights.dtype)[..., None] * skip
