"""Converters of the wide model to ONNX."""

import numpy as np

from npformer.interop.onnx import Graph, Value, register
from npformer.interop.onnx.models import sequence_classifier
from npformer.tasks.wide.layer import SCALE, Wide
from npformer.tasks.wide.loss import TwoAnswers
from npformer.tasks.wide.model import WideSequenceClassifier


@register(WideSequenceClassifier)
def wide_classifier(model: WideSequenceClassifier, x: Value, graph: Graph) -> Value:
    """The logits of the encoder, and those of the wide model."""
    deep_logits = sequence_classifier(model, x, graph)
    wide_logits = graph.apply(model.wide, x)
    return graph.node("Concat", deep_logits.expand_dims(1), wide_logits.expand_dims(1), axis=1)


@register(Wide)
def wide(layer: Wide, x: Value, graph: Graph) -> Value:
    """y = sum over tokens and known pairs of weight times row; see `Wide.weighted`."""
    mask = graph.node("GreaterOrEqual", x, 0) if graph.mask is None else graph.mask
    ids = x
    if layer.n_pairs:
        pairs, is_known = find_pairs(layer, x, mask, graph)
        ids = graph.node("Concat", x, pairs, axis=1)
        mask = graph.node("Concat", mask, is_known, axis=1)
    ids = graph.where(mask, ids, 0)
    keys = graph.where(mask, ids, -1)
    is_equal = graph.node("Equal", keys.expand_dims(1), keys.expand_dims(2))  # [batch, n, n]
    idf = graph.node("Gather", layer.idf, ids)
    n = is_equal.cast_like(idf).sum(2)
    v = graph.where(mask, idf * (graph.node("Log", n) + 1.0) / n, 0.0)
    norm = graph.node("Sqrt", (n * v * v).sum(1, keep=True))
    norm = graph.where(graph.node("Greater", norm, 0.0), norm, 1.0)
    weights = v * SCALE / norm
    y = weights.expand_dims(1) @ graph.node("Gather", layer.weight, ids)
    return graph.node("Squeeze", y, [1]) + layer.bias


def find_pairs(layer: Wide, x: Value, mask: Value, graph: Graph) -> tuple[Value, Value]:
    """Return the ids of pairs of neighbours, and True at the pairs that are known."""
    end = np.iinfo("int64").max
    left, right = x.cut(0, -1, axis=1), x.cut(1, end, axis=1)
    queries = left * layer.vocab_size + right  # each pair as one number
    known_pairs = layer.pairs.value.astype("int64") @ np.array([layer.vocab_size, 1])
    steps = [2**k for k in reversed(range(layer.n_pairs.bit_length()))]
    padded_pairs = np.full(2 * steps[0], end)
    padded_pairs[: layer.n_pairs] = known_pairs
    table = graph.value(padded_pairs)
    rank = queries * 0
    for step in steps:  # bisection: in the end `rank` known pairs are smaller
        is_smaller = graph.node("Less", graph.node("Gather", table, rank + (step - 1)), queries)
        rank = rank + is_smaller.cast("int64") * step
    is_known = graph.node("Equal", graph.node("Gather", table, rank), queries)
    left_mask, right_mask = mask.cut(0, -1, axis=1), mask.cut(1, end, axis=1)
    return rank + layer.vocab_size, is_known & left_mask & right_mask


@register(TwoAnswers)
def mean_probabilities(loss: TwoAnswers, logits: Value, graph: Graph) -> Value:
    """p = softmax of the mean of both answers' logits."""
    return graph.node("Softmax", graph.node("ReduceMean", logits, [-2], keepdims=0))
