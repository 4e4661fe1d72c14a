"""What belongs to one call and to no layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from npformer.core.backend import Array
from npformer.core.padding import Padding

_NOT_GIVEN: Any = object()


@dataclass(frozen=True, init=False)
class Context:
    """What belongs to one call and to no layer. `dataclasses.replace` makes a changed one.

    Parameters
    ----------
    training : bool
        Whether dropout drops.
    generator : numpy.random.Generator, optional
        Where dropout's masks come from. Needed only where something is random.
    mask : bool array, shape (batch, length), optional
        Padding: True = keep. None keeps every token.
    types : int array, shape (batch, length), optional
        The type of each token, for models with `n_token_types`: BERT counts its segments so. None
        means that every token is of type 0.
    keep : bool
        Whether a backward pass may follow. If not, layers need not keep what it would ask for, and
        the caches that they return are of no use.
    padding : Padding, optional
        In place of `mask`, where what is known of it is to be shared.

    Attributes
    ----------
    padding : Padding or None
        The mask, and what it says of lengths, for all layers of the call together.
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
        if mask is not _NOT_GIVEN:  # of `replace`, which hands the old padding on beside it
            padding = None if mask is None else Padding(mask)
        self.__dict__.update(
            training=training, generator=generator, types=types, keep=keep, padding=padding
        )

    @property
    def mask(self) -> Array | None:
        """The padding mask, bool, shape (batch, length), True = keep; None keeps every token."""
        return None if self.padding is None else self.padding.mask

    def without_mask(self) -> Self:
        """Return the same context for tensors that are no longer sequences."""
        if self.padding is None and self.types is None:
            return self
        return replace(self, padding=None, types=None)

    def draws(self) -> Any:
        """Return the generator for a layer that is random while training, None at evaluation.

        Raises
        ------
        ValueError
            Training without a generator: randomness is passed in, never made up.
        """
        if not self.training:
            return None
        if self.generator is None:
            raise ValueError(
                "dropout needs a random generator while training; got none. Pass a seed, "
                "model.loss_and_gradients(..., seed=0), or, to a layer, "
                "Context(training=True, generator=numpy.random.default_rng(0))"
            )
        return self.generator
