"""How fast npformer trains and predicts on this machine, for `npformer bench`."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npformer.core import checks, to_numpy
from npformer.engine import use_kernels
from npformer.engine.team import Team
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


WORKLOADS = {
    "S": Workload("S", 32, 64, 64, 256, 2),  # small
    "M": Workload("M", 32, 128, 256, 1024, 4),  # medium
    "X": Workload("X", 16, 512, 256, 1024, 2),  # long sequences
}


@dataclass(frozen=True)
class Speed:
    """What was measured for one mixer on one workload; times are medians.

    A step is forward, loss, backward and Adam; `plain_ms` is a step with `npformer.functional`
    alone and one worker.
    """

    workload: str
    mixer: str
    step_ms: float
    predict_ms: float
    plain_ms: float
    tokens_a_second: float


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
        step_ms = median_ms(lambda: step(team), seconds)
    predict_ms = median_ms(lambda: model.predict(x, batch_size=len(x)), seconds)
    with use_kernels(False), Team(model, 1) as alone:
        plain_ms = median_ms(lambda: step(alone), seconds)
    return Speed(workload.name, mixer, step_ms, predict_ms, plain_ms, x.size / step_ms * 1e3)


def median_ms(run: Callable[[], object], seconds: float) -> float:
    """Return the median time of some runs, three at least, after a first one."""
    run()  # allocates memory and starts threads
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def table(speeds: Sequence[Speed]) -> str:
    """Return speeds as lines of text."""
    lines = [f"{'':<4}{'mixer':<20}{'step ms':>9}{'tokens/s':>11}{'predict ms':>12}{'plain':>8}"]
    for s in speeds:
        lines.append(
            f"{s.workload:<4}{s.mixer:<20}{s.step_ms:>9.1f}{s.tokens_a_second:>11,.0f}"
            f"{s.predict_ms:>12.1f}{s.plain_ms / s.step_ms:>7.1f}x"
        )
    lines += ["", "plain: how many times as long a step takes with npformer.functional alone"]
    return "\n".join(lines)
