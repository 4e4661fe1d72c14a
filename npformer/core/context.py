"""Context: what belongs to one call instead of a layer."""

from dataclasses import dataclass, replace
from typing import Any, Self

from npformer.core import checks
from npformer.core.arrays import backend_of
from npformer.core.backend import Array
from npformer.core.padding import Padding

_NOT_GIVEN: Any = object()


@dataclass(frozen=True, init=False)
class Context:
    """What belongs to one call instead of a layer. `dataclasses.replace` makes a changed copy.

    Parameters
    ----------
    training : bool
        Whether dropout acts.
    generator : numpy.random.Generator, optional
        Draws the masks of dropout. Needed only if something is random. In a training step of
        npformer dropout's masks belong to the samples, whoever computes them. What a layer draws
        from the generator by itself is different in each part of the batch.
    mask : bool array, shape (batch, length), optional
        Padding: True = keep. None keeps every token.
    types : int array, shape (batch, length), optional
        The type of each token, for models with `n_token_types`. None means 0 for all.
    keep : bool
        Whether a backward pass may follow. If not, layers need not return caches.
    padding : Padding, optional
        Instead of `mask`. All layers of the call then share the lengths that it finds.
    """

    training: bool
    generator: Any
    types: Array | None
    keep: bool
    padding: Padding | None

    def __init__(
        self,
        training: bool = False,
        generator: Any = None,
        mask: Array | None = _NOT_GIVEN,
        types: Array | None = None,
        keep: bool = True,
        *,
        padding: Padding | None = None,
    ) -> None:
        if padding is not None:
            checks.instance("padding", padding, Padding)
        if mask is not _NOT_GIVEN and mask is not None:
            backend_of(mask=mask)
            checks.mask("mask", mask, ("batch", "length"))
        if mask is not _NOT_GIVEN:  # given by `replace`, besides the old padding
            padding = None if mask is None else Padding(mask)
        if type(training) is not bool or type(keep) is not bool:  # the usual case costs nothing
            checks.flag("training", training)
            checks.flag("keep", keep)
        if types is not None:
            backend_of(types=types)
            checks.shape("types", types, ("batch", "length"), "One type for each token")
            if types.dtype.kind not in "iu":
                raise TypeError(f"types has dtype {types.dtype}; expected whole numbers")
        if generator is not None and not hasattr(generator, "random"):
            raise TypeError(
                f"generator is a {type(generator).__name__}; expected a numpy.random.Generator. "
                "Make one with numpy.random.default_rng(seed)"
            )
        self.__dict__.update(
            training=training, generator=generator, types=types, keep=keep, padding=padding
        )

    @property
    def mask(self) -> Array | None:
        """The padding mask: bool, shape (batch, length), True = keep; None keeps every token."""
        return None if self.padding is None else self.padding.mask

    def without_mask(self) -> Self:
        """Return the context for arrays that are not sequences."""
        if self.padding is None and self.types is None:
            return self
        return replace(self, padding=None, types=None)

    def dropout_generator(self, shared: bool = False) -> Any:
        """Return the generator while training, and None at evaluation.

        With `shared`, it draws the same for all parts of the batch: a mask of weights, for example.
        Raises ValueError if there is none while training.
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
