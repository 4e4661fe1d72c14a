"""What loading model files leads to that were damaged or that lie.

    from tests.faults.mutated_files import mutated_files
    print(mutated_files(10_000, seed=0))

Damage must be refused in words. A lie may be accepted only if the file is then one that could have
been saved: its weights are those that another reader of safetensors finds.
"""

import contextlib
import io
import signal
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

import npformer as nf
from npformer import cli
from tests.faults.mutations import DAMAGE, LIES, model_description, split_file

LONGEST_MESSAGE = 2500
LONGEST_WAIT = 5.0  # seconds; loading takes some milliseconds
LARGEST_PEAK = 64e6  # bytes; 2^20 float64 may be drawn, and are copied twice


def originals() -> list[nf.SequenceClassifier | nf.Encoder | nf.TextEncoder]:
    """Return small models that differ in what their files hold."""
    sizes: dict[str, Any] = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_len": 6}
    mixer = "factorized_random_synthesizer", "mixture", "fixed_random_synthesizer"
    mixture = "attention", "dense_synthesizer", "factorized_dense_synthesizer"
    settings: Any = {"n_layers": 3, "rank": 3, "initializer": "normal(std=0.1)"}
    drawn = nf.EncoderConfig(**sizes | settings, mixer=mixer, mixture=mixture)
    like_bert = nf.EncoderConfig(
        **sizes, positions="learned", n_token_types=2, embedding_norm=True, scale_embeddings=False
    )
    shared = nf.EncoderConfig(**sizes, share_layers=True, norm="pre", ffn="conv1d", dropout=0.1)
    fourier = nf.EncoderConfig(**sizes, mixer=["fourier", "linear"], padding="per_length")
    return [
        nf.SequenceClassifier(nf.EncoderConfig(**sizes), 3, vocab_size=7),
        nf.SequenceClassifier(drawn, 2, n_features=4, pooling="flatten", output="sigmoid"),
        nf.SequenceClassifier(fourier, 3, vocab_size=7, pooling="none", dtype="float64"),
        nf.TextEncoder(like_bert, 7),
        nf.Encoder(shared, seed=1),
    ]


@dataclass
class Outcomes:
    """What loading mutated files led to."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    longest: float = 0.0  # seconds for one file
    largest: int = 0  # bytes, the peak of one file

    def table(self) -> dict[str, int | float]:
        """Return counts, and the largest of the measured values."""
        named = "tried", "refused", "consistent lies"
        return {
            **{name: self.counts[name] for name in named},
            "failed": len(self.failures),
            **{name: n for name, n in sorted(self.counts.items()) if name not in named},
            "longest wait in ms": round(1e3 * self.longest, 1),
            "largest peak in MB": round(self.largest / 1e6, 1),
        }


def _save_originals(folder: Path) -> list[tuple[Path, bytes]]:
    """Return original files with their places: models for `nf.load`, and a checkpoint."""
    files = []
    path = folder / "model.safetensors"
    for model in originals():
        nf.save(model, path, notes={"task": "digits", "split": "stratified", "seed": 0})
        files.append((path, path.read_bytes()))
    optimizer = nf.Adam(model.parameters(), lr=1e-3, schedule="cosine(total=9)")
    generators = {"shuffle": np.random.default_rng(0)}
    nf.save_checkpoint(folder, model, optimizer, generators=generators, history=nf.History())
    path = folder / "checkpoint.safetensors"
    return [*files, (path, path.read_bytes())]


def mutated_files(n: int, seed: int) -> dict[str, int | float]:
    """Load `n` mutated files; return how many were refused and accepted, and how many failed.

    A failure is an error without words, an accepted change, or too much time or memory.
    """
    return run(n, seed).table()


def run(n: int, seed: int) -> Outcomes:
    """Load `n` mutated files, three of four damaged and one lying; see `Outcomes`."""
    rng = np.random.default_rng(seed)
    outcomes = Outcomes()
    with tempfile.TemporaryDirectory() as folder, _measure_memory():
        files = _save_originals(Path(folder))
        contents = [data for _, data in files]
        x = Path(folder) / "x.npy"
        np.save(x, np.zeros((1, 6), "int64"))
        for i in range(n):
            kinds = LIES if i % 4 == 3 else DAMAGE
            mutation = kinds[rng.integers(len(kinds))]
            path, data = files[0]
            while data in contents:  # some zeros were zeros before
                which, another = rng.integers(len(files), size=2)
                path, data = files[which]
                data = mutation(rng, data, contents[another])
            path.write_bytes(data)
            problem = _problem(path, data, mutation in DAMAGE, outcomes)
            if not problem and i % 25 == 0 and path.stem == "model":
                problem = _problem_of_the_program(path, x)
            outcomes.counts["tried"] += 1
            outcomes.counts[mutation.__name__.replace("_", " ")] += 1
            if problem:
                outcomes.failures.append(f"file {i} of seed {seed}, {mutation.__name__}: {problem}")
    return outcomes


def _problem(path: Path, data: bytes, damaged: bool, outcomes: Outcomes) -> str:
    """Load a file, count what happened, and return what is wrong about that; "" if nothing is."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    began = time.perf_counter()
    model = None
    try:
        with _no_longer_than(LONGEST_WAIT):
            checkpoint = path.stem == "checkpoint"
            model = nf.load_checkpoint(path.parent).model if checkpoint else nf.load(path)
    except nf.CheckpointError as error:
        words = str(error)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    seconds, peak = time.perf_counter() - began, tracemalloc.get_traced_memory()[1] - before
    outcomes.longest, outcomes.largest = max(outcomes.longest, seconds), max(outcomes.largest, peak)
    if peak > LARGEST_PEAK:
        return f"{peak:,} bytes"
    if model is None:
        outcomes.counts["refused"] += 1
        plain = words.startswith(str(path)) and words.isprintable() and len(words) < LONGEST_MESSAGE
        return "" if plain else f"the message is {words!r}"
    if damaged:
        return "damage was accepted"
    outcomes.counts["consistent lies"] += 1
    return _difference(model, data)


def _difference(model: Any, data: bytes) -> str:
    """Return how a model differs from what its file says, as another reader finds it."""
    _, description, _ = split_file(data)
    prefix = "model.tensors." if "model" in description else ""
    named = {f"{prefix}{name}": p.value for name, p in model.named_parameters().items()}
    tensors = safetensors.numpy.load(data)
    if not prefix and set(tensors) != set(named):
        return "other names of tensors"
    if any(tensors[name].tobytes() != value.tobytes() for name, value in named.items()):
        return "other weights"
    settings = model.config.to_dict()
    config_in_file = model_description(description)["config"]
    differing = [name for name in config_in_file if settings[name] != config_in_file[name]]
    return f"another {', '.join(differing)}" if differing else ""


def _problem_of_the_program(path: Path, x: Path) -> str:
    """Return what is wrong about the answer of ``npformer predict``; "" if nothing is."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(["predict", str(path), str(x)])
    except BaseException as error:
        return f"npformer predict: {type(error).__name__}: {error}"[:300]
    lines = err.getvalue().splitlines()
    if status == 2 and len(lines) == 1 and lines[0].startswith("npformer predict: "):
        return ""
    return "" if status == 0 else f"npformer predict: status {status}, {err.getvalue()[:300]!r}"


@contextlib.contextmanager
def _measure_memory() -> Iterator[None]:
    """Measure memory."""
    already = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        yield
    finally:
        if not already:
            tracemalloc.stop()


@contextlib.contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after that time, in the main thread of systems that have an alarm."""

    def late(signum: int, frame: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    previous_handler = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
