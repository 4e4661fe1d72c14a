"""The workers of a team that are copies of this process."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, Layer
from npformer.engine.batch_shares import Share
from npformer.engine.blas import ONE_BLAS_THREAD
from npformer.engine.processes import Copies, shared_array
from npformer.engine.snapshot import Snapshot

Accumulate = Callable[[int, Share], Array]
"""Puts the gradients of a share into worker k's, and returns the share's part of the loss."""


class TeamCopies:
    """Copies that compute the shares of workers 1 to n, while this process computes worker 0's.

    Weights and gradients lie in shared memory: the copies see weights as they change, and their
    gradients replace those in the team's list. They see no other change of the model or the loss.
    """

    def __init__(
        self,
        n: int,
        model: Layer,
        loss: Any,
        snapshot: Snapshot,
        gradients: list[Gradients],
        accumulate: Accumulate,
    ) -> None:
        self.snapshot = snapshot
        self._constants = [constant.value.copy() for constant in snapshot.constants]
        self._loss_settings = dict(vars(loss))
        self._parameters = parameters = model.parameters()
        assert parameters.flat is not None
        weights = shared_array(parameters.flat.size, parameters.flat.dtype)
        self._weights = weights
        for k in range(1, n + 1):
            gradients[k] = Gradients(snapshot.layout, zeros=shared_array)

        def answer(k: int, share: Share) -> Array:
            if parameters.flat is not weights:  # the first request
                parameters.flat = weights
            return accumulate(k + 1, share)

        with ONE_BLAS_THREAD:
            self._copies = Copies(n, answer)

    def fit(self, n: int, snapshot: Snapshot, loss: Any) -> bool:
        """Return whether there are n copies that know model and loss as they are now."""
        return (
            len(self._copies) >= n
            and self.snapshot is snapshot
            and vars(loss) == self._loss_settings
            and all(
                np.array_equal(constant.value, value, equal_nan=True)
                for constant, value in zip(snapshot.constants, self._constants, strict=True)
            )
        )

    def run(self, shares: list[Share], accumulate: Accumulate) -> list[Array]:
        """Compute the first share here and the others in the copies; return parts of the loss."""
        self._weights[...] = self._parameters.flat
        for k, share in enumerate(shares[1:]):
            self._copies.ask(k, share)
        with ONE_BLAS_THREAD:
            losses = [accumulate(0, shares[0])]
        return losses + [self._copies.answer(k) for k in range(len(shares) - 1)]

    def close(self, at_once: bool = False) -> None:
        """Stop the copies; `at_once` in the middle of what they compute."""
        self._copies.close(at_once)
