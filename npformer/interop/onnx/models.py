"""Converters of models, their blocks and their losses to ONNX."""

from npformer import models
from npformer.core import Layer
from npformer.interop.onnx.converters import converter_of_loss, register
from npformer.interop.onnx.graph import Graph, Value
from npformer.models import losses
from npformer.models.trainable import LanguageModel, MaskedLanguageModel, SequenceClassifier


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
