"""How tests are run, and fixtures that they share: a generator, masks, and small models."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Several processes run tests at once, on small arrays. NumPy's BLAS reads it as it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Kernels for a GPU are under test themselves; without this, a process of their own checks them.
os.environ.setdefault("NPFORMER_CHECK_KERNELS", "0")

# CUDA sources that one process compiles for the emulated GPU, all others find.
if "NPFORMER_EMULATED" not in os.environ:
    _compiled = tempfile.TemporaryDirectory(prefix="npformer-emulated-")
    os.environ["NPFORMER_EMULATED"] = _compiled.name

import numpy as np
import pytest

import npformer as nf
from tests.needs import NEEDS

IN_TURN = (
    "tests/training/distributed/",
    "tests/docs/test_search.py",
    "tests/docs/test_widths.py",
    "tests/faults/test_kills.py",
    "tests/faults/test_mutated_files.py",
    "tests/gpu/",
    "tests/kernels/gpu/test_trusted_kernels.py",
    "tests/learn/play/browser/",
    "tests/training/storage/test_model_file.py",
)
"""Tests that start processes, measure time, or share a GPU or a built site: one after the other."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run folders of tests on all cores, and files in this process, which has begun sooner.

    For pytest-xdist, where it is installed: in `addopts`, its options would be errors without it.
    Workers call this function too, and must not start more of them.
    """
    if not config.pluginmanager.hasplugin("xdist") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    option = config.option
    if option.numprocesses is None and not option.tx and not all(".py" in a for a in config.args):
        option.numprocesses = "auto"  # and 0 beside --pdb


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process the next test, and all that run in turn to one of them.

    The marker `xdist_group` would say the same, but pytest-xdist 3.8 does not see it beside
    pytest 9.2, in which names of tests cannot be changed.
    """
    from xdist.scheduler import LoadScopeScheduling

    class InTurn(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "in turn" if nodeid.startswith(IN_TURN) else nodeid

    return InTurn(config, log)


def pytest_collection_finish() -> None:
    """Keep the tests themselves, a million objects, out of every later collection of garbage."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print once for each reason how many tests were skipped for it."""
    reports = terminalreporter.stats.get("skipped", [])
    if not reports:
        return
    counts = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    terminalreporter.section("tests that were skipped, and why")
    for reason, count in counts.most_common():
        terminalreporter.line(f"SKIPPED [{count}] {reason}")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(params=["plain", "fast"])
def either(request: pytest.FixtureRequest) -> Callable[[nf.Layer], nf.Layer]:
    """Give a layer back, and in a second run its twin."""
    return nf.fast if request.param == "fast" else lambda layer: layer


@pytest.fixture
def padding() -> np.ndarray:
    """Three sequences of length 4: a whole one, one of two tokens, one that is all padding."""
    return np.arange(4) < np.array([4, 2, 0])[:, None]


@pytest.fixture
def small_config() -> Callable[..., nf.EncoderConfig]:
    """Make a configuration that is small in every direction, with changes."""

    def make(**changes: Any) -> nf.EncoderConfig:
        sizes = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_len": 6}
        return nf.EncoderConfig(**(sizes | changes))

    return make


@pytest.fixture
def small_model(small_config: Any) -> Callable[..., nf.SequenceClassifier]:
    """Make a float64 classifier of three classes over seven token ids, with changes."""
    arguments = {"n_classes", "vocab_size", "n_features", "pooling", "output", "seed", "dtype"}

    def make(**changes: Any) -> nf.SequenceClassifier:
        arguments_of_model = {name: changes.pop(name) for name in arguments & set(changes)}
        defaults = {"n_classes": 3, "dtype": "float64"}
        if "n_features" not in arguments_of_model:
            defaults["vocab_size"] = 7
        return nf.SequenceClassifier(small_config(**changes), **(defaults | arguments_of_model))

    return make


@pytest.fixture
def token_batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids (8, 6), labels (8,) and a mask (8, 6) for `small_model`."""
    ids, labels = rng.integers(0, 7, (8, 6)), rng.integers(0, 3, 8)
    lengths = np.array([6, 3, 1, 6, 5, 2, 4, 6])
    return ids, labels, np.arange(6) < lengths[:, None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a model's file may lie."""
    return tmp_path / "model.safetensors"


@pytest.fixture(scope="session")
def browser():
    """Give a headless Chromium, for the tests of pages."""
    api = pytest.importorskip("playwright.sync_api", reason=NEEDS["playwright"])
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def short_samples_have_kernels(monkeypatch):
    """Let kernels for short samples run without compiled loops; return the names of their calls."""
    from npformer.engine.cpu.rows import LEAVES

    calls = []

    def noting(leaf):
        def run(*arguments):
            calls.append(leaf.passes.__name__)
            leaf.passes(*arguments)

        return run

    for name in ("attention_of_short", "dense_synthesizer_of_short", "network_of_short"):
        monkeypatch.setattr(LEAVES[name], "run", noting(LEAVES[name]))
    return calls
