"""Runs: what they tell, how they are steered, and what is wrong with settings."""

import json
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

import npformer as nf
from npformer.learn.play.settings import Settings
from npformer.learn.play.tasks import work_of
from tests.learn.play.browser.server import Server
from tests.learn.play.conftest import TINY, Client


def weights(live):
    tensors = load_file(live.last / "checkpoint.safetensors")
    return {name: x for name, x in tensors.items() if name.startswith("model")}


def test_a_run_sends_a_point_for_each_step(client):
    client.begin(epochs=2, dropout=0.1)
    (run,) = client.wait_for("finished")
    assert run["step"] == 2 * run["n_steps"] == 80
    points = [p for e in _first(client, 2) if e["kind"] == "points" for p in e["points"]]
    assert [p["step"] for p in points if p["loss"] is not None] == [*range(1, 81)]
    with_norms = [p for p in points if "norms" in p]
    assert all(len(p["norms"]) == len(run["layers"]) for p in with_norms)


def test_the_figures_of_the_training_stand_beside_those_of_the_validation(client):
    client.begin(epochs=2, samples=50)
    client.wait_for("finished")
    points = [p for e in _first(client, 2) if e["kind"] == "points" for p in e["points"]]
    last = [p for p in points if p["loss"] is None][-1]
    assert last["epoch"] == 2
    assert last["train_loss"] > 0.0
    assert last["train_accuracy"] * 50 == pytest.approx(round(last["train_accuracy"] * 50))


def test_a_run_ends_as_a_training_without_a_page(client, live):
    client.begin(epochs=2, dropout=0.1)
    client.wait_for("finished")
    points = [p for e in _first(client, 2) if e["kind"] == "points" for p in e["points"]]
    config = nf.EncoderConfig(
        d_model=16, n_layers=1, n_heads=2, d_ff=16, dropout=0.1, max_len=8, positions="learned"
    )
    model = nf.SequenceClassifier(config, 10, n_features=8, pooling="flatten", seed=0)
    data = nf.data.digits()
    history = nf.fit(
        model,
        data.train,
        validation=data.validation,
        epochs=2,
        batch_size=32,
        lr=1e-3,
        seed=0,
        workers=1,
        progress=False,
    )
    assert [p["accuracy"] for p in points if p["accuracy"]] == history.validation_accuracy
    stored = weights(live)
    assert len(stored) >= len(model.parameters())
    for name, value in model.parameters().items():
        (ours,) = [x for key, x in stored.items() if key.endswith(name) and "weights" not in key]
        np.testing.assert_array_equal(ours, value, err_msg=name)


def _first(client, n):
    events = client.events()
    return [next(events) for _ in range(n)]


def test_two_pages_see_the_same(client):
    client.begin(epochs=500)
    streams = client.events(30.0), client.events(30.0)
    losses_by_page = []
    for events in streams:
        points = (e for e in events if e["kind"] == "points" and e["points"])
        losses = {
            p["step"]: p["loss"]
            for _, e in zip(range(3), points, strict=False)
            for p in e["points"]
            if p["loss"] is not None
        }
        losses_by_page.append(losses)
    one, other = losses_by_page
    steps = one.keys() & other.keys()
    assert len(steps) > 3
    assert all(one[step] == other[step] for step in steps)
    client.post("control", run="all", action="pause")
    client.wait_for("paused")


