"""Outputs of a model at evaluation: of a batch, or of many samples batch by batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npformer.core import Array, Layer, checks
from npformer.core.inputs import Sequences
from npformer.data.lengths import LongestFirst
from npformer.engine.snapshot import snapshot_of
from npformer.engine.team import team_of
from npformer.engine.threads import side_by_side
from npformer.engine.worker_counts import choose_workers
from npformer.models.batch import Batch
from npformer.models.trainable.protocol import Trainable

Convert = Callable[[Array], np.ndarray]
"""Converts a batch's outputs to an array on the host."""


def outputs(model: Trainable, batch: Batch) -> Array:
    """Return the outputs of checked samples at evaluation, on the model's backend."""
    with team_of(model, "auto") as team:
        return team.forward(model.upload(batch))


def predict_in_batches(
    model: Trainable, convert: Convert, inputs: tuple[Sequences, ...], batch_size: int
) -> np.ndarray:
    """Compute outputs batch by batch, convert each batch's to a host array, and join them.

    `inputs` are checked; the other arguments are those of `Model.predict_probabilities`.
    """
    checks.positive("batch_size", batch_size)
    has_padding = any(sequences.padding is not None for sequences in inputs)
    if len(inputs[0].x) <= batch_size and not has_padding:  # one batch, and none is cut
        return convert(outputs(model, Batch(inputs)))
    by_length = has_padding and model.targets_of is None and model.skips_padding()
    batches = LongestFirst(inputs, batch_size, by_length)
    most = len(batches) // batch_size  # threads also share a batch, if there is only one
    return results(model, batches, most, lambda batch: convert(outputs(model, batch)))


def results(
    model: Layer, batches: LongestFirst, most: int, compute: Callable[[Batch], np.ndarray]
) -> np.ndarray:
    """Return the results of `compute` for all batches, in the order of the samples.

    At most `most` threads share the batches, if the model takes long enough.
    """
    n, length = len(batches), batches.mean_length()
    seconds = snapshot_of(model).cost.seconds(n, length)
    threads = choose_workers("auto", model.backend, most, n * length, seconds)

    def compute_share(k: int) -> list[np.ndarray]:
        return [compute(batch) for batch in batches.share(k, threads)]

    return batches.restore_order(side_by_side(compute_share, list(range(threads))))


def refuse_samples(wrong: np.ndarray, quantity: str, numbers: np.ndarray | None = None) -> None:
    """Raise ValueError for the first row that is wrong; `numbers` are the samples' numbers."""
    if not wrong.any():
        return
    row = int(np.argwhere(wrong)[0, 0])
    sample = row if numbers is None else int(numbers[row])
    raise ValueError(
        f"the {quantity} for sample {sample} are NaN or infinite; expected numbers. Its x holds "
        "NaN or infinity, or the weights do: npformer.trace(model, x) shows where they begin"
    )
