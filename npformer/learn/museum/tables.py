"""Wrong gradients of a table: of ids that repeat, and of a table that is used twice."""

# ruff: noqa: D102 -- documented in Layer

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array, Gradients
from npformer.layers import Embedding, Sequential, TiedOutput
from npformer.learn.museum.table import GRADIENT, bug, pair
from npformer.models import EncoderConfig
from npformer.proof.cases.case import draw

IDS = np.array([[0, 3, 3], [2, 3, 0]])
"""Two ids come more than once, and one does not come."""


def table_used_twice(kind: Any, config: EncoderConfig, **drawn: Any) -> Sequential:
    """Return an embedding, and behind it the output that multiplies by the same table."""
    embedding = Embedding(5, config.d_model, scale=True, **drawn)
    return Sequential(embedding, kind(embedding))


@pair(F.embedding, IDS, draw(5, 4))(30, *GRADIENT, "gradient_of_an_embedding")
def embedding_that_assigns(ids: Array, table: Array) -> tuple[Array, Any]:
    """A repeated id gets the gradient of its last occurrence alone.

    Who: 5 of 26 public hand-written NumPy Transformers assign the gradients of repeated ids, or
    average them.
    Why: A row that n tokens use gets the sum of n gradients. An assignment with an array of ids
    keeps one of them, and so does dtable[ids] += dy, which reads all rows before it writes any.
    Cost: The more frequent a word, the more of its gradient is lost.
    Caught: Gradient checks in which an id repeats. With other ids it is right.
    """
    return F.embedding(ids, table)


def embedding_that_assigns_backward(dy: Array, cache: Any) -> Array:
    """Gradient of a table, each row of which gets one token's gradient."""
    ids, shape = cache
    dtable = np.zeros(shape, dtype=dy.dtype)
    dtable[ids] = dy
    return dtable


@pair(F.embedding, IDS, draw(5, 4))(30, *GRADIENT, "gradient_of_an_embedding")
def embedding_that_averages(ids: Array, table: Array) -> tuple[Array, Any]:
    """A repeated id gets the mean of its gradients, and not their sum.

    Who: 5 of 26 public hand-written NumPy Transformers average the gradients of repeated ids, or
    assign them.
    Why: The loss is a function of each place where a row is used. Its derivative by the row is the
    sum over these places.
    Cost: A frequent word learns as slowly as a rare one, and more slowly in longer batches.
    Caught: Gradient checks in which an id repeats. With other ids it is right.
    """
    return F.embedding(ids, table)


def embedding_that_averages_backward(dy: Array, cache: Any) -> Array:
    """Gradient of a table, divided by how often each id comes."""
    ids, shape = cache
    counts = np.bincount(ids.ravel(), minlength=shape[0]).astype(dy.dtype)
    return F.embedding_backward(dy, cache) / np.maximum(counts, 1)[:, None]


@bug(37, *GRADIENT, "gradient_of_a_table_used_twice", build=table_used_twice, inputs=(IDS,))
class TiedOutputThatAddsNothing(TiedOutput):
    """An output that shares the table of an embedding adds nothing to its gradient.

    Who: At least one of 26 public hand-written NumPy Transformers loses one of two tied gradients.
    Why: With logits = h table^T, the table's gradient is the sum of what its rows get as embeddings
    and of dlogits^T h.
    Cost: The output layer is not trained: words are scored by a table that only learns to be read.
    Caught: Gradient checks of both uses together. Each of the two layers alone may be right.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, _ = F.linear_backward(dy, cache)
        return dx