@pytest.mark.slow
def test_questions_change_nothing(client, live):
    client.begin(epochs=2)
    client.wait_for("finished")
    undisturbed = weights(live)
    client.begin(epochs=2)
    client.post("control", run="all", action="pause")
    for _ in range(5):
        client.ask("step", sample=1)
        client.ask("weight", name="classify.weight", index=[0, 0], sample=1)
        client.ask("digit", image=np.zeros((8, 8)).tolist())
        client.post("gradcheck", bug="LayerNormWithoutGamma")
        client.post("control", run="all", action="step")
    client.post("control", run="all", action="go")
    client.wait_for("finished")
    disturbed = weights(live)
    for name, value in undisturbed.items():
        np.testing.assert_array_equal(disturbed[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task": "digit"}, "task is 'digit'; expected one of 'digits'"),
        ({"task": None}, "task is None; expected one of 'digits'"),
        ({"mixers": ["attenton"]}, "Did you mean 'attention'?"),
        ({"mixers": []}, "mixers is []; expected a list of 1 to 8 names"),
        ({"d_model": 0}, "d_model is 0; expected a whole number of at least 1"),
        ({"d_model": 17}, "17"),
        ({"d_model": 10_000}, "at most 512"),
        ({"lr": -1}, "lr is -1; expected a number above 0"),
        ({"lr": "fast"}, "lr is 'fast'"),
        ({"lr": None}, "lr is None; expected a number above 0"),  # a field that was emptied
        ({"epochs": None}, "epochs is None; expected a whole number"),
        ({"mixers": None, "activation": None}, "mixers is None; expected a list of 1 to 8 names"),
        ({"dropout": 1.5}, "dropout is 1.5"),
        ({"samples": 0}, "samples is 0; expected a whole number of at least 1"),
        ({"speed": 3}, "a setting is 'speed'; expected one of 'task'"),
        ({"bug": "none"}, "bug is 'none'; expected one of"),
        ({"task": "file", "file": "/nowhere.csv"}, "/nowhere.csv"),
        ({"task": "file"}, "file is empty; expected the path of a CSV"),
        ({"task": "text", "file": "-"}, "/- does not exist; expected a file"),
        ({"task": "text", "file": "/dev/tty"}, "/dev/tty is no regular file; expected a file"),
        ({"task": "text", "file": "/nowhere.txt"}, "/nowhere.txt does not exist"),
        ({"task": "text", "file": "x" * 5000}, "File name too long: '/"),
        ({"task": "sentences", "bug": "LayerNormWithoutGamma"}, "expected the task digits"),
    ],
)
def test_wrong_settings_are_refused_before_a_run_begins(client, changes, words):
    before = [run["run"] for run in client.runs()]
    body = json.dumps({"runs": [TINY | changes], "ends": before}).encode()
    status, answer = client.request("POST", "/api/start", body)
    assert status == 400
    assert words in answer["error"]
    assert [run["run"] for run in client.runs()] == before


@pytest.mark.parametrize(
    ("action", "state"), [(None, "running"), ("pause", "paused"), ("stop", "stopped")]
)
def test_a_start_that_would_end_an_unfinished_run_is_refused(client, action, state):
    client.begin(epochs=1000)
    if action is not None:
        client.post("control", run="all", action=action)
    (run,) = client.wait_for(state)
    body = json.dumps({"runs": [TINY]}).encode()
    status, answer = client.request("POST", "/api/start", body)
    assert status == 400
    assert (
        f"{run['run']} is {state} and would end; expected its name in ends ([])" in answer["error"]
    )
    assert [(now["run"], now["state"]) for now in client.runs()] == [(run["run"], state)]


def test_a_finished_run_makes_room_without_a_word(client):
    client.begin(epochs=1)
    (before,) = client.wait_for("finished")
    (run,) = client.post("start", runs=[TINY | {"epochs": 1}])["runs"]
    assert run["run"] != before["run"]


def test_gradcheck_lets_a_training_go_on(client):
    client.begin(epochs=1000)
    (before,) = client.wait_for("running")
    answer = client.post("gradcheck", bug="LayerNormWithoutGamma")
    assert [tensor["name"] for tensor in answer["tensors"] if not tensor["ok"]] == ["x"]
    (run,) = client.runs()
    assert (run["run"], run["state"]) == (before["run"], "running")
    while client.runs()[0]["step"] <= before["step"]:
        time.sleep(0.05)


def test_gradcheck_needs_no_run(client):
    client.post("control", run="all", action="stop")
    assert client.post("gradcheck", bug="LayerNormWithoutEpsilon")["caught_by"]


def test_wrong_commands_are_named(client):
    for body, words in (
        ({"runs": [TINY], "ends": "run-1"}, "ends is a str; expected a list"),
        ({"runs": []}, "expected a list of 1 to 4 settings"),
        ({"runs": [TINY] * 5}, "expected a list of 1 to 4 settings"),
        ({"runs": [3]}, "settings are 3; expected an object"),
        ({"runs": [TINY | {"file": "\ud800"}]}, "surrogates not allowed"),
    ):
        status, answer = client.request("POST", "/api/start", json.dumps(body).encode())
        assert (status, words in answer["error"]) == (400, True), answer
    for body, words in (
        ({"run": "run-0", "action": "go"}, "run is 'run-0'; expected one of"),
        ({"run": "all", "action": "fly"}, "action is 'fly'; expected one of 'pause'"),
    ):
        status, answer = client.request("POST", "/api/control", json.dumps(body).encode())
        assert (status, words in answer["error"]) == (400, True), answer


