"""What all synthesizers share: each head is softmax(scores) times its values.

They differ in where the scores come from. A subclass of `Scores` computes these, and
`AveragingMixer` does the rest. A mixer derives from both: ``class RandomSynthesizer(Synthesizer,
RandomScores)``. Attention could be one of them; it is written out in `attention`.
"""

from typing import Any, Self

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Seed,
    array_module,
    backend_of,
    checks,
    generators,
    initializers,
)
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.core.support.wording import missing_method_error
from npformer.functional.heads import check_heads, mask_for_heads
from npformer.layers import Linear
from npformer.layers.pooling import finite_at_padding
from npformer.layers.state import State, StateShapes
from npformer.mixers.mixer import Mixer, MixerSettings, mask_weights


@drop_class_from_names
class Scores(Layer):
    """Scores of tokens for one another, which a softmax turns into weights.

    (batch, length, d_model) -> (batch, heads, length, length). Scores that do not depend on x are
    (heads, length, length), and their gradient with respect to x is None.

    Parameters
    ----------
    settings : MixerSettings
        The settings for mixers of an encoder; scores use some of them.
    """

    @refuse_unknown_arguments
    def __init__(
        self, settings: MixerSettings, *, seed: Seed = None, dtype: str = "float32"
    ) -> None:
        checks.instance("settings", settings, MixerSettings)
        check_heads(settings.d_model, settings.n_heads)
        self.n_heads = settings.n_heads
        self.draw_scores(settings, generators.from_seed(seed), dtype)

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        """Set the parameters of the scores."""

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the scores and what `scores_backward` needs."""
        raise missing_method_error(self, "scores(self, x, context)")

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> Array | None:
        """Gradient of `scores`: add those of the parameters and return dx, or None."""
        raise missing_method_error(self, "scores_backward(self, dscores, cache, gradients)")

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return self.scores(x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array | None:
        return self.scores_backward(dy, cache, gradients)

    def score_state_shapes(self, length: int) -> StateShapes:
        """Return names and shapes of the arrays stored for a sequence of up to `length` tokens."""
        return {}

    def score_state(self, x: Array, state: State, context: Context) -> dict[str, Array]:
        """Return the entries to store for the new tokens x, by names of `score_state_shapes`."""
        return {}

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        """Return the scores of the newest tokens, x, for all tokens so far, including x.

        (batch, heads, n, length), or (heads, n, length) if they are the same in all rows.
        """
        raise missing_method_error(self, "newest_scores(self, x, state, context)")

    def length_of(self, x: Array) -> int:
        """Return the length of x, (batch, length, d_model), after checking it."""
        backend_of(x=x)
        checks.shape("x", x, ("batch", "length", "d_model"))
        return int(x.shape[1])


@drop_class_from_names
class AveragingMixer(Mixer, Scores):
    """y = concat(head_1, ..., head_h) W_O, head_i = softmax(scores_i(x)) x W_V^i.

    A subclass defines `scores` and `scores_backward`, or takes them from a second base. If it has
    further parameters, it draws them in `draw_scores`.

    Parameters
    ----------
    settings : MixerSettings
        Each of its n_heads averages d_model / n_heads features with its own weights. causal:
        token i sees only the tokens 0 to i. initializer: what the projections are drawn from.
        bias: whether the projections have one. attention_dropout: probability of dropping a weight
        while training, after the softmax.

    Attributes
    ----------
    value, output : Linear
        W_V, which the paper on synthesizers calls G, and W_O.
    """

    @refuse_unknown_arguments
    def __init__(
        self, settings: MixerSettings, *, seed: Seed = None, dtype: str = "float32"
    ) -> None:
        rng = generators.from_seed(seed)
        super().__init__(settings, seed=rng, dtype=dtype)
        self.causal = settings.causal
        self.attention_dropout = float(settings.attention_dropout)
        d_model = settings.d_model
        bias = settings.bias
        init = initializers.INITIALIZERS.make(settings.initializer)
        self.value = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)
        self.output = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls(settings, seed=seed, dtype=dtype)

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
        rate = self.attention_dropout
        scores, scores_cache = self.scores(x, context)  # [(batch,) heads, length, length]
        value, value_cache = self.value.forward(x, context)  # [batch, length, d_model]
        heads, average_cache = F.average(
            scores,
            F.split_heads(value, self.n_heads),
            mask=mask_for_heads(context.mask),
            causal=self.causal,
            rate=rate,
            generator=context.dropout_generator() if rate > 0.0 else None,
        )
        return F.merge_heads(heads), (scores_cache, value_cache, average_cache)

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        """Gradient of `heads`: add those of the parameters and return dx."""
        scores_cache, value_cache, average_cache = cache
        dheads = F.split_heads(dmerged, self.n_heads)
        dscores, dvalue = F.average_backward(dheads, average_cache)
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx_scores = self.scores_backward(dscores, scores_cache, gradients)
        # x is used once or, where the scores depend on it, twice
        return dx_value if dx_scores is None else dx_value + dx_scores

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        if type(self).newest_scores is Scores.newest_scores:  # a user's class without it
            return super().state_shapes(length, d_model)
        d_head = self.value.weight.shape[1] // self.n_heads
        return {**self.score_state_shapes(length), "value": (self.n_heads, length, d_head)}

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        if type(self).newest_scores is Scores.newest_scores:
            return super().prefill(x, state, context)
        n_new = x.shape[1]
        x = finite_at_padding(x, context.padding)
        value, _ = self.value.forward(x, context)
        value = F.split_heads(value, self.n_heads)
        score_entries = self.score_state(x, state, context)
        state = state.extend(n_new, context, value=value, **score_entries)
        scores = self.newest_scores(x, state, context)  # [(batch,) heads, n, length so far]
        heads, _ = F.average(scores, state.so_far("value"), mask=state.causal_mask(n_new, x))
        y, _ = self.output.forward(F.merge_heads(heads), context)
        return y, state

    def explain(self, x: Array, context: Context) -> Array:
        scores, _ = self.scores(x, context)
        weights, _ = F.averaging_weights(scores, mask_for_heads(context.mask), self.causal)
        xp = array_module(x)
        weights = xp.broadcast_to(weights, (x.shape[0], *weights.shape[-3:]))
        return mask_weights(weights, context.mask)


@drop_class_from_names
class Synthesizer(AveragingMixer):
    """head_i = softmax(scores_i(x)) x W_V^i, with scores that do not compare tokens.

    The second base of a subclass defines the scores.

    Parameters
    ----------
    max_len, rank : int
        Length of the longest sequence, and rank of factorized tables.
    d_model, n_heads, causal, initializer, attention_dropout
        As in `AveragingMixer`.
    """

    @refuse_unknown_arguments
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
        settings = MixerSettings(
            d_model,
            n_heads,
            max_len=max_len,
            rank=rank,
            causal=causal,
            initializer=initializer,
            attention_dropout=attention_dropout,
        )
        super().__init__(settings, seed=seed, dtype=dtype)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        options = settings.only(
            "d_model",
            "n_heads",
            "max_len",
            "rank",
            "causal",
            "initializer",
            "attention_dropout",
        )
        return cls(**options, seed=seed, dtype=dtype)
