"""The folder of npformer train: whose it is, --resume, --overwrite, and what is kept."""

import json
import os
import signal
from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer.cli import train_task as command
from npformer.training.storage import checkpoint_folder as folders
from tests.cli.conftest import metrics_of, names, run

pytestmark = pytest.mark.usefixtures("no_curves", "few_samples")

SMALL = ["majority", "--d-model", "8", "--heads", "2", "--d-ff", "8", "--layers", "1", "--quiet"]


@pytest.fixture(scope="module")
def few_samples():
    """Let an epoch have ten steps: what happens to files does not depend on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nf.data, "majority", partial(nf.data.majority, train=640))
        yield


def train(folder, *words, status=0):
    assert run("train", *SMALL, "--out", folder, *words) == status
    return folder


@pytest.fixture
def earlier(tmp_path):
    """The folder of a run of an epoch."""
    return train(tmp_path, "--epochs", 1)


@pytest.fixture
def refused(fails, capsys):
    """Forget what was printed so far, expect a refusal, and return its line."""

    def check(*words):
        capsys.readouterr()
        return fails(*words)

    return check


def weights(folder):
    return nf.load(folder / "model.safetensors").parameters().flat


@pytest.fixture
def stop_after(monkeypatch):
    """Let the next training be interrupted after an epoch."""

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored

    def stop(epoch):
        class Interrupt(nf.Callback):
            def after_epoch(self, state):
                if state.epoch == epoch:
                    os.kill(os.getpid(), signal.SIGINT)

        fit = nf.fit
        monkeypatch.setattr(command, "fit", lambda *a, **k: fit(*a, callbacks=[Interrupt()], **k))

    yield stop
    signal.signal(signal.SIGINT, handler)


def test_an_interrupted_run_goes_on_without_naming_its_options(tmp_path, stop_after, monkeypatch):
    uninterrupted = train(tmp_path / "whole", "--epochs", 3, "--seed", 4, "--lr", 0.01)
    stop_after(1)
    run_ = train(tmp_path / "run", "--epochs", 3, "--seed", 4, "--lr", 0.01, status=130)
    assert metrics_of(run_)["splits"]["generated"]["stopped"] == "interrupted"
    monkeypatch.undo()
    assert run("train", "majority", "--quiet", "--out", run_, "--resume") == 0
    np.testing.assert_array_equal(weights(run_), weights(uninterrupted))
    ours, theirs = metrics_of(run_), metrics_of(uninterrupted)
    for metrics in (ours, theirs):
        del metrics["splits"]["generated"]["seconds"]
    assert ours == theirs


def test_resume_begins_where_there_is_nothing(tmp_path):
    first = train(tmp_path / "a", "--epochs", 1)
    second = train(tmp_path / "b", "--epochs", 1, "--resume")
    np.testing.assert_array_equal(weights(first), weights(second))


@pytest.fixture
def longer(earlier):
    """Return the folder of a run that was resumed with one more epoch."""
    assert run("train", "majority", "--quiet", "--out", earlier, "--resume", "--epochs", 2) == 0
    return earlier


def test_a_resumed_run_may_have_more_epochs(longer):
    assert metrics_of(longer)["splits"]["generated"]["epochs"] == 2
    assert json.loads((longer / "run.json").read_text())["options"]["epochs"] == 2


def test_more_epochs_change_the_schedule_with_a_warning(capsys, longer):
    assert "npformer train: warning: the learning rate's factor at" in capsys.readouterr().err


def test_a_second_run_that_is_refused_leaves_the_earlier_one(earlier, refused, monkeypatch):
    before = {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()}
    monkeypatch.setattr(command, "fit", None)
    line = refused("train", *SMALL, "--out", earlier, "--mixer", "fourier")
    assert "holds a run of majority with attention; expected a folder for this run alone" in line
    assert "--resume goes on with that run, --overwrite begins anew" in line
    assert "lr is 0.0" in refused("train", *SMALL, "--lr", 0, "--overwrite", "--out", earlier)
    assert {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--resume --overwrite", "--resume and --overwrite are both given"),
        ("--resume --mixer fourier", "mixer is 'fourier', and was 'attention'"),
        ("--resume --lr 0.5", "lr is 0.5, and was 'not given'"),
        ("--resume --seed 3", "seed is 3, and was 0"),
    ],
)
def test_a_run_goes_on_only_as_it_was_begun(earlier, refused, words, message):
    assert message in refused("train", "majority", "--quiet", *words.split(), "--out", earlier)


def test_a_mistake_leaves_the_folder_free(tmp_path, refused):
    assert "lr is 0.0" in refused("train", *SMALL, "--lr", 0, "--out", tmp_path)
    train(tmp_path, "--epochs", 1)


def test_overwrite_keeps_the_earlier_run_until_the_new_one_ends(tmp_path, stop_after, monkeypatch):
    good = weights(train(tmp_path, "--epochs", 1)).copy()
    (tmp_path / "notes.txt").write_text("mine")
    stop_after(1)
    train(tmp_path, "--epochs", 2, "--mixer", "fourier", "--overwrite", status=130)
    np.testing.assert_array_equal(weights(tmp_path / "replaced-1"), good)
    assert nf.load(tmp_path / "model.safetensors").config.mixer == "fourier"
    train(tmp_path, "--epochs", 2, "--mixer", "identity", "--overwrite", status=130)
    np.testing.assert_array_equal(weights(tmp_path / "replaced-1"), good)
    assert nf.load(tmp_path / "replaced-2" / "model.safetensors").config.mixer == "fourier"
    monkeypatch.undo()
    assert run("train", "majority", "--quiet", "--out", tmp_path, "--resume") == 0
    assert not list(tmp_path.glob("replaced-*"))
    assert nf.load(tmp_path / "model.safetensors").config.mixer == "identity"
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_model_that_is_not_there_yet_is_explained(earlier, refused, stop_after, monkeypatch):
    monkeypatch.setattr(command, "fit", lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL))
    if (child := os.fork()) == 0:
        run("train", *SMALL, "--out", earlier, "--epochs", 1, "--mixer", "fourier", "--overwrite")
    os.waitpid(child, 0)
    line = refused("evaluate", earlier)
    assert "has saved no model yet" in line
    assert f"The model of an earlier run is {earlier}/replaced-1/model.safetensors" in line


@pytest.mark.parametrize("moved", [1, 2, 3])
def test_a_move_that_was_killed_is_finished_by_the_next_run(tmp_path, monkeypatch, moved):
    good = weights(train(tmp_path, "--epochs", 1)).copy()
    count = []
    replace = type(tmp_path).replace

    def killed(self, target):
        if "replaced-" in str(target):
            if len(count) == moved:
                raise KeyboardInterrupt
            count.append(1)
        return replace(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", killed)
    train(tmp_path, "--epochs", 1, "--mixer", "fourier", "--overwrite", status=130)
    monkeypatch.setattr(type(tmp_path), "replace", replace)
    model_files = list(tmp_path.rglob("model.safetensors"))
    assert len(model_files) == 1
    np.testing.assert_array_equal(nf.load(model_files[0]).parameters().flat, good)
    train(tmp_path, "--epochs", 1, "--mixer", "fourier")
    assert nf.load(tmp_path / "model.safetensors").config.mixer == "fourier"
    assert not list(tmp_path.glob("replaced-*"))


def test_two_runs_do_not_share_a_folder(tmp_path, refused, monkeypatch):
    monkeypatch.setattr(folders, "WAIT", 0.1)
    with folders.reserve(tmp_path):
        assert "is in use by another training" in refused("train", *SMALL, "--out", tmp_path)


def test_metrics_never_decide_what_is_deleted(earlier):
    precious = earlier / "precious.safetensors"
    precious.write_bytes(b"mine")
    metrics = metrics_of(earlier)
    metrics["splits"]["generated"]["file"] = "precious.safetensors"
    metrics["splits"]["other"] = {"file": "../precious.safetensors"}
    (earlier / "metrics.json").write_text(json.dumps(metrics))
    train(earlier, "--epochs", 1, "--overwrite")
    assert precious.read_bytes() == b"mine"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"options": 3, "plugins": []}', "[" * 100_000])
def test_a_damaged_run_json_is_told(earlier, refused, text):
    (earlier / "run.json").write_text(text)
    line = refused("train", *SMALL, "--out", earlier, "--resume")
    assert "run.json" in line


def test_a_run_json_of_a_later_version_or_none_is_refused_by_name(earlier, refused):
    saved = json.loads((earlier / "run.json").read_text())
    (earlier / "run.json").write_text(json.dumps(saved | {"curriculum": 1}))
    assert "'curriculum'" in refused("train", *SMALL, "--out", earlier, "--resume")
    (earlier / "run.json").unlink()
    line = refused("train", *SMALL, "--out", earlier, "--resume")
    assert "holds files of an earlier run, which has no run.json and so cannot go on" in line
    train(earlier, "--epochs", 1, "--overwrite")
    assert "run.json" in names(earlier)


@pytest.fixture
def run_on_full_disk(tmp_path, refused, monkeypatch):
    """Train while the model cannot be written; return the folder and the message."""

    def full(model, path, **options):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as only_here:
        only_here.setattr("npformer.cli.train_task.save", full)
        line = refused("train", *SMALL, "--epochs", 2, "--out", tmp_path / "run")
    return tmp_path / "run", line


def test_a_full_disk_at_the_end_is_reported(run_on_full_disk):
    _, line = run_on_full_disk
    assert "model.safetensors: No space left on device" in line


def test_a_full_disk_at_the_end_costs_no_step(run_on_full_disk, tmp_path):
    folder, _ = run_on_full_disk
    uninterrupted = train(tmp_path / "whole", "--epochs", 2)
    assert run("train", "majority", "--quiet", "--out", folder, "--resume") == 0
    np.testing.assert_array_equal(weights(folder), weights(uninterrupted))