def test_a_run_with_a_bug_names_it(client, live):
    client.begin(epochs=1, bug="LayerNormWithoutGamma")
    (run,) = client.wait_for("finished")
    assert run["bug"] == "LayerNormWithoutGamma"
    stored = json.loads((live.last / "settings.json").read_text())
    assert stored["bug"] == "LayerNormWithoutGamma"


def test_angles_of_a_bug_stand_beside_those_between_batches(client):
    client.begin(epochs=1, bug="LayerNormWithoutGamma")
    (run,) = client.wait_for("finished")
    points = [p for e in _first(client, 2) if e["kind"] == "points" for p in e["points"]]
    first = next(p for p in points if "angles" in p)
    assert len(first["angles"]) == len(first["apart"]) == len(run["layers"])
    assert min(first["apart"]) > max(first["angles"])  # chance turns a step more than this bug


def test_a_model_with_a_bug_cannot_be_loaded_as_a_healthy_one(client, live):
    client.begin(epochs=1, bug="LayerNormWithoutGamma")
    client.wait_for("finished")
    with pytest.raises(nf.CheckpointError, match="it holds a SequenceClassifierWithBug"):
        nf.load_checkpoint(live.last)


def test_a_run_with_a_bug_cannot_go_on_as_a_healthy_one(client, live):
    client.begin(epochs=1, bug="LayerNormWithoutGamma")
    client.wait_for("finished")
    stored = json.loads((live.last / "settings.json").read_text())
    healthy = Settings.of({**stored, "bug": None})
    with pytest.raises(ValueError, match="was 'SequenceClassifierWithBug'"):
        work_of(healthy).train(
            checkpoint=live.last, resume=True, every=5, workers=1, progress=False
        )


def test_the_model_of_a_healthy_run_can_be_loaded(client, live):
    client.begin(epochs=1)
    client.wait_for("finished")
    assert type(nf.load_checkpoint(live.last).model) is nf.SequenceClassifier


def test_a_checkpoint_that_cannot_be_written_is_reported(client, live):
    client.begin(epochs=1000)
    client.wait_for("running")
    (live.last / "checkpoint.safetensors").mkdir()
    client.post("control", run="all", action="stop")
    (run,) = client.wait_for("stopped")
    place = live.last / "checkpoint.safetensors"
    message = f"the checkpoint {place} could not be written (Is a directory); the latest is none"
    assert message in run["error"]
    assert f"npformer play: {live.last.name}: {message}" in live.log


@pytest.mark.processes
def test_a_run_goes_on_bit_for_bit_after_a_restart(tmp_path, live):
    client = Client(server := Server(tmp_path / "runs"))
    server.start()
    try:
        client.begin(epochs=4)
        client.post("control", run="all", action="pause")
        client.wait_for("paused")
        for _ in range(50):
            client.post("control", run="all", action="step")
        while client.runs()[0]["step"] < 50:
            time.sleep(0.05)
        address = server.address
        mode = (server.folder / "server.json").stat().st_mode
        assert mode & 0o777 == 0o600
        server.stop()
        points = server.last / "points.jsonl"
        points.write_text(points.read_text() + '{"step": 3, "lo')  # a crash while it was written
        server.start()
        assert server.address == address
        (run,) = client.runs()
        assert (run["state"], run["step"] >= 50) == ("stored", True)  # nothing goes on by itself
        link = server.last / "more"
        go = json.dumps({"run": "all", "action": "go"})
        link.symlink_to("elsewhere")  # by somebody who may write there
        status, answer = client.request("POST", "/api/control", go.encode())
        assert (status, "more is a link or a pipe" in answer["error"]) == (400, True), answer
        link.unlink()
        client.post("control", run="all", action="go")
        client.wait_for("finished")
        points = [p for e in _first(client, 2) if e["kind"] == "points" for p in e["points"]]
        client.begin(epochs=4)
        client.wait_for("finished")
        alone = [p for e in _first(client, 2) if e["kind"] == "points" for p in e["points"]]
        for name in ("loss", "accuracy", "validation_loss", "lr"):
            assert [p.get(name) for p in points] == [p.get(name) for p in alone], name
    finally:
        server.stop()
