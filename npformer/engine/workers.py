"""Workers: a batch in parts, each with its own gradients, summed at the end.

On a CPU everything runs in parallel this way, not only the matrix products. Each worker holds BLAS
to one thread; two libraries that both spread over all cores only stand in each other's way.

Workers are threads: NumPy releases the interpreter's lock while it computes. Or they are copies of
the process, which share no lock, where they may be made and have enough to do: in `fit`, for all of
its steps, with the same numbers bit for bit; and in a prediction of many tokens, for that call.

Where samples are too few for the cores, and long, threads share the calls of one worker instead:
the rows of a product, the heads of attention (`EngineContext.in_parts`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np

from npformer.core import (
    Array,
    Gradients,
    Layer,
    Parameters,
    array_module,
    backend_of,
    checks,
    cores,
    explained_memory_error,
)
from npformer.engine import processes
from npformer.engine.blas import ONE_BLAS_THREAD
from npformer.engine.context import EngineContext
from npformer.engine.losses import fast_loss
from npformer.engine.processes import CannotCopyError, Copies
from npformer.engine.switch import enabled
from npformer.engine.threads import side_by_side
from npformer.engine.tree import Tree, simple, tree_of
from npformer.engine.twins import twin_on
from npformer.engine.workspace import Workspace
from npformer.losses import Loss
from npformer.models import Batch, accumulate

Result = TypeVar("Result")


# How much of a batch's `work`, at a training step, a worker should have: with less, sharing costs
# more than it brings. A prediction has the same calls, each of them shorter, and is judged alike.

COPY_SECONDS = 0.001
"""Of a copy of this process: a message and an answer."""

THREAD_SECONDS = 0.0025
"""Of a thread: it waits for the interpreter between two calls, and long calls make this rare."""

THREAD_TOKENS = 384
"""And tokens: with fewer rows, a large model's calls are shorter than its `work` says."""

BLAS_SECONDS = 0.012
"""Work from which one worker alone gains from several BLAS threads."""

PAIR_SECONDS = 0.05
"""Work on pairs of tokens from which threads share the calls of one worker, if it is a third of all
work or more: BLAS shares products with weights well, and exponentials not at all."""


