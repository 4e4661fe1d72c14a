"""Places of a model: each puts something into its first block, or in front of it."""

from __future__ import annotations

from typing import Any

from npformer.classifier import SequenceClassifier
from npformer.core import Layer
from npformer.layers import Dropout, LayerNorm, PositionwiseFeedForward, Sequential
from npformer.mixers import Mixer
from npformer.models import Encoder, EncoderBlock
from npformer.museum.attention import AttentionBy, Pair, with_softmax
from npformer.museum.probes import HEADS, WIDTH


def mixer(model: SequenceClassifier, layer: Mixer) -> None:
    """Put a mixer into the first block."""
    model.encoder.blocks[0].mixer = layer


def attention(model: SequenceClassifier, pair: Pair) -> None:
    """Let the first block attend by a pair such as `functional.scaled_dot_product_attention`'s."""
    mixer(model, AttentionBy(WIDTH, HEADS, attend=pair, seed=0, dtype="float64"))


def softmax(model: SequenceClassifier, pair: Pair) -> None:
    """Let the first block attend with a pair such as `functional.softmax`'s."""
    attention(model, with_softmax(*pair))


def norm(model: SequenceClassifier, layer: LayerNorm) -> None:
    """Put a layer norm behind the mixer of the first block, or in front of it with pre-norm."""
    model.encoder.blocks[0].mixer_norm = layer


def activation(model: SequenceClassifier, layer: Layer) -> None:
    """Put an activation into the feed-forward network of the first block."""
    feed_forward = model.encoder.blocks[0].feed_forward
    assert isinstance(feed_forward, PositionwiseFeedForward)
    feed_forward.activation = layer


def before_the_encoder(model: SequenceClassifier, layer: Any) -> None:
    """Put a layer behind the first projection of the features."""
    tokens: Any = Sequential(layer, model.embed.tokens)
    model.embed.tokens = tokens


def dropout(model: SequenceClassifier, layer: Dropout) -> None:
    """Put a dropout behind the mixer of the first block."""
    model.encoder.blocks[0].mixer_dropout = layer


def dropouts(model: SequenceClassifier, chain: Sequential) -> None:
    """Put the one dropout of a chain at both places of the first block."""
    block, shared = model.encoder.blocks[0], chain.chain[0]
    block.mixer_dropout = block.feed_forward_dropout = shared  # type: ignore[assignment]


def block(model: SequenceClassifier, layer: EncoderBlock) -> None:
    """Put a block in the place of the first one."""
    model.encoder.blocks[0] = layer


def encoder(model: SequenceClassifier, layer: Encoder) -> None:
    """Put an encoder into a model."""
    model.encoder = layer
