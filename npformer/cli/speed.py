"""How fast npformer trains and predicts on this machine, for `npformer bench`."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npformer.core import checks, cores, to_numpy
from npformer.engine import use_kernels
from npformer.engine.blas import ONE_BLAS_THREAD
from npformer.engine.team import Team
from npformer.engine.threads import thread_pool
from npformer.models import EncoderConfig
from npformer.optim import Adam
from npformer.training.trainable import SequenceClassifier

VOCABULARY, CLASSES, HEADS = 1000, 10, 4
MEASURED = ("attention", "dense_synthesizer", "fourier")


@dataclass(frozen=True)
class Workload:
    """The sizes of a model and of its batch."""

    name: str
    batch: int
    length: int
    d_model: int
    d_ff: int
    n_layers: int

    def model(self, mixer: str) -> SequenceClassifier:
        """Return a classifier of these sizes."""
        config = EncoderConfig(
            self.d_model, self.n_layers, HEADS, self.d_ff, max_len=self.length, mixer=mixer
        )
        return SequenceClassifier(config, n_classes=CLASSES, vocab_size=VOCABULARY, seed=0)

    def products(self, mixer: str) -> int:
        """Count the operations of a training step's matrix products, 2 m n k each."""
        tokens = self.batch * self.length
        square = 2 * tokens * self.d_model**2
        pairs = 2 * tokens * self.length * self.d_model  # length x length by d_model, all heads
        of_mixer = {"attention": 4 * square, "dense_synthesizer": 3 * square, "fourier": 0}[mixer]
        mixing = of_mixer + 2 * pairs * (mixer != "fourier")
        feed_forward = 4 * tokens * self.d_model * self.d_ff
        classify = 2 * self.batch * self.d_model * CLASSES
        # For each product of the forward pass, the backward pass has two: one for each factor.
        return 3 * (self.n_layers * (mixing + feed_forward) + classify)


WORKLOADS = {
    "S": Workload("S", 32, 64, 64, 256, 2),  # small
    "M": Workload("M", 32, 128, 256, 1024, 4),  # medium
    "X": Workload("X", 16, 512, 256, 1024, 2),  # long sequences
}


@dataclass(frozen=True)
class Speed:
    """What was measured for one mixer on one workload; times are medians.

    A step is forward, loss, backward and Adam; `plain_ms` is a step with `npformer.functional`
    alone and one worker. `gflops` is the rate of the step's matrix products.
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
    mixers: Sequence[str] = MEASURED,
    backend: str = "numpy",
    seconds: float = 2.0,
) -> Iterator[Speed]:
    """Yield the speed of each mixer on each workload, measured for `seconds` per figure."""
    for name in names:
        checks.choice("workload", name, WORKLOADS)
    for mixer in mixers:
        checks.choice("mixer", mixer, MEASURED)
    for name in names:
        for mixer in mixers:
            yield _measure(WORKLOADS[name], mixer, backend, seconds)


def _measure(workload: Workload, mixer: str, backend: str, seconds: float) -> Speed:
    rng = np.random.default_rng(0)
    x = rng.integers(VOCABULARY, size=(workload.batch, workload.length))
    y = rng.integers(CLASSES, size=workload.batch)
    model = workload.model(mixer).to(backend)
    optimizer = Adam(model.parameters(), lr=1e-4)

    def step(team: Team) -> None:
        _, gradients = team.step(model.batch(x, y), generator=None)
        optimizer.step(gradients)
        to_numpy(gradients.flat[:1])  # waits for a GPU, which computes in order

    with Team(model, "auto") as team:
        step_ms = _median_ms(lambda: step(team), seconds)
    predict_ms = _median_ms(lambda: model.predict(x, batch_size=len(x)), seconds)
    with use_kernels(False), Team(model, 1) as alone:
        plain_ms = _median_ms(lambda: step(alone), seconds)
    rates = x.size / step_ms * 1e3, workload.products(mixer) / step_ms / 1e6
    return Speed(workload.name, mixer, step_ms, predict_ms, plain_ms, *rates)


def _median_ms(run: Callable[[], object], seconds: float) -> float:
    run()  # allocates memory and starts threads
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def sgemm_peak(size: int = 2048, tries: int = 5) -> float:
    """Return the best rate of float32 matrix products on all cores, in GFLOP/s.

    Each core multiplies its own matrices, `size` by `size`, as the workers of a batch do.
    """
    n, rng = cores(), np.random.default_rng(0)
    pairs = [rng.random((2, size, size), dtype="float32") for _ in range(n)]
    results = [np.empty((size, size), dtype="float32") for _ in range(n)]
    times = []
    with ONE_BLAS_THREAD:
        for _ in range(tries + 1):
            began = time.perf_counter()
            list(
                thread_pool(n).map(
                    lambda k: np.matmul(pairs[k][0], pairs[k][1], out=results[k]), range(n)
                )
            )
            times.append(time.perf_counter() - began)
    return 2.0 * n * size**3 / min(times) / 1e9


def table(speeds: Sequence[Speed], peak: float | None) -> str:
    """Return speeds as lines of text, compared with the rate that `sgemm_peak` returned."""
    heading = f"{'':<4}{'mixer':<20}{'step ms':>9}{'tokens/s':>11}{'predict ms':>12}{'plain':>8}"
    lines = [heading + (f"{'of peak':>9}" if peak else "")]
    for s in speeds:
        share = f"{s.gflops / peak:>9.0%}" if peak else ""
        lines.append(
            f"{s.workload:<4}{s.mixer:<20}{s.step_ms:>9.1f}{s.tokens_a_second:>11,.0f}"
            f"{s.predict_ms:>12.1f}{s.plain_ms / s.step_ms:>7.1f}x{share}"
        )
    lines += ["", "plain: how many times as long a step takes with npformer.functional alone"]
    if peak:
        lines.append(f"of peak: the step's matrix products; alone they reach {peak:.0f} GFLOP/s")
    return "\n".join(lines)
