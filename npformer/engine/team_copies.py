"""The workers of a team that are copies of this process."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, Layer
from npformer.engine.blas import ONE_BLAS_THREAD
from npformer.engine.micro_batches import MicroBatch
from npformer.engine.processes import Copies, shared_array
from npformer.engine.snapshot import Snapshot

Accumulate = Callable[[int, Any, list[MicroBatch]], Array]
"""Puts gradients into worker k's, and returns a part of the loss, as `Team` does for itself."""


class TeamCopies:
    """Copies that are workers 1 to n, while this process is worker 0.

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

        def answer(k: int, request: Any) -> Array:
            if parameters.flat is not weights:  # the first request
                parameters.flat = weights
            return accumulate(k + 1, *request)

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

    def run(self, key: Any, work: list[list[MicroBatch]], accumulate: Accumulate) -> list[Array]:
        """Compute worker 0's part here and the others' in copies; return parts of the loss.

        `key` is that of the step's random numbers: see `step_key`.
        """
        self._weights[...] = self._parameters.flat
        for k, its_own in enumerate(work[1:]):
            self._copies.ask(k, (key, its_own))
        with ONE_BLAS_THREAD:
            losses = [accumulate(0, key, work[0])]
        return losses + [self._copies.answer(k) for k in range(len(work) - 1)]

    def close(self, at_once: bool = False) -> None:
        """Stop the copies; `at_once` in the middle of what they compute."""
        self._copies.close(at_once)
