"""Converters of the parts of models to ONNX."""

import numpy as np

from npformer import layers, models
from npformer.core import Layer
from npformer.interop.onnx.graph import Graph, Value
from npformer.interop.onnx.table import register
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
    y = graph.chain(layer.blocks, graph.without_padding(x))
    if layer.final_norm is not None:
        y = graph.apply(layer.final_norm, y)
    return graph.without_padding(y)


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
    """Two answers: the encoder's and the wide part's."""
    deep, wide = sequence_classifier(model, x, graph), graph.apply(model.wide, x)
    return graph.node("Concat", deep.at(1), wide.at(1), axis=1)


@register(layers.Wide)
def wide(layer: layers.Wide, x: Value, graph: Graph) -> Value:
    """y = sum over tokens and known pairs of their weight times their row; see `Wide.weighted`."""
    kept = graph.node("GreaterOrEqual", x, 0) if graph.mask is None else graph.mask
    ids = x
    if layer.n_pairs:
        pairs, found = pairs_of(layer, x, kept, graph)
        ids = graph.node("Concat", x, pairs, axis=1)
        kept = graph.node("Concat", kept, found, axis=1)
    ids = graph.where(kept, ids, 0)
    keys = graph.where(kept, ids, -1)
    same = graph.node("Equal", keys.at(1), keys.at(2))  # [batch, n, n]
    idf = graph.node("Gather", layer.idf, ids)
    n = same.like(idf).sum(2)
    v = graph.where(kept, idf * (graph.node("Log", n) + 1.0) / n, 0.0)
    norm = graph.node("Sqrt", (n * v * v).sum(1, keep=True))
    norm = graph.where(graph.node("Greater", norm, 0.0), norm, 1.0)
    weights = v * layers.wide.SCALE / norm
    y = weights.at(1) @ graph.node("Gather", layer.weight, ids)
    return graph.node("Squeeze", y, [1]) + layer.bias


def pairs_of(layer: layers.Wide, x: Value, kept: Value, graph: Graph) -> tuple[Value, Value]:
    """Return the ids of pairs of neighbours, and which of them are known."""

    def both(each: Value) -> tuple[Value, Value]:
        return each.cut(0, -1, axis=1), each.cut(1, np.iinfo("int64").max, axis=1)

    left, right = both(x)
    asked = left * layer.vocab_size + right
    known = layer.pairs.value.astype("int64") @ np.array([layer.vocab_size, 1])
    steps = [2**k for k in reversed(range(layer.n_pairs.bit_length()))]
    table = np.full(2 * steps[0], np.iinfo("int64").max)
    table[: layer.n_pairs] = known
    of_known, place = graph.value(table), asked * 0
    for step in steps:  # bisection: `place` of the known pairs are smaller
        smaller = graph.node("Less", graph.node("Gather", of_known, place + (step - 1)), asked)
        place = place + smaller.to("int64") * step
    found = graph.node("Equal", graph.node("Gather", of_known, place), asked)
    one, other = both(kept)
    return place + layer.vocab_size, found & one & other


def probabilities(model: Layer, logits: Value, graph: Graph) -> Value | None:
    """Return the probabilities of classes; None for a loss without them."""
    loss = getattr(model, "loss", None)
    if type(loss) is losses.BinaryCrossEntropy:
        both = graph.node("Concat", logits * -1.0, logits, axis=-1)
        return graph.node("Sigmoid", both)
    if type(loss) is TwoAnswers:
        return graph.node("Softmax", graph.node("ReduceMean", logits, [-2], keepdims=0))
    return graph.node("Softmax", logits) if type(loss) is losses.SoftmaxCrossEntropy else None
