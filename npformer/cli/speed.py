"""How fast npformer trains and predicts on this machine, for `npformer bench`."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from npformer.core import to_numpy
from npformer.engine import use_kernels
from npformer.engine.team import Team
from npformer.models import EncoderConfig
from npformer.models.trainable import SequenceClassifier
from npformer.optim import Adam

VOCABULARY, CLASSES = 1000, 10
MEASURED = ("attention", "dense_synthesizer", "fourier")


class Workload(NamedTuple):
    """The sizes of a batch and of a model."""

    batch: int
    config: EncoderConfig


WORKLOADS = {
    "S": Workload(32, EncoderConfig(64, 2, 4, 256, max_len=64)),  # small
    "M": Workload(32, EncoderConfig(256, 4, 4, 1024, max_len=128)),  # medium
    "X": Workload(16, EncoderConfig(256, 2, 4, 1024, max_len=512)),  # long sequences
}

HEADING = f"{'':<4}{'mixer':<20}{'step ms':>9}{'tokens/s':>11}{'predict ms':>12}{'plain':>8}"


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

    def __str__(self) -> str:
        """Return a line below `HEADING`."""
        return (
            f"{self.workload:<4}{self.mixer:<20}{self.step_ms:>9.1f}{self.tokens_a_second:>11,.0f}"
            f"{self.predict_ms:>12.1f}{self.plain_ms / self.step_ms:>7.1f}x"
        )


def measure(name: str, mixer: str, backend: str, seconds: float) -> Speed:
    """Return the speed of a mixer on a workload, measured for `seconds` per figure."""
    batch, config = WORKLOADS[name]
    rng = np.random.default_rng(0)
    x = rng.integers(VOCABULARY, size=(batch, config.max_len))
    y = rng.integers(CLASSES, size=batch)
    model = SequenceClassifier(
        replace(config, mixer=mixer), n_classes=CLASSES, vocab_size=VOCABULARY, seed=0
    ).to(backend)
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
    return Speed(name, mixer, step_ms, predict_ms, plain_ms, x.size / step_ms * 1e3)


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
