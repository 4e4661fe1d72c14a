"""Training steps with arrays that have no numbers: the code of a step runs, and computes nothing.

So what decides how much memory a step takes, the lengths from which weights are stored, chunks,
blocks of rows, memory that is lent again, decides here as well.
"""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Layer
from npformer.core.dispatch import enabled
from npformer.engine.team import Team
from npformer.engine.threads import one_after_another
from npformer.engine.unfilled import functions  # noqa: F401 (fills the table of rules)
from npformer.engine.unfilled.arrays import LEDGER, existing_array, unfilled
from npformer.engine.unfilled.ledger import Ledger, Use
from npformer.engine.unfilled.watch import Watch
from npformer.engine.unfilled.workspace import UnfilledContext, UnfilledWorkspace
from npformer.models.batch import Batch
from npformer.models.losses import Loss
from npformer.models.step import PlainStep

STEPS = 2
"""Steps that run: the second one has the optimizer's moments, and memory of the first."""


class UnfilledGenerator(np.random.Generator):
    """Draws dropout's masks without numbers; all other draws are NumPy's."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    @property
    def shared(self) -> UnfilledGenerator:
        """The generator that draws the same in all parts."""
        return self

    def mask_bytes(self, shape: tuple[int, ...]) -> tuple[float, Any]:
        """Return a number, and a byte for each entry of a mask, in whole words."""
        entries = int(np.prod(shape[1:]))
        words = unfilled((shape[0] * -(-entries // 8),), np.uint64)
        return 0.5, words.view(np.uint8).reshape(shape[0], -1)[:, :entries]


class Masks:
    """What a step draws its generators from."""

    def step_key(self) -> Masks:
        """Return what `part` belongs to."""
        return self

    def part(self, *place: Any) -> UnfilledGenerator:
        """Return the generator of a part of a step."""
        return UnfilledGenerator()


class UnfilledTeam(Team):
    """A `Team` whose workers run one after another, each with a ledger."""

    context_class = UnfilledContext

    def __init__(self, *arguments: Any, watch: Watch, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.watch = watch
        self.ledgers: list[Ledger] = []

    def _start(self, backend: str, n: int, snapshot: Any = None) -> None:
        while len(self.workspaces) < n:
            ledger = Ledger(place=self.watch.place)
            self.ledgers.append(ledger)
            self.workspaces.append(UnfilledWorkspace(ledger))
        super()._start(backend, n, snapshot)

    def _memory(self, k: int) -> Any:
        LEDGER.set(self.ledgers[k])
        workspace: Any = super()._memory(k)
        self.watch.begin(self.ledgers[k], workspace)
        return workspace


@dataclass(frozen=True)
class StepUse:
    """What steps have taken.

    Attributes
    ----------
    peak : int
        The most bytes above what was there before the first step.
    gradients, moments : int
        Those that are for gradients, of all workers, and for what the optimizer keeps.
    moment : (str, str)
        The pass and the layer at the peak.
    uses : list of Use
        What there is between the forward and the backward pass.
    shared_by : str
        Who shares the batch.
    """

    peak: int
    gradients: int
    moments: int
    moment: tuple[str, str]
    uses: list[Use] = field(default_factory=list)
    shared_by: str = ""


def copy_without_numbers(model: Layer, *others: Any) -> tuple[Any, ...]:
    """Return copies of a model and of what belongs to it, whose parameters have no numbers."""
    memo: dict[int, Any] = {}
    for parameter in model.named_parameters().values():
        flat = parameter._buffer.flat
        memo[id(flat)] = existing_array(flat.shape, flat.dtype)
    return tuple(copy.deepcopy(one, memo) for one in (model, *others))


def run_steps(
    model: Any,
    batch: Batch,
    loss: Loss,
    optimizer: Any,
    workers: int | str = "auto",
    micro_batch: int | None = None,
    names: bool = True,
) -> StepUse:
    """Run training steps of a model without numbers, and return what they have taken.

    Model and optimizer are those of `copy_without_numbers`. With `names`, layers are recorded.
    """
    watch = Watch(model)
    token = LEDGER.set(None)
    try:
        with one_after_another(), watch if names else nullcontext():
            if workers in ("auto", 1) and micro_batch is None and not enabled():
                return _plain_steps(model, batch, loss, optimizer, watch)
            return _team_steps(model, batch, loss, optimizer, workers, micro_batch, watch)
    finally:
        LEDGER.reset(token)


def _team_steps(
    model: Any,
    batch: Batch,
    loss: Loss,
    optimizer: Any,
    workers: int | str,
    micro_batch: int | None,
    watch: Watch,
) -> StepUse:
    team = UnfilledTeam(model, workers, micro_batch, loss=loss, watch=watch)
    of_optimizer = Ledger(place=lambda: ("update", ""))
    for _ in range(STEPS):
        watch.uses.clear()
        _, gradients = team.step(batch, Masks())
        LEDGER.set(of_optimizer)
        optimizer.step(gradients)
    n_bytes = sum(gradients_of_worker.flat.nbytes for gradients_of_worker in team._gradients)
    # Workers are at their peaks at the same time, more or less.
    peak = sum(ledger.peak for ledger in team.ledgers)
    if enabled():
        n_threads = int(team.shared_by.split()[0])
        peak += n_threads * scratch_of_thread(model.dtype)
    largest = max(team.ledgers, key=lambda ledger: ledger.peak)
    return _memory(peak, n_bytes, of_optimizer, largest, watch, team.shared_by)


def scratch_of_thread(dtype: Any) -> int:
    """Return the bytes of scratch memory that a thread of a kernel keeps."""
    from npformer.engine.cpu.rows import CHUNK, LEAVES  # late: `kernel_tables`

    runs_loops = any(leaf.runs_loop for leaf in LEAVES.values())
    chunks = 2 if runs_loops else 4
    return chunks * CHUNK * int(np.dtype(dtype).itemsize)


def _plain_steps(model: Any, batch: Batch, loss: Loss, optimizer: Any, watch: Watch) -> StepUse:
    ledger = Ledger(place=watch.place)
    of_optimizer = Ledger(place=lambda: ("update", ""))
    step = PlainStep(model, loss, Masks())
    for _ in range(STEPS):
        watch.uses.clear()
        LEDGER.set(ledger)
        watch.begin(ledger, None)
        _, gradients = step(batch)
        LEDGER.set(of_optimizer)
        optimizer.step(gradients)
        n_bytes = gradients.flat.nbytes
        del gradients
    return _memory(ledger.peak, n_bytes, of_optimizer, ledger, watch, step.shared_by)


def _memory(
    peak: int, gradients: int, of_optimizer: Ledger, largest: Ledger, watch: Watch, workers: str
) -> StepUse:
    moments = of_optimizer.n_bytes
    # An update comes when the step has freed what it took, but for what the workspaces hold.
    return StepUse(
        peak + moments,
        gradients,
        moments,
        largest.moment,
        [use for use in watch.uses if use.layer or use.keeper],
        workers,
    )
