"""Workers: a batch in parts, each with its own gradients, summed at the end.

On a CPU everything runs in parallel this way, not only the matrix products. Each worker holds BLAS
to one thread; two libraries that both spread over all cores only stand in each other's way.

Workers are threads: NumPy releases the interpreter's lock while it computes. Or they are copies of
the process, which share no lock, where they may be made and have enough to do: in `fit`, for all of
its steps, with the same numbers bit for bit; and in a prediction of many tokens, for that call.

Where samples are too few for the cores, and long, threads share the calls of one worker instead:
the rows of a product, the heads of attention (`Context.in_parts`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from npformer import checks, kernels, processes
from npformer.backend import (
    Array,
    Feed,
    array_module,
    backend_of,
    cores,
    explained_memory_error,
    to_numpy,
)
from npformer.blas import ONE_BLAS_THREAD
from npformer.functional import NO_LABEL
from npformer.layers import Embedding, Positions
from npformer.mixers import AveragingMixer, Mixer, Scores
from npformer.module import Context, Gradients, Layer, Lengths, Parameter, Parameters
from npformer.processes import CannotCopyError, Copies
from npformer.threads import side_by_side
from npformer.workspace import Workspace

Result = TypeVar("Result")


class Trainable(Protocol):
    """What a worker needs of a model."""

    def accumulate(
        self,
        x: Array,
        y: Array,
        context: Context,
        gradients: Gradients,
        *,
        weight: float,
        label_smoothing: float,
    ) -> Array:
        """Add the gradients of ``weight * loss`` and return ``weight * loss``."""


@dataclass(frozen=True)
class Work:
    """About how many seconds one core needs for a training step.

    Attributes
    ----------
    token : float
        For each token: products with weights.
    pair : float
        For each two tokens of a sequence: what they take from each other.
    """

    token: float
    pair: float

    def of(self, samples: int, length: int) -> float:
        """Return the seconds of a batch."""
        return samples * length * (self.token + self.pair * length)


def work(model: Layer) -> Work:
    """Return the work in a model.

    Forward and backward cost about 6 operations a parameter and token, and 12 a feature and pair of
    tokens in attention and synthesizers, at about 100 GFLOP/s. A table that is only looked up costs
    none, and what synthesizers have by head, mostly as wide as the longest sequence, is in the
    pairs.
    """
    multiplied, features = 0, 0
    for _, layer in model.layers():  # a block that acts several times comes as often
        if isinstance(layer, Embedding | Positions):
            continue
        if isinstance(layer, AveragingMixer):
            features += layer.output.weight.shape[0]
        scores = isinstance(layer, AveragingMixer | Scores)
        for _, child in layer.children():
            if isinstance(child, Parameter) and child.trainable:
                multiplied += 0 if scores and len(child.shape) == 3 else child.size
    return Work(6.0 * multiplied / 100e9, 12.0 * features / 100e9)


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


def one_blas_thread(model: Layer, seconds: float, threads: int) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread where a second one is of no use; else change nothing.

    A product of two small matrices is over before a second thread has woken up, and on a busy
    machine the first one then waits for it. Beside threads of ours, BLAS's own would only be in the
    way. The limit that was there before comes back at the end.

    Parameters
    ----------
    model : Layer
    seconds : float
        From `work`.
    threads : int
        That share a call.
    """
    if model.backend != "numpy" or (seconds >= BLAS_SECONDS and threads == 1):
        return nullcontext()
    return ONE_BLAS_THREAD


class _Sharing(threading.local):
    """How many processes share the cores with this thread, itself included."""

    among = 1


_sharing = _Sharing()


@contextmanager
def _sharing_among(n: int) -> Iterator[None]:
    _sharing.among = n
    try:
        yield
    finally:
        _sharing.among = 1