def one_blas_thread(backend: str, seconds: float, threads: int) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread where a second one is of no use; else change nothing.

    A product of two small matrices is over before a second thread has woken up, and on a busy
    machine the first one then waits for it. Beside threads of ours, BLAS's own would only be in the
    way. The limit that was there before comes back at the end.

    Parameters
    ----------
    backend : str
        The model's.
    seconds : float
        From `work`.
    threads : int
        That share a call.
    """
    if backend != "numpy" or (seconds >= BLAS_SECONDS and threads == 1):
        return nullcontext()
    return ONE_BLAS_THREAD


class _Sharing(threading.local):
    """How many processes share the cores with this thread, itself included."""

    among = 1


_sharing = _Sharing()


@contextmanager
def sharing_among(n: int) -> Iterator[None]:
    """Let this thread know that so many processes share the cores, itself included."""
    _sharing.among = n
    try:
        yield
    finally:
        _sharing.among = 1


def choose(
    workers: int | str,
    backend: str,
    samples: int,
    tokens: int,
    seconds: float,
    processes: bool = False,
) -> int:
    """Return how many workers a batch is worth.

    Parameters
    ----------
    workers : int or "auto"
        A number is taken as it is, up to one sample a worker. "auto" is as many as there are cores,
        if each has enough to do and at least one sample; 1 where processes share the cores already.
    backend : str
        The model's.
    samples, tokens : int
        In the batch.
    seconds : float
        From `work`.
    processes : bool
        Whether workers are copies of this process, for which less is enough.

    Returns
    -------
    n : int

    Raises
    ------
    ValueError
        Not a number from 1 nor "auto", or more than one on a GPU.
    """
    if workers == "auto":
        if processes:
            worth = seconds / COPY_SECONDS
        else:
            worth = min(seconds / THREAD_SECONDS, tokens / THREAD_TOKENS)
        most = min(samples, int(worth))
        if most < 2 or _sharing.among > 1 or backend != "numpy":
            return 1
        return min(cores(), most)
    if not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1:
        raise ValueError(f"workers is {workers!r}; expected a whole number of at least 1 or 'auto'")
    if workers > 1 and backend != "numpy":
        raise ValueError(
            f"workers is {workers} on backend {backend!r}; expected 1, for workers are CPU "
            "threads. Use workers='auto' to leave the choice to npformer"
        )
    return min(int(workers), samples)


def choose_threads(workers: int | str, tree: Tree, backend: str, samples: int, length: int) -> int:
    """Return how many threads are to share the calls of one worker; 1: batches are for workers.

    For a few long sequences on many cores: workers share samples, and half of the cores or more
    would have none.

    Parameters
    ----------
    workers : int or "auto"
        How many threads there may be; "auto": as many as there are cores.
    tree : Tree
        Of the model, whose mixers' kernels compute in parts.
    backend : str
        The model's.
    samples, length : int
        Of the batch.
    """
    work = tree.work
    pairs = samples * length * length * work.pair
    if pairs < PAIR_SECONDS or 2 * length * work.pair < work.token or backend != "numpy":
        return 1
    most = cores() if workers == "auto" else int(workers)
    if 2 * samples > most or _sharing.among > 1 or not enabled():
        return 1
    return most if tree.in_parts else 1


def _wants_copies(asked: bool | str, fits: bool) -> bool:
    """Return whether workers are to be copies of this process, if the model fits them."""
    if asked is False:
        return False
    if asked is not True and asked != "auto":
        raise ValueError(f"processes is {asked!r}; expected True, False or 'auto'")
    possible = fits and processes.possible(asked_for=asked is True)
    if asked is True and not possible:
        raise ValueError(
            "processes is True; expected False or 'auto' here. Worker processes are copies of this "
            "one: made on Linux, from its main thread, of a model on backend 'numpy' whose trained "
            "parameters lie in one buffer (flatten), and not in a daemonic process of a pool"
        )
    return possible and (asked is True or not processes.refused)


COPIES_FROM_SECONDS = 0.15
"""A prediction with less `work` makes no copies by itself: they cost more than they save."""

COPIES_FROM_TOKENS = 1 << 15
"""Nor does one of fewer tokens. A large model has the seconds of work with a few of them; its calls
are few and long, and hardly wait for the interpreter."""


def choose_processes(asked: bool | str, model: Layer, samples: int, length: int) -> int:
    """Return how many processes are to share a prediction; 1 is this one, with its threads.

    Parameters
    ----------
    asked : bool or "auto"
        "auto": as many as there are cores, if copies are possible and there is enough to do. True:
        in any case.
    model : Layer
    samples, length : int
        Of all batches.

    Returns
    -------
    n : int

    Raises
    ------
    ValueError
        Not one of the three, or True where there can be no copies.
    """
    tokens = samples * length
    if asked == "auto" and tokens < COPIES_FROM_TOKENS:  # of most predictions: as short as can be
        return 1
    tree = tree_of(model)
    seconds = tree.work.of(samples, length)
    if asked == "auto" and seconds < COPIES_FROM_SECONDS:
        return 1
    if asked == "auto" and choose_threads("auto", tree, model.backend, samples, length) > 1:
        return 1  # there are more cores than samples
    if not _wants_copies(asked, fits=model.backend == "numpy"):
        return 1
    workers = "auto" if asked == "auto" else cores()
    return choose(workers, model.backend, samples, tokens, seconds, processes=True)


PREDICTED_AT_ONCE = 1 << 11
"""Tokens of a prediction that a worker takes at a time on a CPU: with fewer, Python's own work
counts; with more, what a layer leaves for the next falls out of the cache."""


def in_processes(part: Callable[[int], Any], n: int) -> list[Any]:
    """Return [part(0), ..., part(n - 1)], all but the first computed in copies of this process.

    The copies live as long as this call: they begin with all that is here, and nothing that
    changes here meanwhile matters to them. Each process has one BLAS thread, and workers="auto" is
    one worker in each.

    Parameters
    ----------
    part : callable
        What it returns is pickled.
    n : int
        At least 1.

    Raises
    ------
    CannotCopyError
        The system makes no more processes. Nothing has been computed.
    CopyDiedError
        A copy ended in the middle of its work.
    """
    with (
        ONE_BLAS_THREAD,
        sharing_among(n),
        Copies(n - 1, ONE_BLAS_THREAD.stay, lambda k, _: part(k + 1)) as copies,
    ):
        for k in range(n - 1):
            copies.ask(k, None)
        first = part(0)
        return [first, *(copies.answer(k) for k in range(n - 1))]


@dataclass(frozen=True)
class _Plan:
    """How a batch is shared: among workers, or, by the rows of its calls, among threads of one."""

    workers: int
    threads: int
    seconds: float
    """Of `work`."""


@dataclass(frozen=True)
class _Share:
    """A worker's part of a training step: all that it has to be told."""

    batch: Batch
    generator: np.random.Generator | None
    threads: int
    parts: Sequence[tuple[slice, float]]
    """Rows that are computed at a time, and their weight in the batch's loss."""


