"""What is known of a model as long as it stays the same: its work, and the layout of its gradients.

Finding out takes a walk over the whole tree of layers, as long as a small layer takes to compute.
To see that nothing has changed takes a glance at each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npformer.core import Layer, Layout, Parameter, backend_of
from npformer.engine.kept import kept_of
from npformer.engine.layers import stock
from npformer.layers import Embedding, Positions
from npformer.mixers import (
    Attention,
    AveragingMixer,
    BlockwiseAttention,
    DenseSynthesizer,
    Mixer,
    Scores,
)

IN_PARTS = (Attention, BlockwiseAttention, DenseSynthesizer)
"""Mixers whose kernel on the CPU shares a call among threads, by heads. Where there are others,
long calls have the threads of BLAS."""


@dataclass(frozen=True)
class Work:
    """About how many seconds one core needs for a training step.

    Attributes
    ----------
    token : float
        For each token: products with weights.
    pair : float
        For each two tokens of a sequence: what they take from each other.
    """

    token: float
    pair: float

    def of(self, samples: int, length: int) -> float:
        """Return the seconds of a batch."""
        return samples * length * (self.token + self.pair * length)


def work(model: Layer) -> Work:
    """Return the work in a model.

    Forward and backward cost about 6 operations a parameter and token, and 12 a feature and pair of
    tokens in attention and synthesizers, at about 100 GFLOP/s. A table that is only looked up costs
    none, and what synthesizers have by head, mostly as wide as the longest sequence, is in the
    pairs.
    """
    multiplied, features = 0, 0
    for _, layer in model.layers():  # a block that acts several times comes as often
        if isinstance(layer, Embedding | Positions):
            continue
        if isinstance(layer, AveragingMixer):
            weight = getattr(layer.output, "weight", getattr(layer.value, "weight", None))
            features += 0 if weight is None else weight.shape[0]
        scores = isinstance(layer, AveragingMixer | Scores)
        for _, child in layer.children():
            if isinstance(child, Parameter) and child.trainable:
                multiplied += 0 if scores and len(child.shape) == 3 else child.size
    return Work(6.0 * multiplied / 100e9, 12.0 * features / 100e9)


class Tree:
    """A look at a model.

    Parameters
    ----------
    model : Layer

    Attributes
    ----------
    work : Work
    layout : Layout
        Of what is trained.
    backend : str
    in_parts : bool
        Whether threads can share the calls of its mixers.
    simple : bool
        Whether layers from elsewhere have nothing but parameters, layers and plain values. What
        else they have may change unseen, and a copy of the process would not know.
    constants : list of Parameter
        Those that are not trained.
    """

    def __init__(self, model: Layer) -> None:
        layers = _layers(model)
        self._settings = _settings(model)
        inner = [layer for layer in layers if layer is not model]
        self._inner = [(layer, type(layer), _settings(layer)) for layer in inner]
        self._by_identity = any(type(layer).__eq__ is not object.__eq__ for layer in layers)
        # The model itself is not held.
        custom = [layer for layer in inner if type(layer).children not in (_CHILDREN, _AVERAGING)]
        self._custom = [(layer, list(layer.children())) for layer in custom]
        parameters = [
            p for layer in layers for _, p in layer.children() if isinstance(p, Parameter)
        ]
        self._trained = [(parameter, parameter.trainable) for parameter in parameters]
        self._first = next(iter(model.named_parameters().values()), None)
        self.work = work(model)
        self.layout = Layout(model.trainable())
        self.in_parts = all(map(_in_parts, layers))
        self.simple = all(type(x).__module__.startswith("npformer.") or simple(x) for x in layers)
        self.constants = [p for p, trained in self._trained if not trained]

    @property
    def backend(self) -> str:
        """Name of the backend that the parameters live on; ``"numpy"`` if there are none."""
        return "numpy" if self._first is None else backend_of(x=self._first._buffer.flat).name

    def fits(self, model: Layer) -> bool:
        """Return whether the model is as it was: layers, settings, what is trained."""
        try:
            for layer, kind, settings in self._inner:
                # Of two values that are one object, nobody is asked whether they are equal.
                if type(layer) is not kind or layer.__dict__ != settings:
                    return False
            same = vars(model) == self._settings and all(map(_as_it_was, self._trained))
            return same and (not (self._custom or self._by_identity) or self._looks_alike())
        except ValueError:  # two arrays, of which NumPy will not say whether they are the same
            return False

    def _looks_alike(self) -> bool:
        """Look closer: where layers say themselves what is equal, or what their children are."""
        for layer, children in self._custom:
            now = list(layer.children())
            if [(name, id(c)) for name, c in now] != [(name, id(c)) for name, c in children]:
                return False
        return all(
            layer.__dict__[name] is value
            for layer, _, settings in self._inner
            for name, value in settings.items()
            if isinstance(value, Layer)
        )


def tree_of(model: Layer) -> Tree:
    """Return what is known of a model, found anew if it has changed."""
    tree: Tree | None = kept_of(model).tree  # another thread may let go of it meanwhile
    if tree is None or not tree.fits(model):
        tree = _looked_at(model)
    return tree


def _looked_at(model: Layer) -> Tree:
    kept, tree = kept_of(model), Tree(model)
    kept.release()
    kept.tree = tree
    return tree


_CHILDREN, _AVERAGING = Layer.children, AveragingMixer.children


def _layers(model: Layer) -> list[Layer]:
    """Return every layer of a tree once, also those that `children` hides behind their own."""
    found: dict[int, Layer] = {}
    waiting = [model]
    while waiting:
        layer = waiting.pop()
        if id(layer) in found:
            continue
        found[id(layer)] = layer
        for attribute in list(layer.__dict__.values()):  # another thread may set one meanwhile
            several = attribute if isinstance(attribute, list | tuple) else (attribute,)
            waiting += [item for item in several if isinstance(item, Layer)]
        waiting += [child for _, child in layer.children() if isinstance(child, Layer)]
    return list(found.values())


def _settings(layer: Layer) -> dict[str, Any]:
    """Return what a layer has, its lists as they are now."""
    return {
        name: list(value) if type(value) is list else value
        for name, value in list(layer.__dict__.items())
    }


def _as_it_was(seen: tuple[Parameter, bool]) -> bool:
    return seen[0].trainable is seen[1]


def simple(holder: Any) -> bool:
    """Return whether all attributes are parameters, layers, plain values or lists of them.

    Parameters
    ----------
    holder : Layer or Loss
    """
    return all(
        isinstance(item, _PLAIN)
        for value in vars(holder).values()
        for item in (value if isinstance(value, list | tuple) else (value,))
    )


_PLAIN = (Parameter, Layer, int, float, complex, str, bytes, type, type(None))


def _in_parts(layer: Layer) -> bool:
    if not isinstance(layer, Mixer):
        return True
    heads = getattr(layer, "n_heads", 1)  # what it is parted by
    return heads > 1 and any(stock(layer, kind) for kind in IN_PARTS)