def choose(
    workers: int | str,
    model: Layer,
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
    model : Layer
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
        if most < 2 or _sharing.among > 1 or model.backend != "numpy":
            return 1
        return min(cores(), most)
    if not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1:
        raise ValueError(f"workers is {workers!r}; expected a whole number of at least 1 or 'auto'")
    if workers > 1 and model.backend != "numpy":
        raise ValueError(
            f"workers is {workers} on backend {model.backend!r}; expected 1, for workers are CPU "
            "threads. Use workers='auto' to leave the choice to npformer"
        )
    return min(int(workers), samples)


def choose_threads(workers: int | str, model: Layer, samples: int, length: int, work: Work) -> int:
    """Return how many threads are to share the calls of one worker; 1: batches are for workers.

    For a few long sequences on many cores: workers share samples, and half of the cores or more
    would have none.

    Parameters
    ----------
    workers : int or "auto"
        How many threads there may be; "auto": as many as there are cores.
    model : Layer
        Whose mixers' kernels compute in parts.
    samples, length : int
        Of the batch.
    work : Work
        Of the model.
    """
    pairs = samples * length * length * work.pair
    if pairs < PAIR_SECONDS or 2 * length * work.pair < work.token or model.backend != "numpy":
        return 1
    most = cores() if workers == "auto" else int(workers)
    if 2 * samples > most or _sharing.among > 1 or not kernels.enabled():
        return 1
    for _, layer in model.layers():
        if isinstance(layer, Mixer) and not layer.in_parts:
            return 1
        if isinstance(layer, AveragingMixer) and layer.n_heads < 2:
            return 1  # heads are what it is parted by
    return most


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


def choose_processes(asked: bool | str, model: Layer, samples: int, length: int, work: Work) -> int:
    """Return how many processes are to share a prediction; 1 is this one, with its threads.

    Parameters
    ----------
    asked : bool or "auto"
        "auto": as many as there are cores, if copies are possible and there is enough to do. True:
        in any case.
    model : Layer
    samples, length : int
        Of all batches.
    work : Work
        Of the model.

    Returns
    -------
    n : int

    Raises
    ------
    ValueError
        Not one of the three, or True where there can be no copies.
    """
    tokens, seconds = samples * length, work.of(samples, length)
    little = tokens < COPIES_FROM_TOKENS or seconds < COPIES_FROM_SECONDS
    if asked == "auto" and little:  # the way of every small prediction: as short as can be
        return 1
    if asked == "auto" and choose_threads("auto", model, samples, length, work) > 1:
        return 1  # there are more cores than samples
    if not _wants_copies(asked, fits=model.backend == "numpy"):
        return 1
    workers = "auto" if asked == "auto" else cores()
    return choose(workers, model, samples, tokens, seconds, processes=True)


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
        _sharing_among(n),
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

    x: Array
    y: Array
    mask: Array | None
    types: Array | None
    on_host: np.ndarray | None
    generator: np.random.Generator | None
    label_smoothing: float
    threads: int
    parts: Sequence[tuple[slice, float]]
    """Rows that are computed at a time, and their weight in the batch's loss."""


class Team:
    """Workers that share a model, and what each of them needs for itself.

    Parameters
    ----------
    model : Layer
        With the method `accumulate`.
    workers : int or "auto"
        How many.
    micro_batch : int, optional
        Samples that a worker computes at a time, which bounds its memory; None: its whole share.
    workspaces : list of Workspace, optional
        Used, and added to, if given: memory that outlives this team.
    feed : Feed, optional
        Brings the batches of `step` to the device. They must have been checked: on the device,
        nobody looks at ids and labels any more.
    processes : bool or "auto"
        Whether the workers of `step` are copies of this process instead of threads. They are made
        when they are first needed, and see the weights as they change, but no other change of the
        model: True is for whoever makes none meanwhile. "auto": if possible.
    model_work : Work, optional
        ``work(model)``, for who knows it: counting parameters takes as long as a small layer.

    Raises
    ------
    ValueError
        Processes where there can be none; the message says why.
    """

    def __init__(
        self,
        model: Any,
        workers: int | str = 1,
        micro_batch: int | None = None,
        workspaces: list[Workspace] | None = None,
        feed: Feed | None = None,
        processes: bool | str = False,
        model_work: Work | None = None,
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
        self.workers = workers
        self.micro_batch = micro_batch
        self._work = work(model) if model_work is None else model_work
        self._gradients: list[Gradients] = []
        self._workspaces = [] if workspaces is None else workspaces
        self._feed = feed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._dismiss()
        self._gradients, self._workspaces = [], []

    def step(
        self,
        x: Array,
        y: Array,
        mask: Array | None,
        *,
        types: Array | None = None,
        generator: np.random.Generator | None,
        label_smoothing: float = 0.0,
    ) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients.

        Parameters
        ----------
        x, y, mask : array
            As the model takes them.
        types : int array, shape (batch, length), optional
            Types of the tokens; all 0 if not given.
        generator : numpy.random.Generator or None
            For dropout. With several workers each gets a child of its own, so a run repeats bit
            for bit as long as their number stays the same.
        label_smoothing : float

        Returns
        -------
        loss : array of no axes
            On the model's backend: reading it on a GPU waits for the device.
        gradients : Gradients
            This team's own; the next step overwrites them.
        """
        on_host = _if_on_host(mask)
        if self._feed is None:
            labels_on_host = isinstance(y, np.ndarray)
            x, y, mask, counts = self.model.prepare_batch(x, y, mask)
            in_parts = self.micro_batch is not None and self.micro_batch < len(x)
            if in_parts and y.ndim > 1 and not labels_on_host:
                # Parts of a batch weigh as much as they have labels: this waits for the device.
                counts = to_numpy((y != NO_LABEL).sum(axis=1))
        else:
            counts = _label_counts(y, mask)
            x, y, mask, _ = self.model.prepare_batch(*self._feed(x, y, mask))
        if types is not None:
            types = self.model.prepare_types(types, x)
        plan = self._plan(x, self._processes)
        n = plan.workers
        self._staff(n)
        generators = [generator] * n if n == 1 or generator is None else generator.spawn(n)
        total = float(max(counts.sum(), 1))

        def share(k: int) -> _Share:
            slices = list(_shares(len(x), n, k, self.micro_batch))
            whole = n == 1 and len(slices) == 1
            first = slices[0].start
            mine = slice(first, slices[-1].stop)
            return _Share(
                x[mine],
                y[mine],
                None if mask is None else mask[mine],
                None if types is None else types[mine],
                None if on_host is None else on_host[mine],
                generators[k],
                label_smoothing,
                plan.threads,
                [
                    (
                        slice(rows.start - first, rows.stop - first),
                        1.0 if whole else float(counts[rows].sum()) / total,
                    )
                    for rows in slices
                ],
            )

        at_once = self.micro_batch or -(-len(x) // n)
        with explained_memory_error(self.model.backend, len(x), at_once):
            if n > 1 and self._processes and self._has_copies(n - 1):
                losses = self._run_in_processes([share(k) for k in range(n)])
            else:
                losses = self._run(lambda k: self._accumulate(k, share(k)), plan)
        summed = self._gradients[0]
        for gradients in self._gradients[1:n]:
            summed.flat += gradients.flat
        return array_module(summed.flat).asarray(sum(losses[1:], losses[0])), summed

    def forward(
        self,
        x: Array,
        mask: Array | None,
        types: Array | None,
        on_host: np.ndarray | None = None,
    ) -> Array:
        """Return the model's results at evaluation, computed in parts.

        Parameters
        ----------
        x, mask, types : array
            Checked and on the model's backend.
        on_host : NumPy array, optional
            The mask, where it has not only just left the host.

        Returns
        -------
        y : array
            On the model's backend; the first axis is x's.
        """
        plan = self._plan(x)
        n = plan.workers
        self._staff(n, with_gradients=False)
        at_once = self.micro_batch
        # Threads that share calls take all samples: they are few, and their heads have to go round.
        if at_once is None and isinstance(x, np.ndarray) and plan.threads == 1:
            at_once = max(1, PREDICTED_AT_ONCE // x.shape[1])

        def part(k: int) -> list[Array]:
            context = Context(keep=False, workspace=self._memory(k), threads=plan.threads)
            return [
                self.model.forward(x[rows], _of_rows(context, mask, types, rows, on_host))[0]
                for rows in _shares(len(x), n, k, at_once)
            ]

        together = len(x) if at_once is None else min(len(x), n * at_once)
        with explained_memory_error(self.model.backend, together):
            made = [y for several in self._run(part, plan) for y in several]
        with explained_memory_error(self.model.backend, len(x)):
            return made[0] if len(made) == 1 else array_module(x).concatenate(made)

    def _plan(self, x: Array, processes: bool = False) -> _Plan:
        samples, length = x.shape[:2]
        seconds = self._work.of(samples, length)
        n = choose(self.workers, self.model, samples, samples * length, seconds, processes)
        threads = 1
        if not (processes and self._insist):
            threads = choose_threads(self.workers, self.model, samples, length, self._work)
        return _Plan(n if threads == 1 else 1, threads, seconds)

    def _accumulate(self, k: int, share: _Share) -> Array:
        """Put the gradients of a share into worker k's, and return what it adds to the loss."""
        gradients, loss = self._gradients[k], 0.0
        gradients.zero()
        context = Context(
            training=True,
            generator=share.generator,
            workspace=self._memory(k),
            threads=share.threads,
        )
        # Overflow is not hushed up: `fit` looks at the loss and names the tensor.
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, weight in share.parts:
                loss = loss + self.model.accumulate(
                    share.x[rows],
                    share.y[rows],
                    _of_rows(context, share.mask, share.types, rows, share.on_host),
                    gradients,
                    weight=weight,
                    label_smoothing=share.label_smoothing,
                )
        return loss

    def _run_in_processes(self, shares: list[_Share]) -> list[Array]:
        """Compute the first share here and the others in copies of this process."""
        assert self._copies is not None
        try:
            self._shared[...] = self._copied.flat
            for k, share in enumerate(shares[1:]):
                self._copies.ask(k, share)
            with ONE_BLAS_THREAD:
                losses = [self._accumulate(0, shares[0])]
            return losses + [self._copies.answer(k) for k in range(len(shares) - 1)]
        except BaseException:
            # Their answers to this step would be taken for the next one's.
            self._dismiss(at_once=True)
            raise

    def _has_copies(self, n: int) -> bool:
        """See that there are n copies of this process; if the system makes none, do without."""
        if self._copies is not None and len(self._copies) >= n:
            return True
        self._dismiss()
        try:
            self._copies = self._copy(n)
        except CannotCopyError:  # threads need neither the memory nor the number
            if self._insist:
                raise
            self._processes = False
        return self._processes

    def _copy(self, n: int) -> Copies:
        """Make copies of this process that compute the shares of workers 1 to n."""
        self._copied = parameters = self.model.parameters()
        assert parameters.flat is not None
        self._shared = processes.shared_array(parameters.flat.size, parameters.flat.dtype)
        for k in range(1, n + 1):
            self._gradients[k] = Gradients(self.model, zeros=processes.shared_array)

        def begin() -> None:
            parameters.flat = self._shared
            ONE_BLAS_THREAD.stay()

        with ONE_BLAS_THREAD:
            return Copies(n, begin, lambda k, share: self._accumulate(k + 1, share))

    def _dismiss(self, at_once: bool = False) -> None:
        if self._copies is not None:
            self._copies.close(at_once)
            self._copies = None

    def _run(self, part: Callable[[int], Result], plan: _Plan) -> list[Result]:
        if plan.workers > 1:
            return side_by_side(part, list(range(plan.workers)))
        with one_blas_thread(self.model, plan.seconds, plan.threads):
            return [part(0)]

    def _staff(self, n: int, with_gradients: bool = True) -> None:
        """See that n workers have what they need."""
        if self._gradients and backend_of(g=self._gradients[0].flat).name != self.model.backend:
            self._gradients.clear()  # the model moved since the last step
            self._workspaces.clear()
        while len(self._workspaces) < n:
            self._workspaces.append(Workspace())
        while with_gradients and len(self._gradients) < n:
            self._gradients.append(Gradients(self.model))

    def _memory(self, k: int) -> Workspace:
        self._workspaces[k].tidy()
        return self._workspaces[k]


def _shares(n_rows: int, n: int, k: int, micro_batch: int | None) -> Iterator[slice]:
    """Yield the rows that worker k of n computes, some at a time."""
    start, stop = k * n_rows // n, (k + 1) * n_rows // n
    size = max(stop - start, 1) if micro_batch is None else micro_batch
    for first in range(start, max(stop, start + 1), size):
        yield slice(first, min(first + size, stop))


def _of_rows(
    context: Context,
    mask: Array | None,
    types: Array | None,
    rows: slice,
    on_host: np.ndarray | None,
) -> Context:
    """Return a context for some rows of a batch."""
    if mask is not None:
        mask = mask[rows]
        # Asked of the device, lengths are waited for once in a call, not in every layer.
        context = replace(context, lengths=Lengths(mask if on_host is None else on_host[rows]))
    return replace(context, mask=mask, types=None if types is None else types[rows])


def _if_on_host(mask: Array | None) -> np.ndarray | None:
    return mask if isinstance(mask, np.ndarray) else None


def _label_counts(y: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return how many labels each sample has: a token of padding has none, nor has NO_LABEL."""
    if y.ndim == 1:
        return np.ones(len(y), dtype="int64")
    counted = y != NO_LABEL
    return np.asarray((counted if mask is None else counted & mask).sum(axis=1))
