"""Facts about a model that hold until it changes, such as its cost and its gradients' layout.

Collecting them takes about as long as the pass of a small layer. Checking that nothing has changed
takes one comparison for each layer.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from npformer.core import Layer, Parameter, backend_of
from npformer.engine.twin_classes import has_own_pass, is_exactly, model_cache
from npformer.layers import Embedding, Positions
from npformer.mixers import (
    Attention,
    AveragingMixer,
    BlockwiseAttention,
    DenseSynthesizer,
    GeneralAttention,
    Mixer,
    Scores,
    WholeSequenceMixer,
)

SPLIT_BY_HEADS = (Attention, GeneralAttention, BlockwiseAttention, DenseSynthesizer)
"""Mixers whose kernel on the CPU divides a call among threads, by heads. With other mixers, long
calls are left to BLAS's own threads."""


class Snapshot:
    """The state of a model at one moment. It does not hold the model itself."""

    def __init__(self, model: Layer) -> None:
        layers = _layers(model)
        self._settings = _settings(model)
        self._inner = inner = [layer for layer in layers if layer is not model]
        self._inner_types = [type(layer) for layer in inner]
        self._inner_settings = [_settings(layer) for layer in inner]
        self._by_identity = any(type(layer).__eq__ is not object.__eq__ for layer in layers)
        custom = [layer for layer in inner if type(layer).children is not Layer.children]
        self._custom = [(layer, list(layer.children())) for layer in custom]
        children = [child for layer in layers for _, child in layer.children()]
        self._parameters = [child for child in children if isinstance(child, Parameter)]
        self._trained = [parameter.trainable for parameter in self._parameters]
        self._first = next(iter(model.named_parameters().values()), None)
        self.cost = cost_of(model)
        self.layout = model.parameters()  # of the trained parameters, in the order of the gradients
        self.needs_masks = any(_needs_masks(layer) for layer in layers)
        # Other layers may draw masks of any shape, or run a backward pass several times.
        self.is_stock = all(_is_stock(layer) for layer in layers)

    @property
    def backend(self) -> str:
        """Name of the backend that the parameters live on; ``"numpy"`` if there are none."""
        return "numpy" if self._first is None else backend_of(x=self._first._buffer.flat).name

    @cached_property
    def splits_calls(self) -> bool:
        """Whether threads can share the calls of its mixers."""
        return all(_splits_calls(layer) for layer in self._inner)

    def lengths_of_shard(self, shard_lengths: Any, batch_lengths: Any) -> tuple[int, ...]:
        """Return to how many tokens each input of a shard, a part of a batch, must be padded.

        The longest samples of the shard have `shard_lengths` tokens, and those of the batch
        `batch_lengths`. Dropout draws its masks for the whole batch, and cuts from them what the
        shard needs: the length of an axis must show whether it is the axis of tokens, and of which
        input.
        """
        if not self.is_stock:
            return tuple(batch_lengths)
        lengths: list[int] = []
        for length, batch_length in zip(shard_lengths, batch_lengths, strict=True):
            other_lengths = {
                other
                for other, other_batch_length in zip(lengths, batch_lengths, strict=False)
                if other_batch_length != batch_length
            }
            while length < batch_length and (length in self._axes or length in other_lengths):
                length += 1
            if length in other_lengths:
                return tuple(batch_lengths)
            lengths.append(length)
        return tuple(lengths)

    @cached_property
    def _axes(self) -> set[int]:
        """Lengths that axes other than those of tokens may have in activations."""
        settings = [self._settings, *self._inner_settings]
        numbers = {n for attributes in settings for n in attributes.values() if type(n) is int}
        return numbers.union({1}, *(parameter.value.shape for parameter in self._parameters))

    def fits(self, model: Layer) -> bool:
        """Return whether the model has the same layers, settings and trained parameters."""
        try:
            # Comparing dicts calls the __eq__ of a value only if the value is another object.
            settings = [layer.__dict__ for layer in self._inner]
            types = list(map(type, self._inner))
            if settings != self._inner_settings or types != self._inner_types:
                return False
            trained = [parameter.trainable for parameter in self._parameters]
            if vars(model) != self._settings or trained != self._trained:
                return False
            return not (self._custom or self._by_identity) or self._fits_closely()
        except ValueError:  # two arrays compare entry by entry, not to a single result
            return False

    def _fits_closely(self) -> bool:
        """Compare what `fits` misses if layers define ``children`` or ``__eq__`` themselves."""
        for layer, children in self._custom:
            ids = [(name, id(child)) for name, child in children]
            if [(name, id(child)) for name, child in layer.children()] != ids:
                return False
        return all(
            layer.__dict__[name] is value
            for layer, settings in zip(self._inner, self._inner_settings, strict=True)
            for name, value in settings.items()
            if isinstance(value, Layer)
        )


