"""The Random Synthesizers: trained, fixed, factorized (Tay et al., 2020)."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Parameter, array_module, initializers
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers.state import State
from npformer.mixers.averaging import Scores, Synthesizer
from npformer.mixers.mixer import MixerSettings


@drop_class_from_names
class RandomScores(Scores):
    """S_i = R^i: one table for all sequences, cropped to their length.

    Attributes
    ----------
    R : Parameter, shape (n_heads, max_len, max_len)
        Drawn from N(0, 1).
    """

    trained = True

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        shape = settings.n_heads, settings.max_len, settings.max_len
        table = initializers.draw(initializers.normal(1.0), rng, shape, dtype)
        self.R = Parameter(table, trainable=self.trained)

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.random_scores(self.R.value, self.length_of(x))

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        return _rows_of(self.R.value, x, state)[..., : state.longest]

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> None:
        gradients.add(self.R, F.random_scores_backward(dscores, cache))


class FixedRandomScores(RandomScores):
    """`RandomScores` that stay as they were drawn."""

    trained = False


@drop_class_from_names
class FactorizedRandomScores(Scores):
    """S_i = R1^i (R2^i)^T: a table of low rank, cropped.

    ``settings.rank`` is 8 in the paper, 16 in its code.

    Attributes
    ----------
    R1, R2 : Parameter, shape (n_heads, max_len, rank)
        Drawn so that the entries of the product have variance 1.
    """

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        shape = settings.n_heads, settings.max_len, settings.rank
        init = initializers.normal(settings.rank**-0.25)  # the product is a sum of `rank` terms
        self.R1 = Parameter(initializers.draw(init, rng, shape, dtype))
        self.R2 = Parameter(initializers.draw(init, rng, shape, dtype))

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.factorized_random_scores(self.R1.value, self.R2.value, self.length_of(x))

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        R1 = _rows_of(self.R1.value, x, state)
        R2 = self.R2.value[:, : state.longest]
        return R1 @ R2.swapaxes(-1, -2)

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> None:
        dR1, dR2 = F.factorized_random_scores_backward(dscores, cache)
        gradients.add(self.R1, dR1)
        gradients.add(self.R2, dR2)


def _rows_of(table: Array, x: Array, state: State) -> Array:
    """Return the rows of a table, (heads, max_len, ...), at the positions of the newest tokens, x.

    (heads, n, ...), or (batch, heads, n, ...) if rows of the batch have different positions.
    """
    at = state.positions(x.shape[1], table, axis=1)
    rows = table[:, at]
    if isinstance(at, slice):
        return rows
    return array_module(table).moveaxis(rows, 1, 0)


class RandomSynthesizer(Synthesizer, RandomScores):
    """head_i = softmax(R^i) x W_V^i: the same averages for every sequence; see `Synthesizer`."""


class FixedRandomSynthesizer(Synthesizer, FixedRandomScores):
    """A Random Synthesizer whose tables stay as they were drawn; see `Synthesizer`."""


class FactorizedRandomSynthesizer(Synthesizer, FactorizedRandomScores):
    """head_i = softmax(R1^i (R2^i)^T) x W_V^i: tables of low rank; see `Synthesizer`."""
