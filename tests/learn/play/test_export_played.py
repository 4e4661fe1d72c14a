"""A run of `npformer play`, exported while it trains, and from its folder."""

import base64
import re

import numpy as np
import pytest

import npformer as nf
from npformer.learn.play.folder import Folder
from npformer.learn.play.played import export_folder
from npformer.learn.play.questions import ask
from npformer.learn.play.settings import Settings
from npformer.learn.play.state import Now
from npformer.learn.play.tasks import TASKS, work_of
from npformer.training.callbacks import Callback
from tests.learn.play.test_export import contents

TINY = {"d_model": 8, "n_heads": 2, "d_ff": 8, "epochs": 1, "batch_size": 256}

POINT = {"step": 1, "epoch": 1, "loss": 2.0, "lr": 0.1, "accuracy": None}

LINES = {
    "file": "text,label\n" + "".join(f"A good {k},yes\nA bad {k},no\n" for k in range(12)),
    "text": "to be or not to be\n" * 30,
}


class Asks(Callback):
    """Asks for the page after the first step, and ends the training."""

    def __init__(self, work):
        self.work = work

    def after_step(self, state):
        before = {name: p.value.copy() for name, p in state.model.named_parameters().items()}
        self.html = ask(Now(self.work, state), "export", points=[])["html"]
        for name, parameter in state.model.named_parameters().items():
            np.testing.assert_array_equal(parameter.value, before[name])
        state.stop("asked")


@pytest.mark.filterwarnings("ignore:.*only their beginning")
@pytest.mark.parametrize("task", TASKS)
def test_a_run_of_every_task_is_exported(task, tmp_path):
    settings = {"task": task, **TINY}
    if task in LINES:
        settings["file"] = str(tmp_path / "file.csv")
        (tmp_path / "file.csv").write_text(LINES[task], "utf-8")
    work = work_of(Settings.of(settings))
    asks = Asks(work)
    work.train(callbacks=[asks], progress=False, workers=1)
    page = contents(asks.html)
    writes = work.kind in ("text", "pair")
    assert (page["model"] is None) == writes
    assert page["samples"][0].get("answer", {}).get("groups", [1])
    assert "file" not in page["run"]["settings"]  # a path of this machine
    if work.kind != "image":
        assert page["samples"][0]["text"]
        assert "[PAD]" not in page["samples"][0]["text"]
    if task == "file":  # as it was written
        assert re.fullmatch(r"A (good|bad) \d+", page["samples"][0]["text"])
        assert page["run"]["alone"] == 0.5


@pytest.fixture
def run_folder(tmp_path):
    """Return the folder of a run in a folder of `npformer play`."""
    folder = Folder(tmp_path / "play")
    settings = Settings.of({"task": "digits", **TINY})
    folder.path.mkdir()
    run = folder.path.joinpath(*folder.begin([settings]))
    work_of(settings).train(progress=False, workers=1, checkpoint=run)
    epoch = {**POINT, "loss": None, "accuracy": 0.3}
    folder.add_points("run-1", [POINT, epoch, {**POINT, "step": 10_000}])
    return run


def bytes_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("whole", [True, False], ids=["all runs", "one run"])
def test_a_run_in_a_folder_is_exported(run_folder, tmp_path, whole):
    folder = run_folder.parent if whole else run_folder
    page = contents(export_folder(folder, tmp_path / "page.html").read_text("utf-8"))
    assert page["points"][0]["loss"] == 2.0
    beside = r"30\.0\xa0% .*; always the same answer: \d+\.\d\xa0%"
    assert re.fullmatch(beside, page["facts"]["accuracy"])
    steps = page["facts"]["step"].split()
    assert steps[0] == steps[-1] != "0"  # the last state, not the first
    assert [point["step"] for point in page["points"]] == [1, 1]  # and none from later


def test_exporting_changes_no_file_of_a_run(run_folder, tmp_path):
    before = bytes_in(run_folder)
    assert len(before) > 2
    export_folder(run_folder.parent, tmp_path / "all.html")
    export_folder(run_folder, tmp_path / "page.html")
    assert bytes_in(run_folder) == before


def test_a_damaged_checkpoint_is_named_by_its_place(run_folder, tmp_path):
    (run_folder / "checkpoint.safetensors").write_bytes(b"damaged")
    with pytest.raises(nf.CheckpointError, match=rf"^{run_folder}/checkpoint"):  # not of its copy
        export_folder(run_folder, tmp_path / "page.html")


def test_a_page_replaces_no_file_of_a_run(run_folder):
    with pytest.raises(ValueError, match="the ending of a file of a run, which it might replace"):
        export_folder(run_folder, run_folder / "settings.json")


def test_a_run_with_a_bug_is_exported_with_it(tmp_path):
    settings = Settings.of({"task": "digits", **TINY, "bug": "LayerNormWithoutGamma"})
    work = work_of(settings)
    asks = Asks(work)
    work.train(callbacks=[asks], progress=False, workers=1)
    page = contents(asks.html)
    assert page["bug"]["title"]
    assert page["model"] is None
    assert "it has a bug of the museum" in page["why"]


@pytest.mark.parametrize("mixer", ["attention", "fourier", "gated_convolution"])
def test_a_server_sends_the_matrices_that_an_exported_page_computes(mixer):
    """Of a Fourier transform, whose matrix is complex, both show the real part."""

    class Digit(Callback):
        def after_step(self, state):
            now = Now(work, state)
            zeros = np.zeros((1, 8, 8), "float32")
            self.sent = ask(now, "digit", image=[[0.5] * 8] * 8)["mixing"]
            explanations = nf.explain(now.plain, zeros)
            self.explained = [explanation.matrices[0].real for explanation in explanations]
            state.stop("asked")

    work = work_of(Settings.of({"task": "digits", **TINY, "mixers": [mixer]}))
    digit = Digit()
    work.train(callbacks=[digit], progress=False, workers=1)
    (layer,) = digit.sent
    (expected,) = digit.explained
    values = np.frombuffer(base64.b64decode(layer["heads"]["data"]), "<f4")
    np.testing.assert_allclose(values, expected.ravel(), atol=1e-6)