def snapshot_of(model: Layer) -> Snapshot:
    """Return a snapshot of a model as it is now: the last one, if the model has not changed."""
    # Read once: another thread may drop it.
    if (snapshot := model_cache(model).snapshot) is None or not snapshot.fits(model):
        cache = model_cache(model)
        cache.release()
        snapshot = cache.snapshot = Snapshot(model)
    return snapshot  # type: ignore[no-any-return]


def _layers(model: Layer) -> list[Layer]:
    """Return each layer of a model once, even one that a custom `children` leaves out."""
    layers: dict[int, Layer] = {}
    stack = [model]
    while stack:
        layer = stack.pop()
        if id(layer) in layers:
            continue
        layers[id(layer)] = layer
        for attribute in list(layer.__dict__.values()):  # a copy: another thread may set one
            items = attribute if isinstance(attribute, list | tuple) else (attribute,)
            stack += [item for item in items if isinstance(item, Layer)]
        stack += [child for _, child in layer.children() if isinstance(child, Layer)]
    return list(layers.values())


def _settings(layer: Layer) -> dict[str, Any]:
    """Return a layer's attributes, with copies of its lists."""
    return {
        name: list(value) if type(value) is list else value
        for name, value in list(layer.__dict__.items())
    }


def _needs_masks(layer: Layer) -> bool:
    """Return whether a layer may compute something else with a mask that keeps every token.

    A mixer may refuse masks, and a user's layer may read them.
    """
    refuses = isinstance(layer, WholeSequenceMixer) and layer.padding == "refuse"
    return refuses or not type(layer).__module__.startswith("npformer.")


def _is_stock(layer: Layer) -> bool:
    return type(layer).__module__.startswith("npformer.") and not has_own_pass(layer)


def _splits_calls(layer: Layer) -> bool:
    if not isinstance(layer, Mixer):
        return True
    heads = getattr(layer, "n_heads", 1)  # a call is divided by heads
    return heads > 1 and any(is_exactly(layer, mixer) for mixer in SPLIT_BY_HEADS)


@dataclass(frozen=True)
class Cost:
    """About how many seconds of one core a training step takes."""

    token: float
    """For each token, in products with weights."""
    pair: float
    """For each pair of tokens of a sequence, in attention's scores and what follows from them."""

    def seconds(self, samples: int, length: int) -> float:
        """Return the cost of a batch."""
        return samples * length * (self.token + self.pair * length)


def cost_of(model: Layer) -> Cost:
    """Return the cost of a model on a core that computes about 100 GFLOP/s.

    Forward and backward passes together take about 6 operations for each parameter and token, and
    in attention and synthesizers 12 for each feature and pair of tokens. Looking up a table costs
    nothing. Nor do a synthesizer's weights for each head: they are about as wide as the longest
    sequence is long, so the pairs already include them.
    """
    multiplied, averaged = 0, 0
    for _, layer in model.layers():  # lists a shared block once for each use
        multiplied += count_multiplied_weights(layer)
        averaged += count_averaged_features(layer)
    return Cost(6.0 * multiplied / 100e9, 12.0 * averaged / 100e9)


def count_multiplied_weights(layer: Layer) -> int:
    """Return by how many of its weights a layer multiplies each token."""
    if isinstance(layer, Embedding | Positions):
        return 0
    is_scores = isinstance(layer, Scores)
    return sum(
        child.size
        for _, child in layer.children()
        if isinstance(child, Parameter) and not child.constant
        if not (is_scores and len(child.shape) == 3)
    )


def count_averaged_features(layer: Layer) -> int:
    """Return how many features a mixer averages over pairs of tokens; 0 for other layers."""
    if not isinstance(layer, Attention | AveragingMixer):
        return 0
    weight = getattr(layer.output, "weight", getattr(layer.value, "weight", None))
    return 0 if weight is None else int(weight.shape[0])
