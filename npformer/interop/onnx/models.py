"""Converters of models, their blocks and their losses to ONNX."""

import numpy as np

from npformer import layers, models
from npformer.core import Layer
from npformer.interop.onnx.converters import converter_of_loss, register
from npformer.interop.onnx.graph import Graph, Value
from npformer.models import losses
from npformer.models.trainable import (
    LanguageModel,
    MaskedLanguageModel,
    SequenceClassifier,
    WideSequenceClassifier,
)
from npformer.models.wide_sequence_model import TwoAnswers


@register(models.EncoderBlock)
def encoder_block(layer: models.EncoderBlock, x: Value, graph: Graph) -> Value:
    """x = norm(x + sublayer(x)) or x + sublayer(norm(x)), of the mixer, then the network."""
    x = residual(layer.norm, layer.mixer, layer.mixer_norm, x, graph)
    if layer.feed_forward is None:
        return x
    return residual(layer.norm, layer.feed_forward, layer.feed_forward_norm, x, graph)


def residual(order: str, sublayer: Layer, norm: Layer, x: Value, graph: Graph) -> Value:
    """norm(x + sublayer(x)) if the order is "post", or x + sublayer(norm(x)) if it is "pre"."""
    if order == "pre":
        return x + graph.apply(sublayer, graph.apply(norm, x))
    return graph.apply(norm, x + graph.apply(sublayer, x))


@register(models.Encoder)
def encoder(layer: models.Encoder, x: Value, graph: Graph) -> Value:
    """One block after the other; padding is 0 before and after."""
    y = graph.chain(layer.blocks, graph.zero_padding(x))
    if layer.final_norm is not None:
        y = graph.apply(layer.final_norm, y)
    return graph.zero_padding(y)


@register(SequenceClassifier)
def sequence_classifier(model: SequenceClassifier, x: Value, graph: Graph) -> Value:
    """logits = classify(pool(encoder(embed(x))))."""
    return graph.chain([model.embed, model.encoder, model.pool, model.classify], x)


@register(LanguageModel)
def language_model(model: LanguageModel, x: Value, graph: Graph) -> Value:
    """logits = output(encoder(embed(x)))."""
    return graph.chain([model.embed, model.encoder, model.output], x)


@register(MaskedLanguageModel)
def masked_language_model(model: MaskedLanguageModel, x: Value, graph: Graph) -> Value:
    """logits = output(norm(activation(dense(encoder(embed(x))))))."""
    encoded = graph.chain([model.embed, model.encoder], x)
    return graph.chain(
        [model.choose, model.dense, model.activation, model.norm, model.output], encoded
    )


@register(WideSequenceClassifier)
def wide_classifier(model: WideSequenceClassifier, x: Value, graph: Graph) -> Value:
    """The logits of the encoder, and those of the wide model."""
    deep_logits = sequence_classifier(model, x, graph)
    wide_logits = graph.apply(model.wide, x)
    return graph.node("Concat", deep_logits.expand_dims(1), wide_logits.expand_dims(1), axis=1)


@register(layers.Wide)
def wide(layer: layers.Wide, x: Value, graph: Graph) -> Value:
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
    weights = v * layers.wide.SCALE / norm
    y = weights.expand_dims(1) @ graph.node("Gather", layer.weight, ids)
    return graph.node("Squeeze", y, [1]) + layer.bias


def find_pairs(layer: layers.Wide, x: Value, mask: Value, graph: Graph) -> tuple[Value, Value]:
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


def probabilities(model: Layer, logits: Value, graph: Graph) -> Value | None:
    """Return the probabilities of classes; None for a loss without a converter."""
    loss = getattr(model, "loss", None)
    converter = converter_of_loss(loss)
    return None if converter is None else converter(loss, logits, graph)


@register(losses.SoftmaxCrossEntropy)
def softmax_probabilities(loss: losses.SoftmaxCrossEntropy, logits: Value, graph: Graph) -> Value:
    """p = softmax(logits)."""
    return graph.node("Softmax", logits)


@register(losses.BinaryCrossEntropy)
def sigmoid_probabilities(loss: losses.BinaryCrossEntropy, logits: Value, graph: Graph) -> Value:
    """p = (sigmoid(-logit), sigmoid(logit)): a small probability keeps its digits."""
    logits_of_classes = graph.node("Concat", logits * -1.0, logits, axis=-1)
    return graph.node("Sigmoid", logits_of_classes)


@register(TwoAnswers)
def mean_probabilities(loss: TwoAnswers, logits: Value, graph: Graph) -> Value:
    """p = softmax of the mean of both answers' logits."""
    return graph.node("Softmax", graph.node("ReduceMean", logits, [-2], keepdims=0))
