"""A sample of wrong calls of the whole interface: each is right, or is refused in words."""

import importlib.util
from datetime import date

import pytest

import npformer as nf
from npformer import data, mixers
from npformer import functional as F
from npformer import layers as L
from npformer.tasks import wide
from tests.faults.valid_calls import CALLS
from tests.faults.wrong_calls import draw_calls, run

YEAR, WEEK, _ = date.today().isocalendar()


@pytest.mark.parametrize(
    ("n", "seed"),
    [(60, 100 * YEAR + WEEK), pytest.param(3000, 0, marks=pytest.mark.slow)],
    ids=["of this week", "always the same"],
)
def test_wrong_calls_are_right_or_are_refused_in_words(n, seed):
    ended = run([call for call in draw_calls(n, seed) if can_draw(call.target)])
    assert len(ended) >= 0.9 * n
    good = "right", "words"
    assert [f"{call}: {how.words}" for call, how in ended if how.kind not in good] == []


def test_the_valid_calls_are_valid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for target in filter(can_draw, CALLS):
        try:
            target.run()
        except Exception as error:
            wrong.append(f"{target.name}: {error!r}")
    assert wrong == []


def can_draw(target):
    """Leave out curves where matplotlib, which the extra `test` does not bring, is missing."""
    return target.name != "History.plot" or importlib.util.find_spec("matplotlib") is not None


NOT_CALLED = {
    # Base classes and results, and what the engine calls with arguments of its own.
    "Callback",
    "CheckpointError",
    "Evaluation",
    "GradcheckError",
    "GradcheckReport",
    "OptimcheckError",
    "OptimcheckReport",
    "PromiseError",
    "PromiseReport",
    "History",
    "Checkpoint",
    "CheckpointWarning",
    "NonFiniteGradientError",
    "TwoInputLayer",
    "BackendUnavailableError",
    "BatchTooLargeError",
    "NonFiniteLossError",
    "TrainingState",
    "Layer",
    "Model",
    "Workspace",
    "backends",
    "functional.NO_LABEL",
    "layers.Pooling",
    "data.Dataset",
    "data.SPLITS",
    "data.RawData",
    "data.ShardedArray",
    "mixers.LAYOUTS",
    "mixers.Mixer",
    "mixers.Scores",
    "mixers.State",
    "mixers.Synthesizer",
    "mixers.SCORES",
    "mixers.WholeSequenceMixer",
    "tasks.wide.TwoAnswers",
    "tasks.wide.WideSequenceClassifier",
    "tasks.wide.WideSequenceModel",
}
MODULES = {"functional": F, "layers": L, "mixers": mixers, "data": data, "tasks.wide": wide}


def test_every_public_name_is_called():
    called = {target.name.partition("(")[0].partition(" ")[0] for target in CALLS}
    called |= {f"layers.{name}" for name in called} | {f"mixers.{name}" for name in called}
    tables = {f"layers.{name}" for name in ("ACTIVATIONS", "FFNS", "NORMS", "POOLINGS")}
    tables |= {"MIXERS", "mixers.MIXERS"}
    public = {name for name in nf.__all__ if not isinstance(getattr(nf, name), type(nf))}
    public |= {
        f"{module_name}.{name}"
        for module_name, module in MODULES.items()
        for name in module.__all__
    }
    assert public - called - tables - NOT_CALLED == set()
