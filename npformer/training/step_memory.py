"""step_memory: what a training step keeps and takes, found without computing it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Layer, checks, describe
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.core.support.tables import align_columns
from npformer.engine.unfilled.ledger import Use
from npformer.engine.unfilled.steps import StepUse, copy_without_numbers, run_steps
from npformer.models.batch import Batch
from npformer.models.losses import Loss
from npformer.models.trainable import Model
from npformer.optim import Adam, Optimizer
from npformer.training.inspection.summary import Summary

MIB = 1 << 20

NAMES = {
    "attention_heads.y": "averages of heads",
    "dense_heads.y": "averages of heads",
    "inverse_std": "1 / standard deviation",
    "hv": "hidden and V",
    "is_kept": "mask of dropout",
    "keep": "mask of dropout",
    "normalised": "normalized x",
    "products": "x W1",
    "qkv": "Q, K, V",
    "rows": "x",
    "seen_value": "V",
    "softmax.y": "attention weights",
    "scaled": "mask of dropout",
    "stored": "attention weights",
    "totals": "row sums of weights",
    "units": "normalized x",
}
"""What the names in the code stand for; the others are shown as they are."""

NO_NAME = "in use"


class KeptArray(NamedTuple):
    """Arrays of one name that the backward pass of a layer reads."""

    layer: str
    kind: str
    """The layer's class."""
    name: str
    n_bytes: int


