"""What attention and all synthesizers share: each head is softmax(scores) times its values.

They differ in where the scores come from. A layer of the class `Scores` computes these, and
`AveragingMixer` does the rest.
"""

from collections.abc import Iterator
from inspect import signature
from typing import Any, Self

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Parameter,
    Seed,
    array_module,
    backend_of,
    checks,
    initializers,
)
from npformer.core.state import Kept, State
from npformer.functional.heads import check_heads, over_heads
from npformer.layers import Linear
from npformer.layers.pooling import finite_at_padding
from npformer.mixers.mixer import Mixer, MixerSettings


class Scores(Layer):
    """Scores of tokens for one another, which a softmax turns into weights.

    (batch, length, d_model) -> (batch, heads, length, length). Scores that do not depend on x are
    (heads, length, length), and their `backward` returns None.
    """

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        """Make these scores for an encoder, with those settings that ``__init__`` names."""
        given = settings.only(*signature(cls).parameters)
        return cls(**given, seed=seed, dtype=dtype)  # type: ignore[call-arg]

    def kept(self, length: int) -> Kept:
        """Return names and shapes of what is kept of one sequence of up to `length` tokens."""
        return {}

    def keep(self, x: Array, context: Context) -> dict[str, Array]:
        """Return what is kept of further tokens, by the names of `kept`."""
        return {}

    def rows(self, x: Array, state: State, context: Context) -> Array:
        """Return the scores of the newest tokens, x, for all tokens so far, these included.

        (batch, heads, n, length), or (heads, n, length) if they are the same in all rows.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define rows; expected rows(self, x, state, context)"
        )

    def length_of(self, x: Array) -> int:
        """Return the length of x, (batch, length, d_model), after checking it."""
        backend_of(x=x)
        checks.shape("x", x, ("batch", "length", "d_model"))
        return int(x.shape[1])


class AveragingMixer(Mixer):
    """y = concat(head_1, ..., head_h) W_O, head_i = softmax(scores_i(x)) x W_V^i.

    Parameters
    ----------
    scores : Scores
        Their parameters are named as if they were the mixer's own: ``mixer.query.weight``, not
        ``mixer.scores.query.weight``.
    d_model, n_heads : int
        Each head averages d_model / n_heads features with weights of its own.
    causal : bool
        Whether token i sees only the tokens 0 to i.
    initializer : str
        A name in `INITIALIZERS`: what the projections are drawn from.
    attention_dropout : float
        Probability of dropping a weight while training, after the softmax.

    Attributes
    ----------
    value, output : Linear
        W_V, which the paper on synthesizers calls G, and W_O.
    """

    def __init__(
        self,
        scores: Scores,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        initializer: str = "xavier_uniform",
        attention_dropout: float = 0.0,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        check_heads(d_model, n_heads)
        checks.rate("attention_dropout", attention_dropout)
        checks.instance("scores", scores, Scores)
        checks.flag("causal", causal)
        init = initializers.INITIALIZERS.make(initializer)
        rng = initializers.generator(seed)
        self.n_heads = n_heads
        self.causal = causal
        self.attention_dropout = float(attention_dropout)
        self.scores = scores
        self.value = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)
        self.output = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init)

    def __getattr__(self, name: str) -> Any:
        # ``mixer.query`` finds the projection of the scores: parameters are named like that.
        scores = self.__dict__.get("scores")
        if scores is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(scores, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # ``mixer.query = ...`` replaces the projection that the scores use.
        scores = self.__dict__.get("scores")
        if scores is not None and name in vars(scores):
            setattr(scores, name, value)
            if name not in vars(self):
                return
        super().__setattr__(name, value)

    def children(self) -> Iterator[tuple[str, Parameter | Layer]]:
        yield from vars(self)["scores"].children()
        for name, child in super().children():
            if name != "scores":
                yield name, child

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        x = finite_at_padding(x, context.padding)
        merged, heads_cache = self.heads(x, context)  # [batch, length, d_model]
        y, output_cache = self.output.forward(merged, context)
        return y, (heads_cache, output_cache, context.padding)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        heads_cache, output_cache, padding = cache
        dmerged = self.output.backward(finite_at_padding(dy, padding), output_cache, gradients)
        return self.heads_backward(dmerged, heads_cache, gradients)

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the heads side by side, (batch, length, d_model), and `heads_backward`'s cache."""
        scores, scores_cache = self.scores.forward(x, context)  # [(batch,) heads, length, length]
        value, value_cache = self.value.forward(x, context)  # [batch, length, d_model]
        by_head = F.split_heads(value, self.n_heads)  # [batch, heads, length, d_head]
        mask, rate = over_heads(context.mask), self.attention_dropout
        generator = context.dropout_generator() if rate > 0.0 else None
        heads, average_cache = F.average(scores, by_head, mask, self.causal, rate, generator)
        return F.merge_heads(heads), (scores_cache, value_cache, average_cache)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        """Gradient of `heads`: add those of the parameters and return dx."""
        scores_cache, value_cache, average_cache = cache
        dscores, dvalue = F.average_backward(F.split_heads(dmerged, self.n_heads), average_cache)
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx_scores = self.scores.backward(dscores, scores_cache, gradients)
        # x is used once or, where the scores depend on it, twice
        return dx_value if dx_scores is None else dx_value + dx_scores

    def kept(self, length: int, d_model: int) -> Kept:
        if type(self.scores).rows is Scores.rows:  # a user's own
            return super().kept(length, d_model)
        of_value = {"value": (self.n_heads, length, d_model // self.n_heads)}
        return {**self.scores.kept(length), **of_value}

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        if type(self.scores).rows is Scores.rows:
            return super().prefill(x, state, context)
        n, x = x.shape[1], finite_at_padding(x, context.padding)
        value = F.split_heads(self.value.forward(x, context)[0], self.n_heads)
        state = state.followed(n, context, value=value, **self.scores.keep(x, context))
        scores = self.scores.rows(x, state, context)  # [(batch,) heads, n, length so far]
        heads, _ = F.average(scores, state.so_far("value"), state.seen(n, x))
        return self.output.forward(F.merge_heads(heads), context)[0], state

    def explain(self, x: Array, context: Context) -> Array:
        scores, _ = self.scores.forward(x, context)
        weights, _ = F.averaging_weights(scores, over_heads(context.mask), self.causal)
        xp = array_module(x)
        weights = xp.broadcast_to(weights, (x.shape[0], *weights.shape[-3:]))
        if context.mask is None:
            return weights.copy()
        return xp.where(context.mask[:, None, :, None], weights, 0.0)  # padding gets nothing


class Synthesizer(AveragingMixer):
    """head_i = softmax(scores_i(x)) x W_V^i, with scores that do not compare tokens.

    Parameters
    ----------
    max_len, rank : int
        Length of the longest sequence, and rank of factorized tables.
    d_model, n_heads, causal, initializer, attention_dropout
        As in `AveragingMixer`.

    Attributes
    ----------
    scores_type : type of Scores
        Set by each subclass.
    """

    scores_type: type[Scores]

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        max_len: int = 128,
        *,
        rank: int = 8,
        causal: bool = False,
        initializer: str = "xavier_uniform",
        attention_dropout: float = 0.0,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        rng = initializers.generator(seed)
        settings = MixerSettings(d_model, n_heads, max_len, rank=rank, initializer=initializer)
        scores = self.scores_type.build(settings, seed=rng, dtype=dtype)
        drawn: dict[str, Any] = {"initializer": initializer, "seed": rng, "dtype": dtype}
        averaging: dict[str, Any] = {"causal": causal, "attention_dropout": attention_dropout}
        super().__init__(scores, d_model, n_heads, **averaging, **drawn)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        sizes = settings.only("d_model", "n_heads", "max_len", "rank")
        given = settings.only("causal", "initializer", "attention_dropout")
        return cls(**sizes, **given, seed=seed, dtype=dtype)
