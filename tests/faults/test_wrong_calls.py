"""A sample of wrong calls of the whole interface: each is right, or is refused in words."""

from datetime import date

import pytest

import npformer as nf
from npformer import data, mixers
from npformer import functional as F
from npformer import layers as L
from tests.faults.valid_calls import CALLS
from tests.faults.wrong_calls import drawn, outcome_of

YEAR, WEEK, _ = date.today().isocalendar()
OF_THIS_WEEK = drawn(60, seed=100 * YEAR + WEEK)
ALWAYS = [pytest.param(call, marks=pytest.mark.slow) for call in drawn(500, seed=0)]


@pytest.mark.parametrize("call", [*OF_THIS_WEEK, *ALWAYS], ids=str)
def test_a_wrong_call_is_right_or_is_refused_in_words(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skip_without_curves(call.target)
    kind, words = outcome_of(call)
    assert kind in ("right", "words"), f"{kind}: {words}"


@pytest.mark.parametrize("target", CALLS, ids=lambda target: target.name)
def test_the_valid_calls_are_valid(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skip_without_curves(target)
    target.run()


def skip_without_curves(target):
    """Skip what draws, where matplotlib is not installed: the extra `test` does not bring it."""
    if target.name == "History.plot":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: there are no curves")


NOT_CALLED = {
    # Base classes and results, and what the engine calls with arguments of its own.
    *("Callback", "CheckpointError", "Evaluation", "GradcheckError", "GradcheckReport", "History"),
    *("Checkpoint", "CheckpointWarning", "NonFiniteGradientError"),
    *("BackendUnavailableError", "BatchTooLargeError", "NonFiniteLossError", "TrainingState"),
    *(
        "Layer",
        "Model",
        "Workspace",
        "backends",
        "functional.NO_LABEL",
        "data.Dataset",
        "data.SPLITS",
    ),
    *("TwoInputLayer", "data.RawData", "data.ShardedArray"),
    *(
        "layers.Pooling",
        "mixers.Mixer",
        "mixers.Scores",
        "mixers.State",
        "mixers.Synthesizer",
        "mixers.SCORES",
    ),
    *("mixers.WholeSequenceMixer", "mixers.LAYOUTS"),
}
MODULES = {"functional": F, "layers": L, "mixers": mixers, "data": data}


def test_every_public_name_is_called():
    called = {target.name.partition("(")[0].partition(" ")[0] for target in CALLS}
    called |= {f"layers.{name}" for name in called} | {f"mixers.{name}" for name in called}
    tables = {"MIXERS", "layers.ACTIVATIONS", "layers.FFNS", "layers.POOLINGS", "mixers.MIXERS"}
    public = {name for name in nf.__all__ if not isinstance(getattr(nf, name), type(nf))}
    public |= {f"{part}.{name}" for part, module in MODULES.items() for name in module.__all__}
    assert public - called - tables - NOT_CALLED == set()