@dataclass(frozen=True, repr=False)
class StepMemory:
    """The memory of a training step, in bytes, above what was there before the first.

    Attributes
    ----------
    peak : int
        The most at any moment: all below, and what is only used for a while.
    kept : tuple of KeptArray
        What there is between the forward and the backward pass, by layer.
    moment : str
        When the most is in use: "in the backward pass of embed.tokens".
    parameters : int
        Of the model. They are there before the step, and not part of `peak`.
    gradients : int
        One sum of all gradients for each worker.
    moments : int
        What the optimizer keeps, such as Adam's two moments.
    micro_batches : mapping of int to int
        The peak if each worker computes its samples in so many parts.
    samples_at_once : mapping of int to int
        The `micro_batch` that each of them is.
    shared_by : str
        Who shares the batch, such as "2 threads".
    batch : str
        What the step is of: "32 x 128, float32".
    """

    peak: int
    kept: tuple[KeptArray, ...]
    moment: str
    parameters: int
    gradients: int
    moments: int
    micro_batches: dict[int, int]
    samples_at_once: dict[int, int]
    shared_by: str
    batch: str

    @property
    def kept_bytes(self) -> int:
        """The sum of what is kept."""
        return sum(array.n_bytes for array in self.kept)

    def table(self) -> Summary:
        """Return all of it as a table."""
        rows = [("layer", "kind", "keeps", "MiB")]
        for layer in dict.fromkeys(array.layer for array in self.kept):
            arrays = [array for array in self.kept if array.layer == layer]
            total = sum(array.n_bytes for array in arrays)
            names = ", ".join(f"{array.name} ({mib(array.n_bytes)})" for array in arrays)
            rows.append((layer or "the model", arrays[0].kind, names, mib(total)))
        head, *lines = align_columns(rows, "<<<>")
        rule = "-" * max(map(len, (head, *lines)))
        sums = [
            ("kept between forward and backward", mib(self.kept_bytes)),
            (f"gradients, of {self.shared_by}", mib(self.gradients)),
            ("kept by the optimizer", mib(self.moments)),
            (f"at most, {self.moment}", mib(self.peak)),
            ("parameters, there before", mib(self.parameters)),
        ]
        parts = [("micro-batches", *map(str, self.micro_batches))]
        parts.append(("micro_batch", *map(str, self.samples_at_once.values())))
        parts.append(("at most, MiB", *map(mib, self.micro_batches.values())))
        title = f"A training step of {self.batch}, {self.shared_by}: MiB above those before it"
        return Summary(
            "\n".join(
                [
                    title,
                    rule,
                    head,
                    rule,
                    *lines,
                    rule,
                    *align_columns(sums, "<>"),
                    "",
                    *align_columns(parts, "<" + ">" * len(self.micro_batches)),
                ]
            )
        )

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@refuse_unknown_arguments
def step_memory(
    model: Model,
    x: Any,
    y: Any = None,
    mask: Any = None,
    *,
    types: Any = None,
    loss: Loss | None = None,
    optimizer: Optimizer | None = None,
    workers: int | str = "auto",
    micro_batch: int | None = None,
    micro_batches: Sequence[int] = (1, 2, 4, 8),
) -> StepMemory:
    """Return how much memory a training step of a batch takes, and for what.

    The step runs as in `fit`, with arrays that have shapes and no numbers: it computes nothing and
    takes no memory. So the answer holds for whatever runs, fast or as it is written, and also for
    layers of your own, unless they need the numbers.

    Parameters
    ----------
    model : Model
        On the CPU. It stays as it is.
    x, y, mask, types
        A batch, as in `Model.loss_and_gradients`. Of x only shape and dtype matter, and without y
        its shape is that of the model's targets.
    loss : Loss, optional
        Used instead of the model's loss.
    optimizer : Optimizer, optional
        One of ``model.parameters()``. None: an Adam.
    workers, micro_batch : optional
        As in `fit`.
    micro_batches : sequence of int
        In how many parts each worker could compute its samples: the report says what the step then
        takes.

    Returns
    -------
    StepMemory
        Printed, a table.

    Raises
    ------
    RuntimeError
        A layer needs the numbers of its arrays.

    Notes
    -----
    Where a step takes 50 MB or more, a process takes as much within 10 %, as far as measured.

    Examples
    --------
    >>> npformer.step_memory(model, x[:32])
    """
    checks.instance("model", model, Model)
    if model.backend != "numpy":
        raise ValueError(
            f"model is on {model.backend!r}; expected one on the CPU, whose steps are known: "
            "model.to('numpy')"
        )
    counts = [checks.positive("micro_batches", count) for count in micro_batches]
    loss = model.loss if loss is None else model.loss_with(loss)
    batch = batch_of(model, x, y, mask, types, loss)
    use = use_of_step(model, batch, loss, optimizer, workers, micro_batch, names=True)
    run, layer = use.moment
    n_workers = 1 if use.shared_by.endswith("in a call") else int(use.shared_by.split()[0])
    samples = -(-len(batch) // n_workers)
    peaks: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for count in counts:
        if count <= samples:
            size = sizes[count] = -(-samples // count)
            part = use_of_step(model, batch, loss, optimizer, workers, size)
            peaks[count] = part.peak
    shape = " and ".join(" x ".join(map(str, s.x.shape)) for s in batch.inputs)
    return StepMemory(
        peak=use.peak,
        kept=sum_by_layer(model, use.uses),
        moment=f"in the {run} pass of {layer or 'the model'}" if run else "around the loss",
        parameters=sum(p.size for p in model.named_parameters().values()) * itemsize(model),
        gradients=use.gradients,
        moments=use.moments,
        micro_batches=peaks,
        samples_at_once=sizes,
        shared_by=use.shared_by,
        batch=f"{shape}, {model.dtype}",
    )


def use_of_step(
    model: Model,
    batch: Batch,
    loss: Loss,
    optimizer: Optimizer | None = None,
    workers: int | str = "auto",
    micro_batch: int | None = None,
    names: bool = False,
) -> StepUse:
    """Return what a step of a checked batch takes; with `names` also for what."""
    if optimizer is None:
        optimizer = Adam(model.parameters())
    model_copy, optimizer_copy = copy_without_numbers(model, optimizer)
    try:
        return run_steps(model_copy, batch, loss, optimizer_copy, workers, micro_batch, names=names)
    except Exception as error:
        raise RuntimeError(
            f"a step of this model cannot be followed without numbers: {type(error).__name__}: "
            f"{error}. Expected layers whose shapes do not depend on the numbers in their arrays"
        ) from error


def batch_of(model: Model, x: Any, y: Any, mask: Any, types: Any, loss: Loss) -> Batch:
    """Return a checked batch, with targets of the right shape if there are none."""
    if y is not None or model.self_supervised:
        batch = model.check(x, y, mask, types, loss=loss)
    else:
        batch = _add_targets(model, x, mask, types, loss)
    if model.self_supervised:
        batch = batch.anew(0, 0)
    return model.upload(batch, loss=loss)


def _add_targets(model: Model, x: Any, mask: Any, types: Any, loss: Loss) -> Batch:
    """Return a batch with the first targets that the model takes: zeros."""
    batch = model.check(x, None, mask, types)
    inputs = batch.inputs
    outputs = model.numbers_returned(inputs)
    shape = inputs[0].x.shape[:1]
    if model.targets_of is not None:
        shape = inputs[model.targets_of].x.shape[:2]
        outputs //= max(shape[1], 1)
    for dtype, axes in product(("int64", model.dtype), ((), (outputs,))):
        try:
            return model.check_samples(inputs, np.zeros((*shape, *axes), dtype), loss)
        except (TypeError, ValueError):
            continue
    raise ValueError(
        f"y is not given, and {describe(loss)} takes other targets than zeros of shape {shape}; "
        "expected a batch of targets: step_memory(model, x, y)"
    )


def sum_by_layer(model: Layer, uses: Iterable[Use]) -> tuple[KeptArray, ...]:
    """Return what is kept, in the order of the layers; arrays of one name are added."""
    kinds = {name: type(layer).__name__ for name, layer in model.layers()}
    totals: dict[tuple[str, str], int] = {}
    for use in uses:
        keeper = use.keeper or use.layer
        name = NAMES.get(f"{use.function}.{use.name}") or NAMES.get(use.name, use.name) or NO_NAME
        totals[keeper, name] = totals.get((keeper, name), 0) + use.n_bytes
    order = {name: k for k, name in enumerate(kinds)}
    arrays = [
        KeptArray(layer, kinds.get(layer, ""), name, n_bytes)
        for (layer, name), n_bytes in totals.items()
    ]
    return tuple(sorted(arrays, key=lambda a: (order.get(a.layer, -1), -a.n_bytes)))


def itemsize(model: Layer) -> int:
    """Return the bytes of one of a model's numbers."""
    return int(np.dtype(model.dtype).itemsize)


def mib(n_bytes: int) -> str:
    """Return bytes in MiB, as tables say it."""
    return f"{n_bytes / MIB:,.1f}" if n_bytes >= MIB / 20 else f"{n_bytes / MIB:.2g}"
