"""Context: what belongs to one call and not to a layer."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from npformer.core import checks
from npformer.core.arrays import backend_of
from npformer.core.backend import Array
from npformer.core.padding import Padding
from npformer.core.support.words import a_type

_NOT_GIVEN: Any = object()


def _needed(context: Any) -> Any:
    """Return the generator, made when it is first asked for: without dropout, none is needed."""
    if isinstance(context._given, partial):
        context.__dict__["_given"] = context._given()
    return context._given


GENERATOR: Any = property(_needed)


@dataclass(frozen=True, init=False)
class Context:
    """What belongs to one call and not to a layer. `dataclasses.replace` makes a changed copy.

    The second input of a layer with two is called the memory, after the encoder's output that the
    cross-attention of a decoder reads.

    Parameters
    ----------
    training : bool
        Whether dropout acts.
    generator : numpy.random.Generator, or functools.partial that makes it, optional
        Draws the masks of dropout. Needed only if something is random. In a training step of
        npformer each sample has its own dropout masks, whichever part of the batch it is in. What
        a layer itself draws from the generator is different in each part of the batch.
    mask : bool array, shape (batch, length), optional
        Padding: True = keep. None keeps every token.
    types : int array, shape (batch, length), optional
        The type of each token, for models with `n_token_types`. None means 0 for all.
    keep : bool
        Whether a backward pass may follow. If not, layers need not return caches.
    padding : Padding, optional
        Instead of `mask`. All layers of the call then share the lengths that it finds.
    memory_mask, memory_types, memory_padding : optional
        The same for a second input, whose length may differ.
    chosen : bool array, shape (batch, length), optional
        The tokens whose outputs are asked for, for `ChosenTokens`. None means all.
    """

    training: bool
    generator: Any = GENERATOR
    keep: bool = True
    padding: Padding | None = None  # these four are set on the object only if given
    types: Array | None = None
    memory_padding: Padding | None = None
    memory_types: Array | None = None
    chosen: Array | None = None

    def __init__(
        self,
        training: bool = False,
        generator: Any = None,
        mask: Array | None = _NOT_GIVEN,
        types: Array | None = None,
        keep: bool = True,
        *,
        padding: Padding | None = None,
        memory_mask: Array | None = _NOT_GIVEN,
        memory_types: Array | None = None,
        memory_padding: Padding | None = None,
        chosen: Array | None = None,
    ) -> None:
        if type(training) is not bool or type(keep) is not bool:  # the usual case costs nothing
            checks.flag("training", training)
            checks.flag("keep", keep)
        if not (generator is None or hasattr(generator, "random") or type(generator) is partial):
            raise TypeError(
                f"generator is {a_type(generator)}; expected a numpy.random.Generator. "
                "Make one with numpy.random.default_rng(seed)"
            )
        self.__dict__.update(training=training, _given=generator, keep=keep, chosen=chosen)
        if mask is not _NOT_GIVEN or padding is not None or types is not None:
            self.__dict__.update(_tokens("", mask, padding, types))
        if memory_mask is not _NOT_GIVEN or memory_padding is not None or memory_types is not None:
            self.__dict__.update(_tokens("memory_", memory_mask, memory_padding, memory_types))

    @property
    def mask(self) -> Array | None:
        """The padding mask: bool, shape (batch, length), True = keep; None keeps every token."""
        return None if self.padding is None else self.padding.mask

    @property
    def memory_mask(self) -> Array | None:
        """The padding mask of a second input."""
        return None if self.memory_padding is None else self.memory_padding.mask

    def without_mask(self) -> Self:
        """Return the context for arrays that are not sequences."""
        about_sequences = self.padding, self.types, self.memory_padding, self.memory_types
        if all(each is None for each in about_sequences):
            return self
        return replace(self, padding=None, types=None, memory_padding=None, memory_types=None)

    def for_memory(self) -> Self:
        """Return the context for layers that act on the memory alone, such as its encoder.

        To them the memory is the first input, and there is no second.
        """
        return replace(self.swap(), memory_padding=None, memory_types=None)

    def swap(self) -> Self:
        """Return the context for a layer to which the memory comes first, such as a decoder."""
        return replace(
            self,
            padding=self.memory_padding,
            types=self.memory_types,
            memory_padding=self.padding,
            memory_types=self.types,
        )

    def dropout_generator(self, shared: bool = False) -> Any:
        """Return the generator in training, None at evaluation.

        With `shared`, it draws the same for all parts of the batch: a mask of weights, for example.
        Raises ValueError if there is none in training.
        """
        if not self.training:
            return None
        if self.generator is None:
            raise ValueError(
                "dropout needs a random generator while training; got none. Pass a seed, "
                "model.loss_and_gradients(..., seed=0), or, to a layer, "
                "Context(training=True, generator=numpy.random.default_rng(0))"
            )
        return getattr(self.generator, "shared", self.generator) if shared else self.generator


def _tokens(side: str, mask: Any, padding: Any, types: Any) -> dict[str, Any]:
    """Return padding and types of one input, checked. `side` is the prefix of its names."""
    if padding is not None:
        checks.instance(f"{side}padding", padding, Padding)
    if mask is None:
        padding = None
    elif mask is not _NOT_GIVEN:  # `replace` passes a mask along with the old padding
        backend_of(**{f"{side}mask": mask})
        checks.mask(f"{side}mask", mask, ("batch", "length"))
        padding = Padding(mask)
    if types is not None:
        name = f"{side}types"
        backend_of(**{name: types})
        checks.shape(name, types, ("batch", "length"), "One type for each token")
        if types.dtype.kind not in "iu":
            raise TypeError(f"{name} has dtype {types.dtype}; expected whole numbers")
    return {f"{side}padding": padding, f"{side}types": types}