class Team:
    """Workers that share a model, and what each of them needs for itself.

    Parameters
    ----------
    model : Layer
    workers : int or "auto"
        How many.
    micro_batch : int, optional
        Samples that a worker computes at a time, which bounds its memory; None: its whole share.
    workspaces : list of Workspace, optional
        Used, and added to, if given: memory that outlives this team.
    processes : bool or "auto"
        Whether the workers of `step` are copies of this process instead of threads. They are made
        when they are first needed, and see the weights as they change; after any other change of
        the model they are made anew. "auto": if possible, and where all that a step looks at is
        seen to change: workers are threads where a layer writes to itself at each step, or where a
        layer or a loss from elsewhere has arrays, tables or objects of its own.
    loss : Loss, optional
        What `step` computes the gradients of; the model's own if not given.

    Raises
    ------
    ValueError
        Processes where there can be none; the message says why.
    """

    def __init__(
        self,
        model: Layer,
        workers: int | str = 1,
        micro_batch: int | None = None,
        workspaces: list[Workspace] | None = None,
        processes: bool | str = False,
        loss: Loss | None = None,
    ) -> None:
        if micro_batch is not None:
            checks.positive("micro_batch", micro_batch)
        self.model = model
        self._processes = processes is not False and _wants_copies(
            processes, fits=isinstance(model.parameters().flat, np.ndarray)
        )
        self._insist = processes is True
        self._copies: Copies | None = None
        self._copied: Parameters  # the weights, and where copies see them
        self._shared: Array
        self._seen: Tree  # the model as the copies know it
        self._constants: list[Array] = []  # and what is not trained, nor plain values
        self._options: dict[str, Any] = {}  # of the loss
        self._writes = 0  # steps in which layers wrote to themselves
        self.workers = workers
        self.micro_batch = micro_batch
        self.loss: Loss | None = getattr(model, "loss", None) if loss is None else loss
        self._gradients: list[Gradients] = []
        self._layout: Any = None
        self._used: dict[int, Gradients] = {}
        self._workspaces = [] if workspaces is None else workspaces

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._dismiss()
        self._gradients, self._workspaces = [], []

    def step(
        self,
        batch: Batch,
        *,
        generator: np.random.Generator | None = None,
        tree: Tree | None = None,
    ) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients.

        Parameters
        ----------
        batch : Batch
            Ready: checked, and on the model's backend.
        generator : numpy.random.Generator or None
            For dropout. With several workers each gets a child of its own, so a run repeats bit
            for bit as long as their number stays the same.
        tree : Tree, optional
            Of the model as it is now, for who has just looked.

        Returns
        -------
        loss : array of no axes
            On the model's backend: reading it on a GPU waits for the device.
        gradients : Gradients
            This team's own; the next step overwrites them.
        """
        tree = tree or tree_of(self.model)
        backend = tree.backend
        if not (self._insist or (tree.simple and _simple_loss(self.loss))):
            self._processes = False  # copies would not see what changes there
            self._dismiss()
        plan = self._plan(tree, backend, batch, self._processes)
        n = plan.workers
        self._staff(n, backend, tree)
        generators = [generator] * n if n == 1 or generator is None else generator.spawn(n)
        weights = self._weights(batch, n)
        total = 1.0 if weights is None else float(max(weights.sum(), 1))

        def share(k: int) -> _Share:
            slices = list(_shares(len(batch), n, k, self.micro_batch))
            if weights is None:
                return _Share(batch, generators[k], plan.threads, [(slices[0], 1.0)])
            first = slices[0].start
            parts = [
                (slice(rows.start - first, rows.stop - first), float(weights[rows].sum()) / total)
                for rows in slices
            ]
            mine = batch.of_rows(slice(first, slices[-1].stop))
            return _Share(mine, generators[k], plan.threads, parts)

        at_once = self.micro_batch or -(-len(batch) // n)
        with explained_memory_error(backend, len(batch), at_once):
            if n > 1 and self._processes and self._has_copies(n - 1, tree):
                losses = self._run_in_processes([share(k) for k in range(n)])
            else:
                losses = self._run(lambda k: self._accumulate(k, share(k), backend), plan, backend)
        summed = self._gradients[0]
        for gradients in self._gradients[1:n]:
            summed.flat += gradients.flat
        return array_module(summed.flat).asarray(sum(losses[1:], losses[0])), summed

    def forward(self, batch: Batch, tree: Tree | None = None) -> Array:
        """Return the model's results at evaluation, computed in parts.

        Parameters
        ----------
        batch : Batch
            Ready: checked, and on the model's backend.
        tree : Tree, optional
            Of the model as it is now, for who has just looked.

        Returns
        -------
        y : array
            On the model's backend; the first axis is x's.
        """
        tree = tree or tree_of(self.model)
        backend = tree.backend
        plan = self._plan(tree, backend, batch)
        n = plan.workers
        self._staff(n, backend)
        at_once, x = self.micro_batch, batch.x
        # Threads that share calls take all samples: they are few, and their heads have to go round.
        if at_once is None and isinstance(x, np.ndarray) and plan.threads == 1:
            at_once = max(1, PREDICTED_AT_ONCE // x.shape[1])
        model = twin_on(backend, self.model)

        def part(k: int) -> list[Array]:
            context = EngineContext(keep=False, workspace=self._memory(k), threads=plan.threads)
            if n == 1 and (at_once is None or at_once >= len(batch)):
                return [model.forward(batch.x, batch.within(context))[0]]
            some = [batch.of_rows(rows) for rows in _shares(len(batch), n, k, at_once)]
            return [model.forward(rows.x, rows.within(context))[0] for rows in some]

        together = len(x) if at_once is None else min(len(x), n * at_once)
        with explained_memory_error(backend, together):
            made = [y for several in self._run(part, plan, backend) for y in several]
        if len(made) == 1:
            return made[0]
        with explained_memory_error(backend, len(x)):
            return array_module(x).concatenate(made)

    def _plan(self, tree: Tree, backend: str, batch: Batch, processes: bool = False) -> _Plan:
        samples, length = batch.x.shape[:2]
        seconds = tree.work.of(samples, length)
        n = choose(self.workers, backend, samples, samples * length, seconds, processes)
        threads = 1
        if not (processes and self._insist):
            threads = choose_threads(self.workers, tree, backend, samples, length)
        return _Plan(n if threads == 1 else 1, threads, seconds)

    def _weights(self, batch: Batch, n: int) -> np.ndarray | None:
        """Return how much each sample counts; None where the batch is computed as a whole."""
        if n == 1 and (self.micro_batch is None or self.micro_batch >= len(batch)):
            return None
        if batch.weights is not None:
            return np.asarray(batch.weights)
        assert self.loss is not None
        return self.loss.counts(batch.y)  # of labels on a GPU: this waits for the device

    def _accumulate(self, k: int, share: _Share, backend: str = "numpy") -> Array:
        """Put the gradients of a share into worker k's, and return what it adds to the loss."""
        assert self.loss is not None
        model, loss = twin_on(backend, self.model, of_data=True), fast_loss(self.loss, backend)
        gradients, total = self._gradients[k], 0.0
        if self._used.get(k) is gradients:  # new ones are 0
            gradients.zero()
        self._used[k] = gradients
        context = EngineContext(
            training=True,
            generator=share.generator,
            workspace=self._memory(k),
            threads=share.threads,
        )
        whole = len(share.parts) == 1
        # Overflow is not hushed up: `fit` looks at the loss and names the tensor.
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, weight in share.parts:
                batch = share.batch if whole else share.batch.of_rows(rows)
                total = total + accumulate(model, loss, batch, context, gradients, weight)
        return total

    def _run_in_processes(self, shares: list[_Share]) -> list[Array]:
        """Compute the first share here and the others in copies of this process."""
        assert self._copies is not None
        try:
            self._shared[...] = self._copied.flat
            for k, share in enumerate(shares[1:]):
                self._copies.ask(k, share)
            with ONE_BLAS_THREAD:
                losses = [self._accumulate(0, shares[0])]
            losses += [self._copies.answer(k) for k in range(len(shares) - 1)]
        except BaseException:
            # Their answers to this step would be taken for the next one's.
            self._dismiss(at_once=True)
            raise
        if not self._seen.fits(self.model):  # during the step
            self._writes += 1
            self._processes = self._insist or self._writes < 2
            if not self._processes:
                self._dismiss()
        return losses

    def _has_copies(self, n: int, tree: Tree) -> bool:
        """See that there are n copies of this process; if the system makes none, do without."""
        known = self._copies is not None and len(self._copies) >= n and self._seen is tree
        if known and self._as_copied():
            return True
        self._dismiss()
        try:
            self._copies = self._copy(n, tree)
        except CannotCopyError:  # threads need neither the memory nor the number
            if self._insist:
                raise
            self._processes = False
        return self._processes

    def _as_copied(self) -> bool:
        """Return whether constants and the options of the loss are as the copies know them."""
        kept = zip(self._seen.constants, self._constants, strict=True)
        return vars(self.loss) == self._options and all(
            np.array_equal(constant.value, value, equal_nan=True) for constant, value in kept
        )

    def _copy(self, n: int, tree: Tree) -> Copies:
        """Make copies of this process that compute the shares of workers 1 to n."""
        self._seen = tree
        self._constants = [constant.value.copy() for constant in tree.constants]
        self._options = dict(vars(self.loss))
        self._copied = parameters = self.model.parameters()
        assert parameters.flat is not None
        self._shared = processes.shared_array(parameters.flat.size, parameters.flat.dtype)
        for k in range(1, n + 1):
            self._gradients[k] = Gradients(tree.layout, zeros=processes.shared_array)

        def begin() -> None:
            parameters.flat = self._shared
            ONE_BLAS_THREAD.stay()

        with ONE_BLAS_THREAD:
            return Copies(n, begin, lambda k, share: self._accumulate(k + 1, share))

    def _dismiss(self, at_once: bool = False) -> None:
        if self._copies is not None:
            self._copies.close(at_once)
            self._copies = None

    def _run(self, part: Callable[[int], Result], plan: _Plan, backend: str) -> list[Result]:
        if plan.workers > 1:
            return side_by_side(part, list(range(plan.workers)))
        with one_blas_thread(backend, plan.seconds, plan.threads):
            return [part(0)]

    def _staff(self, n: int, backend: str, tree: Tree | None = None) -> None:
        """See that n workers have memory, and gradients if a tree says of what layout."""
        if self._gradients and backend_of(g=self._gradients[0].flat).name != backend:
            self._gradients.clear()  # the model moved since the last step
            self._workspaces.clear()
        while len(self._workspaces) < n:
            self._workspaces.append(Workspace())
        if tree is None:
            return
        # Another layer, or other weights that are trained.
        if self._layout is None or self._layout.named != tree.layout.named:
            self._gradients.clear()
        self._layout = tree.layout
        while len(self._gradients) < n:
            # From memory that is used again, once whoever has asked for these holds them no more.
            zeros = self._workspaces[len(self._gradients)].zeros if backend == "numpy" else None
            self._gradients.append(Gradients(tree.layout, zeros))

    def _memory(self, k: int) -> Workspace:
        self._workspaces[k].tidy()
        return self._workspaces[k]


def _simple_loss(loss: Loss | None) -> bool:
    return type(loss).__module__.startswith("npformer.") or simple(loss)


def _shares(n_rows: int, n: int, k: int, micro_batch: int | None) -> Iterator[slice]:
    """Yield the rows that worker k of n computes, some at a time."""
    start, stop = k * n_rows // n, (k + 1) * n_rows // n
    size = max(stop - start, 1) if micro_batch is None else micro_batch
    for first in range(start, max(stop, start + 1), size):
        yield slice(first, min(first + size, stop))
