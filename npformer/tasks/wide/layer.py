"""Wide: a linear map of the tokens of a sequence, and of pairs of neighbours."""

from typing import Any

from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Parameter,
    array_module,
    checks,
    initializers,
)
from npformer.functional.embedding import check_ids
from npformer.functional.sums import sum_along
from npformer.tasks.wide.bag import bag, bag_backward

SCALE = 20.0
"""The weights of a sequence have this norm. With it a step of Adam moves y as far as the output of
a network beside it."""


class Wide(Layer):
    """y = sum_k v_k weight_k + bias over the tokens, and known pairs of neighbours, of a sequence.

    This is the wide part of Cheng et al. (2016), "Wide & deep learning for recommender systems":
    it knows pairs of words and need not compose them. v is TF-IDF: (1 + log n_k) idf_k for what
    occurs n_k times, divided by the norm of all of them, times `SCALE`.

    Parameters
    ----------
    vocab_size, n_pairs, n_outputs : int

    Attributes
    ----------
    pairs : Parameter, shape (n_pairs, 2)
        The ids of the pairs, in order. Not trained, and whole numbers: ids below 2^24 are exact
        even in float32. No pair is known before `learn`.
    idf : Parameter, shape (vocab_size + n_pairs,)
        How much a token or a pair counts: the fewer texts have it, the more. Not trained.
    weight : Parameter, shape (vocab_size + n_pairs, n_outputs)
        0 at first.
    bias : Parameter, shape (n_outputs,)
    """

    def __init__(
        self, vocab_size: int, n_pairs: int, n_outputs: int, *, dtype: str = "float32"
    ) -> None:
        self.vocab_size = checks.positive("vocab_size", vocab_size)
        self.n_pairs = checks.whole("n_pairs", n_pairs, at_least=0)

        def constant(init: Any, *shape: int, trainable: bool = False) -> Parameter:
            return Parameter(initializers.draw(init, None, shape, dtype), trainable=trainable)

        shape = vocab_size + n_pairs, checks.positive("n_outputs", n_outputs)
        self.pairs = constant(initializers.zeros, n_pairs, 2)
        self.idf = constant(initializers.ones, shape[0])
        self.weight = constant(initializers.zeros, *shape, trainable=True)
        self.bias = constant(initializers.zeros, n_outputs, trainable=True)

    def learn(self, pairs: Array, idf: Array) -> None:
        """Set which pairs are known, sorted, and how much each token and pair counts."""
        self.pairs.value[...] = pairs
        self.idf.value[...] = idf

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        ids, weights = self.weighted(x, context.mask)
        y, cache = bag(ids, weights, self.weight.value)
        return y + self.bias.value, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        # y = bag + bias
        gradients.add(self.bias, sum_along(dy, axis=0))
        # bag = sum_k v_k weight[ids_k]
        gradients.add(self.weight, bag_backward(dy, cache)[1])

    def weighted(self, x: Array, mask: Array | None) -> tuple[Array, Array]:
        """Return the ids of tokens and pairs, (batch, 2 length - 1), and their weights.

        What occurs several times has its weight split evenly; what is unknown has 0.
        """
        xp = array_module(x)
        check_ids("x", x, self.vocab_size, f"vocab_size is {self.vocab_size}")
        checks.shape("x", x := x.astype("int64"), ("batch", "length"))
        kept = xp.ones(x.shape, dtype=bool) if mask is None else mask
        pairs, found = self._pairs_of(x, kept)
        kept = xp.concatenate([kept, found], axis=1)
        ids = xp.where(kept, xp.concatenate([x, pairs], axis=1), 0)
        size = self.weight.shape[0] + 1  # one more, so that what is not kept is counted by itself
        rows = xp.arange(len(x))[:, None] * size
        keys = rows + xp.where(kept, ids, size - 1)
        n = self._counts(keys.reshape(-1)).reshape(ids.shape).astype(self.weight.dtype)
        v = xp.where(kept, self.idf.value[ids] * (1.0 + xp.log(n)) / n, 0.0)  # in n equal parts
        norm = xp.sqrt((n * v * v).sum(axis=1, keepdims=True))
        return ids, SCALE * v / xp.where(norm > 0.0, norm, 1.0)

    def _counts(self, keys: Array) -> Array:
        """Return how often each key occurs. `unique` would wait for a GPU to count them."""
        xp = array_module(keys)
        ordered = xp.sort(keys)
        before = xp.searchsorted(ordered, keys, side="left")
        return xp.searchsorted(ordered, keys, side="right") - before

    def _pairs_of(self, x: Array, kept: Array) -> tuple[Array, Array]:
        """Return the rows that neighbours have in the table, and whether they have one."""
        xp = array_module(x)
        if self.n_pairs == 0:
            return x[:, 1:], xp.zeros(x[:, 1:].shape, dtype=bool)
        known = self.pairs.value.astype("int64") @ xp.asarray([self.vocab_size, 1])
        asked = x[:, :-1] * self.vocab_size + x[:, 1:]
        place = xp.minimum(xp.searchsorted(known, asked), self.n_pairs - 1)
        found = (known[place] == asked) & kept[:, :-1] & kept[:, 1:]
        return self.vocab_size + place, found
