"""Context: what belongs to one call and not to a layer."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

from npformer.core import checks
from npformer.core.arrays import backend_of
from npformer.core.backend import Array
from npformer.core.padding import Padding
from npformer.core.support.wording import a_type

_NOT_GIVEN: Any = object()

_set_field = object.__setattr__
"""Sets a field of a context, which is frozen for everybody else."""


def _generator_of(context: Any) -> Any:
    """Return the generator, made when it is first asked for: without dropout, none is needed."""
    if isinstance(context._given, partial):
        _set_field(context, "_given", context._given())
    return context._given


GENERATOR: Any = property(_generator_of)


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

    training: bool = False
    generator: Any = GENERATOR
    keep: bool = True
    padding: Padding | None = None
    types: Array | None = None
    memory_padding: Padding | None = None
    memory_types: Array | None = None
    chosen: Array | None = None

    _given: ClassVar[Any] = None  # what was given as the generator

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
        # Contexts are made often: what is as by default stays with the class, and costs nothing.
        if training is not False:
            _set_field(self, "training", checks.flag("training", training))
        if keep is not True:
            _set_field(self, "keep", checks.flag("keep", keep))
        if generator is not None:
            _set_field(self, "_given", _check_generator(generator))
        if chosen is not None:
            _set_field(self, "chosen", chosen)
        if mask is not _NOT_GIVEN or padding is not None:
            _set_field(self, "padding", _padding_of("", mask, padding))
        if types is not None:
            _set_field(self, "types", _check_types("types", types))
        self._set_memory(memory_mask, memory_padding, memory_types)

    def _set_memory(self, mask: Any, padding: Padding | None, types: Array | None) -> None:
        """Set what belongs to a second input."""
        if mask is not _NOT_GIVEN or padding is not None:
            _set_field(self, "memory_padding", _padding_of("memory_", mask, padding))
        if types is not None:
            _set_field(self, "memory_types", _check_types("memory_types", types))

    @property
    def mask(self) -> Array | None:
        """The padding mask: bool, shape (batch, length), True = keep; None keeps every token."""
        return None if self.padding is None else self.padding.mask

    @property
    def memory_mask(self) -> Array | None:
        """The padding mask of a second input."""
        return None if self.memory_padding is None else self.memory_padding.mask

    def drop_mask(self) -> Self:
        """Return the context for arrays that are not sequences."""
        if (
            self.padding is None
            and self.types is None
            and self.memory_padding is None
            and self.memory_types is None
        ):
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


def _check_generator(generator: Any) -> Any:
    """Return a random generator, or what makes one; TypeError for anything else."""
    if hasattr(generator, "random") or type(generator) is partial:
        return generator
    raise TypeError(
        f"generator is {a_type(generator)}; expected a numpy.random.Generator. "
        "Make one with numpy.random.default_rng(seed)"
    )


def _padding_of(side: str, mask: Any, padding: Any) -> Padding | None:
    """Return the padding of one input, checked. `side` is the prefix of its names.

    A mask counts more than a padding: `replace` passes it along with the old padding.
    """
    if padding is not None:
        checks.instance(f"{side}padding", padding, Padding)
    if mask is _NOT_GIVEN:
        return padding  # type: ignore[no-any-return]
    if mask is None:
        return None
    backend_of(**{f"{side}mask": mask})
    checks.mask(f"{side}mask", mask, ("batch", "length"))
    return Padding(mask)


def _check_types(name: str, types: Array) -> Array:
    """Return the types of tokens after checking that they are whole numbers, one for each."""
    backend_of(**{name: types})
    checks.shape(name, types, ("batch", "length"), "One type for each token")
    if types.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {types.dtype}; expected whole numbers")
    return types
