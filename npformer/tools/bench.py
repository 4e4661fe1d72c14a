"""How fast npformer trains and predicts on this machine; no other library is needed.

Against PyTorch it is measured by `python -m benchmarks cpu`, in npformer's repository.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import checks, cores, to_numpy
from npformer.engine import use_kernels
from npformer.engine.blas import ONE_BLAS_THREAD
from npformer.engine.threads import threads
from npformer.engine.workers import Team
from npformer.models import EncoderConfig
from npformer.optim import Adam

VOCABULARY, CLASSES, HEADS = 1000, 10, 4
MIXERS = ("attention", "dense_synthesizer", "fourier")


@dataclass(frozen=True)
class Workload:
    """Sizes of a model and its batch.

    Attributes
    ----------
    name : str
    batch, length, d_model, d_ff, n_layers : int
    """

    name: str
    batch: int
    length: int
    d_model: int
    d_ff: int
    n_layers: int

    def model(self, mixer: str, dropout: float = 0.0) -> SequenceClassifier:
        """Return a classifier of this size.

        Parameters
        ----------
        mixer : str
        dropout : float
        """
        config = EncoderConfig(
            d_model=self.d_model,
            n_layers=self.n_layers,
            n_heads=HEADS,
            d_ff=self.d_ff,
            max_len=self.length,
            mixer=mixer,
            dropout=dropout,
        )
        return SequenceClassifier(config, n_classes=CLASSES, vocab_size=VOCABULARY, seed=0)

    def products(self, mixer: str) -> int:
        """Return the operations of a training step's matrix products, 2 m n k each.

        Fourier transforms are none, and weights that are computed twice count once. Backward, each
        product becomes two: one for each of its factors.

        Parameters
        ----------
        mixer : str
            One of `MIXERS`.
        """
        tokens = self.batch * self.length
        square = 2 * tokens * self.d_model**2
        pairs = 2 * tokens * self.length * self.d_model  # length x length by d_model, all heads
        mixing = {
            "attention": 4 * square + 2 * pairs,
            "dense_synthesizer": 3 * square + 2 * pairs,
            "fourier": 0,
        }[mixer]
        feed_forward = 4 * tokens * self.d_model * self.d_ff
        classify = 2 * self.batch * self.d_model * CLASSES
        return 3 * (self.n_layers * (mixing + feed_forward) + classify)


WORKLOADS = {
    w.name: w
    for w in (
        Workload("S", 32, 64, 64, 256, 2),
        Workload("M", 32, 128, 256, 1024, 4),
        Workload("X", 16, 512, 256, 1024, 2),
    )
}
"""What is measured: small, middle, and long sequences."""


@dataclass(frozen=True)
class Figures:
    """What was measured of one mixer on one workload.

    Attributes
    ----------
    workload, mixer : str
    step_ms, predict_ms : float
        Medians: forward, loss, backward and Adam; forward alone.
    plain_ms : float
        A step with `npformer.functional` alone, in one go.
    tokens_a_second : float
        In training.
    gflops : float
        The step's matrix products by its time.
    """

    workload: str
    mixer: str
    step_ms: float
    predict_ms: float
    plain_ms: float
    tokens_a_second: float
    gflops: float


def measure(
    names: Sequence[str] = ("S",),
    mixers: Sequence[str] = MIXERS,
    backend: str = "numpy",
    seconds: float = 2.0,
) -> Iterator[Figures]:
    """Yield figures for each workload and mixer.

    Parameters
    ----------
    names : sequence of str
        In `WORKLOADS`.
    mixers : sequence of str
        In `MIXERS`.
    backend : str
        Where to compute.
    seconds : float
        Time for each figure, about; every figure takes at least three runs.
    """
    checks.number("seconds", seconds, above=0.0)
    for name in names:
        checks.choice("workload", name, WORKLOADS)
    for mixer in mixers:
        checks.choice("mixer", mixer, MIXERS)
    for name in names:
        for mixer in mixers:
            yield _measure(WORKLOADS[name], mixer, backend, seconds)


def _measure(workload: Workload, mixer: str, backend: str, seconds: float) -> Figures:
    rng = np.random.default_rng(0)
    x = rng.integers(VOCABULARY, size=(workload.batch, workload.length))
    y = rng.integers(CLASSES, size=workload.batch)
    model = workload.model(mixer).to(backend)
    optimizer = Adam(model.parameters(), lr=1e-4)

    def taking(team: Team) -> Callable[[], None]:
        def step() -> None:
            _, gradients = team.step(model.batch(x, y), generator=None)
            optimizer.step(gradients)
            to_numpy(gradients.flat[:1])  # a GPU computes in order: all of the step is done then

        return step

    with Team(model, "auto", processes="auto") as team:
        step_ms = _median_ms(taking(team), seconds)
    predict_ms = _median_ms(lambda: model.predict(x, batch_size=len(x)), seconds)
    with use_kernels(False), Team(model, 1) as team:
        plain_ms = _median_ms(taking(team), seconds)
    return Figures(
        workload.name,
        mixer,
        step_ms,
        predict_ms,
        plain_ms,
        tokens_a_second=x.size / step_ms * 1e3,
        gflops=workload.products(mixer) / step_ms / 1e6,
    )


def _median_ms(run: Callable[[], object], seconds: float) -> float:
    run()  # takes memory and starts threads
    taken: list[float] = []
    began = time.perf_counter()
    while len(taken) < 3 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken)


def sgemm_peak(size: int = 2048, tries: int = 5) -> float:
    """Return the best rate of float32 matrix products on all cores, in GFLOP/s.

    Parameters
    ----------
    size : int
        Rows and columns.
    tries : int
        The best one counts.

    Notes
    -----
    Each core multiplies matrices of its own: the most that a program could reach which shares a
    batch among them.
    """
    n = cores()
    rng = np.random.default_rng(0)
    pairs = [rng.random((2, size, size), dtype="float32") for _ in range(n)]
    results = [np.empty((size, size), dtype="float32") for _ in range(n)]

    def multiply(k: int) -> None:
        np.matmul(pairs[k][0], pairs[k][1], out=results[k])

    best = float("inf")
    with ONE_BLAS_THREAD:
        for _ in range(tries + 1):
            began = time.perf_counter()
            list(threads(n).map(multiply, range(n)))
            best = min(best, time.perf_counter() - began)
    return 2.0 * n * size**3 / best / 1e9


def table(figures: Sequence[Figures], peak: float | None) -> str:
    """Return figures as lines of text.

    Parameters
    ----------
    figures : sequence of Figures
    peak : float or None
        From `sgemm_peak`.
    """
    head = f"{'':<4}{'mixer':<20}{'step ms':>9}{'tokens/s':>11}{'predict ms':>12}{'plain':>8}"
    lines = [head + (f"{'of peak':>9}" if peak else "")]
    for f in figures:
        line = (
            f"{f.workload:<4}{f.mixer:<20}{f.step_ms:>9.1f}{f.tokens_a_second:>11,.0f}"
            f"{f.predict_ms:>12.1f}{f.plain_ms / f.step_ms:>7.1f}x"
        )
        lines.append(line + (f"{f.gflops / peak:>9.0%}" if peak else ""))
    lines += ["", "plain: how many times as long a step takes with npformer.functional alone"]
    if peak:
        lines.append(
            f"of peak: the step's matrix products, at {peak:.0f} GFLOP/s for products alone"
        )
    return "\n".join(lines)
