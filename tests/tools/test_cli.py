"""The command line, called in this process; what it prints and what it leaves in the folder."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import npformer as nf
from npformer.engine.workers import Team
from npformer.tools import cli

TINY = [f"--{n}" for n in ("epochs=1", "d-model=16", "heads=2", "d-ff=16", "layers=1", "quiet")]
FILES = {"model.safetensors", "model-ordered.safetensors", "history.json", "metrics.json"}


def names(folder):
    return {path.name for path in folder.iterdir()}


def run(*words):
    return cli.main([str(word) for word in words])


@pytest.fixture
def fails(capsys):
    """Run, expect status 2, and return the one line on stderr."""

    def check(*words):
        assert run(*words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"npformer {words[0]}: ")
        assert err.count("\n") == 1
        return err

    return check


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of digits, trained for a moment on both splits."""
    folder = tmp_path_factory.mktemp("digits")
    assert run("train", "digits", *TINY, "--out", folder) == 0
    return folder


@pytest.fixture
def tokens(tmp_path, small_model):
    """Return the file of a model that takes token ids, and the model."""
    model = small_model(dtype="float32")
    nf.save(model, tmp_path / "tokens.safetensors")
    return tmp_path / "tokens.safetensors", model


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-m", "npformer.tools.cli"],
        [str(Path(sys.executable).with_name("npformer"))],
    ],
    ids=["python -m npformer.tools.cli", "npformer"],
)
def test_the_program_helps(command):
    if not Path(command[0]).exists():
        pytest.skip("the script npformer is not beside this Python")
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("train", "evaluate", "predict", "gradcheck", "doctor"):
        assert name in done.stdout


def commands():
    (found,) = (
        action
        for action in cli._parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return found.choices


@pytest.mark.parametrize("command", list(commands()))
def test_each_command_helps(command, capsys):
    with pytest.raises(SystemExit) as end:
        run(command, "--help")
    assert end.value.code == 0
    assert f"usage: npformer {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", list(commands()))
def test_every_option_is_explained(command):
    for action in commands()[command]._actions:
        assert action.help, action.option_strings or action.dest


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        run("--version")
    assert end.value.code == 0
    assert capsys.readouterr().out == f"npformer {nf.__version__}\n"


# train --------------------------------------------------------------------------------------------


def test_training_leaves_models_history_and_metrics(trained):
    assert names(trained) - {"curves.png"} == FILES
    metrics = json.loads((trained / "metrics.json").read_text())
    assert set(metrics["splits"]) == {"stratified", "ordered"}
    assert metrics["config"]["d_model"] == 16
    history = json.loads((trained / "history.json").read_text())
    assert len(history["stratified"]["train_loss"]) == 1


@pytest.mark.parametrize(
    ("split", "file"),
    [("stratified", "model.safetensors"), ("ordered", "model-ordered.safetensors")],
)
def test_metrics_are_those_of_the_model_that_was_saved(trained, split, file):
    metrics = json.loads((trained / "metrics.json").read_text())
    model = nf.load(trained / file)
    found = nf.evaluate(model, nf.data.digits(split).test)
    assert metrics["splits"][split]["test_accuracy"] == found.accuracy
    assert metrics["splits"][split]["test_loss"] == pytest.approx(found.loss, rel=1e-6)
    assert metrics["splits"][split]["file"] == file
    assert metrics["parameters"] == model.n_parameters()
    assert nf.read_notes(trained / file) == {"task": "digits", "split": split, "seed": 0}


def test_curves_are_drawn_where_matplotlib_is_installed(trained):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: there are no curves")
    assert (trained / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_everything_else_is_there(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("train", "digits", *TINY, "--out", tmp_path) == 0
    assert names(tmp_path) == FILES
    assert 'no curves.png: python -m pip install "npformer[plot]"' in capsys.readouterr().out


@pytest.fixture
def no_curves(monkeypatch):
    """Drawing takes longer than training here."""
    monkeypatch.setattr(cli, "_plot", lambda *arguments: "no curves")


@pytest.mark.usefixtures("no_curves")
@pytest.mark.parametrize("split", ["stratified", "ordered"])
def test_one_split_is_one_model(tmp_path, split):
    assert run("train", "digits", *TINY, "--split", split, "--out", tmp_path) == 0
    assert names(tmp_path) == {"model.safetensors", "history.json", "metrics.json"}
    assert nf.read_notes(tmp_path / "model.safetensors")["split"] == split


@pytest.mark.usefixtures("no_curves")
def test_the_same_seed_is_the_same_model(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        words = ("--split", "ordered", "--seed", seed, "--out", tmp_path / name)
        assert run("train", "digits", *TINY, *words) == 0
    first, same, other = (nf.load(tmp_path / n / "model.safetensors") for n in "abc")
    np.testing.assert_array_equal(first.parameters().flat, same.parameters().flat)
    assert not np.array_equal(first.parameters().flat, other.parameters().flat)


@pytest.mark.usefixtures("no_curves")
def test_options_reach_the_model(tmp_path):
    words = "--split ordered --layers 2 --mixer attention,fourier --norm pre --ffn conv1d"
    more = "--activation relu --positions sinusoidal --dropout 0.1 --dtype float64"
    assert run("train", "digits", *TINY, *words.split(), *more.split(), "--out", tmp_path) == 0
    model = nf.load(tmp_path / "model.safetensors")
    config = model.config
    assert config.mixers() == ("attention", "fourier")
    assert (config.norm, config.ffn, config.activation) == ("pre", "conv1d", "relu")
    assert (config.positions, config.dropout, model.dtype) == ("sinusoidal", 0.1, "float64")


@pytest.mark.usefixtures("no_curves")
def test_shared_layers_are_one_block(tmp_path):
    words = ("--layers", 3, "--share-layers", "--split", "ordered", "--out", tmp_path)
    assert run("train", "digits", *TINY, *words) == 0
    assert nf.load(tmp_path / "model.safetensors").config.share_layers


@pytest.mark.usefixtures("no_curves")
def test_options_reach_the_training(tmp_path, monkeypatch):
    used = {}

    def fit(model, data, **options):
        used.update(options)
        return nf.fit(model, data, **options)

    monkeypatch.setattr(cli, "fit", fit)
    words = "--split ordered --batch-size 1258 --lr 0.5 --weight-decay 0.3 --clip-norm 2"
    more = "--label-smoothing 0.2 --epochs 3 --workers 2 --seed 5"
    assert run("train", "digits", *TINY, *words.split(), *more.split(), "--out", tmp_path) == 0
    asked = {"batch_size": 1258, "lr": 0.5, "weight_decay": 0.3, "clip_norm": 2.0, "epochs": 3}
    asked["label_smoothing"] = 0.2
    training = json.loads((tmp_path / "metrics.json").read_text())["training"]
    assert training.items() >= asked.items()
    assert used.items() >= {**asked, "workers": 2, "seed": 5, "progress": False}.items()


@pytest.mark.usefixtures("no_curves")
def test_quiet_is_quiet_and_otherwise_the_model_is_shown(tmp_path, capsys):
    words = ["train", "digits", "--split", "ordered", "--out", tmp_path]
    assert run(*words, *TINY) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.split()[0] for line in out.splitlines() if line] == ["test", f"{tmp_path}:"]
    assert run(*words, *(word for word in TINY if word != "--quiet")) == 0
    assert "SequenceClassifier" in capsys.readouterr().out


@pytest.mark.usefixtures("no_curves")
def test_results_go_to_a_folder_that_is_named_after_the_task(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("train", "digits", *TINY, "--split", "ordered", "--mixer", "fourier") == 0
    assert "model.safetensors" in names(tmp_path / "runs" / "digits-fourier")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--mixer nope", "mixer is 'nope'; expected one of 'attention'"),
        ("--mixer attention,fourier", "mixer has 2 names; expected one name, or one for each"),
        ("--split nope", "--split is 'nope'; expected stratified, ordered or both for task digits"),
        ("--heads 3", "n_heads is 3 and d_model is 16; expected heads that divide d_model"),
        ("--epochs 0", "--epochs is 0; expected a whole number of at least 1"),
        ("--batch-size 0", "--batch-size is 0; expected a whole number of at least 1"),
        ("--layers 0", "n_layers is 0; expected a whole number of at least 1"),
        ("--dropout 1", "dropout is 1.0; expected a number from 0 up to"),
        ("--seed -1", "seed is -1; expected a whole number from 0"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_folder(tmp_path, fails, words, message):
    assert message in fails("train", "digits", *TINY, *words.split(), "--out", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--lr 0", "lr is 0.0; expected a number above 0"),
        ("--workers 0", "workers is 0; expected a whole number of at least 1 or 'auto'"),
        ("--lr 1e30", "the loss is not finite at step 2; the first tensor"),
    ],
)
def test_what_training_finds_is_one_line_too(tmp_path, fails, words, message):
    assert message in fails("train", "digits", *TINY, *words.split(), "--out", tmp_path)


def test_a_split_of_a_task_without_splits_is_refused(fails, tmp_path):
    line = fails("train", "reverse", "--split", "ordered", "--out", tmp_path)
    assert "--split is 'ordered'; expected generated for task reverse" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["train"], "the following arguments are required: TASK"),
        (["train", "nope"], "argument TASK: invalid choice: 'nope'"),
        (["train", "digits", "--workers", "many"], "'many' is neither a whole number nor 'auto'"),
        (["train", "digits", "--lr", "fast"], "argument --lr: invalid float value: 'fast'"),
        (["train", "digits", "--epohcs", "1"], "--epohcs is unknown to npformer train; did you me"),
        (["predict", "m", "--probablities"], "did you mean --probabilities?"),
        (["train", "digits", "--epoch", "1"], "did you mean --epochs?"),
        (["train", "digits", "more"], "more is unknown to npformer train; the words that it knows"),
    ],
)
def test_words_that_do_not_fit_show_the_usage(words, message, capsys):
    with pytest.raises(SystemExit) as end:
        run(*words)
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert " ".join(["usage: npformer", *words[:1]]) in err


@pytest.mark.parametrize("command", ["train digits", "evaluate", "predict"])
def test_a_gpu_that_is_not_there_is_one_line(trained, monkeypatch, fails, command, tmp_path):
    monkeypatch.delitem(nf.core.arrays._backends, "cupy", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    command, *words = command.split()
    where = [*words, *TINY, "--out", tmp_path / "new"] if words else [trained]
    line = fails(command, *where, "--backend", "cupy")
    assert "backend 'cupy' needs CuPy, which cannot be imported here" in line
    assert "pip install" in line
    assert list(tmp_path.iterdir()) == []


# Ctrl-C -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "files", "weights"),
    [
        (0, FILES - {"model-ordered.safetensors"}, "weights of an unfinished first epoch"),
        (45, FILES - {"model-ordered.safetensors"}, "weights of epoch 1 of 1"),
        (85, FILES, "(ordered split), weights of an unfinished first epoch"),
    ],
)
def test_ctrl_c_keeps_what_there_is(tmp_path, capsys, monkeypatch, after, files, weights):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: there are no curves")
    steps, step = [], Team.step

    def interrupted(self, *arguments, **options):
        if len(steps) == after:
            raise KeyboardInterrupt
        steps.append(1)
        return step(self, *arguments, **options)

    monkeypatch.setattr(Team, "step", interrupted)
    assert run("train", "digits", *TINY, "--epochs", 2, "--out", tmp_path) == 130
    out, err = capsys.readouterr()
    assert names(tmp_path) == {*files, "curves.png"}
    assert weights in out
    assert "interrupted: the files hold the best weights so far" in out
    assert err == ""
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert [*metrics["splits"].values()][-1]["stopped"] == "interrupted"
    assert nf.load(tmp_path / "model.safetensors").config.d_model == 16


def test_weights_are_saved_before_they_are_measured(tmp_path, capsys, monkeypatch):
    sizes = []

    def interrupted(model, data, batch_size):
        sizes.append(batch_size)
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "evaluate", interrupted)
    words = ("--micro-batch", 8, "--batch-size", 64, "--out", tmp_path)
    assert run("train", "digits", *TINY, *words) == 130
    assert capsys.readouterr() == ("", "interrupted\n")
    assert nf.load(tmp_path / "model.safetensors").config.d_model == 16
    found = json.loads((tmp_path / "metrics.json").read_text())["splits"]["stratified"]
    assert (found["test_accuracy"], found["epochs"]) == (None, 1)
    assert len(json.loads((tmp_path / "history.json").read_text())["stratified"]["lr"]) == 1
    assert sizes == [32]  # what fits a training step fits four times without a backward pass


def test_ctrl_c_anywhere_else_is_one_word(trained, capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "evaluate", interrupted)
    assert run("evaluate", trained) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


# evaluate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "split"),
    [
        (["."], "stratified"),
        (["model.safetensors"], "stratified"),
        (["model-ordered.safetensors"], "ordered"),
        ([".", "--split", "ordered"], "ordered"),
        (["model-ordered.safetensors", "--split", "ordered"], "ordered"),
    ],
)
def test_evaluate_gives_what_training_measured(trained, capsys, words, split):
    file, *options = words
    assert run("evaluate", trained / file, *options) == 0
    out = capsys.readouterr().out
    found = json.loads((trained / "metrics.json").read_text())["splits"][split]
    assert f"digits, {split} split, 360 labels, on CPU (" in out
    assert f"accuracy {found['test_accuracy']:.4f}, loss {found['test_loss']:.4f} nats" in out
    assert "trained on" not in out


def test_evaluate_shows_each_class(trained, capsys):
    assert run("evaluate", trained) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-10:]]
    assert [int(row[0]) for row in rows] == list(range(10))
    total = sum(int(labels) for _, labels, _ in rows)
    hits = sum(int(labels) * float(right) for _, labels, right in rows)
    metrics = json.loads((trained / "metrics.json").read_text())
    assert total == 360
    assert hits / 360 == pytest.approx(metrics["splits"]["stratified"]["test_accuracy"], abs=1e-3)


def test_evaluate_warns_of_a_split_that_was_trained_on(trained, capsys):
    assert run("evaluate", trained / "model.safetensors", "--split", "ordered") == 0
    assert "trained on the stratified split and may have seen" in capsys.readouterr().out


@pytest.mark.parametrize("split", ["both", "nope"])
def test_evaluate_takes_one_split(trained, fails, split):
    line = fails("evaluate", trained, "--split", split)
    assert f"--split is {split!r}; expected stratified or ordered for task digits" in line


def test_evaluate_needs_a_model_that_knows_its_task(tokens, fails):
    assert "does not say which task, split and seed" in fails("evaluate", tokens[0])
    nf.save(tokens[1], tokens[0], notes={"task": "digits"})
    for command in ("evaluate", "predict"):
        assert "does not say which task, split and seed" in fails(command, tokens[0])


def test_evaluate_needs_a_classifier(tmp_path, small_config, fails):
    nf.save(nf.Encoder(small_config()), tmp_path / "encoder.safetensors")
    line = fails("evaluate", tmp_path / "encoder.safetensors")
    assert "holds an Encoder; expected a SequenceClassifier" in line


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_model_that_is_not_there_is_named(tmp_path, fails, command):
    assert f"there is no folder {tmp_path / 'nowhere'}" in fails(command, tmp_path / "nowhere")
    nowhere = tmp_path / "nowhere.safetensors"
    assert f"there is no file {nowhere}" in fails(command, nowhere)
    assert f"there is no file {tmp_path / 'model.safetensors'}" in fails(command, tmp_path)


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_damaged_model_says_so(tmp_path, trained, fails, command):
    data = (trained / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(data[:1000])
    assert "is not a whole safetensors file" in fails(command, tmp_path)


# predict ------------------------------------------------------------------------------------------


@pytest.fixture
def held_out():
    return nf.data.digits().test


def test_predict_shows_some_of_the_test_data(trained, capsys, held_out):
    assert run("predict", trained, "--samples", 3) == 0
    x, y = held_out
    predicted = nf.load(trained / "model.safetensors").predict(x[:3])
    expected = [f"{p}   label {label}" for p, label in zip(predicted, y[:3], strict=True)]
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_predict_reads_npy(trained, capsys, tmp_path, held_out, dtype):
    x = np.rint(held_out[0][:4]).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    assert run("predict", trained, tmp_path / "x.npy") == 0
    predicted = nf.load(trained / "model.safetensors").predict(x.astype("float32"))
    assert capsys.readouterr().out.split() == [str(p) for p in predicted]


@pytest.mark.parametrize("samples", [1, 4])
def test_predict_reads_csv(trained, capsys, tmp_path, held_out, samples):
    x = held_out[0][:samples]
    np.savetxt(tmp_path / "x.csv", x.reshape(samples, -1), delimiter=",")
    assert run("predict", trained, tmp_path / "x.csv") == 0
    predicted = nf.load(trained / "model.safetensors").predict(x)
    assert capsys.readouterr().out.split() == [str(p) for p in predicted]


def test_predict_reads_token_ids_from_csv(tokens, capsys, tmp_path):
    path, model = tokens
    (tmp_path / "x.csv").write_text("0,1,2,3\n6,5,4,3\n")
    assert run("predict", path, tmp_path / "x.csv") == 0
    predicted = model.predict(np.array([[0, 1, 2, 3], [6, 5, 4, 3]]))
    assert capsys.readouterr().out.split() == [str(p) for p in predicted]


def test_predict_reads_csv_of_a_spreadsheet(tokens, capsys, tmp_path):
    (tmp_path / "plain.csv").write_bytes(b"0,1,2\n3,4,5\n")
    (tmp_path / "sheet.csv").write_bytes(b"\xef\xbb\xbf0,1,2\r\n3,4,5\r\n\r\n")
    printed = []
    for name in ("plain.csv", "sheet.csv"):
        assert run("predict", tokens[0], tmp_path / name) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0].count("\n") == 2


def test_predict_takes_a_mask(tokens, capsys, tmp_path, token_batch):
    path, model = tokens
    ids, _, mask = token_batch
    np.save(tmp_path / "x.npy", ids)
    np.save(tmp_path / "mask.npy", mask)
    words = ["predict", path, tmp_path / "x.npy", "--probabilities"]
    assert run(*words, "--mask", tmp_path / "mask.npy") == 0
    expected = model.predict_probabilities(ids, mask)
    printed = np.array([line.split() for line in capsys.readouterr().out.splitlines()], float)
    np.testing.assert_allclose(printed, expected, atol=6e-5)


def test_predict_prints_probabilities_that_sum_to_one(trained, capsys):
    assert run("predict", trained, "--samples", 4, "--probabilities") == 0
    for line in capsys.readouterr().out.splitlines():
        numbers = [float(word) for word in line.partition("label")[0].split()]
        assert len(numbers) == 10
        assert sum(numbers) == pytest.approx(1.0, abs=6e-4)


@pytest.mark.parametrize("probabilities", [False, True])
def test_predict_writes_npy(trained, capsys, tmp_path, held_out, probabilities):
    out = tmp_path / "out.npy"
    words = ["--probabilities"] if probabilities else []
    assert run("predict", trained, "--samples", 6, "--out", out, *words) == 0
    model = nf.load(trained / "model.safetensors")
    expected = (model.predict_probabilities if probabilities else model.predict)(held_out[0][:6])
    np.testing.assert_array_equal(np.load(out), expected)
    assert capsys.readouterr().out.startswith(f"{out}: {expected.dtype} {expected.shape}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", "1,2", "x.txt ends in '.txt'; expected .npy or .csv"),
        ("x.npy", None, "x.npy; expected an array that numpy.save wrote"),
        ("x.csv", None, "x.csv; expected one sample a line"),
        ("x.npy", "", "x.npy is not an array of numbers in .npy format"),
        ("x.npy", "some text", "x.npy is not an array of numbers in .npy format"),
        ("x.csv", "", "x.csv: it is empty; expected one sample a line"),
        ("x.csv", "\n\n", "x.csv: it is empty; expected one sample a line"),
        ("x.csv", "1,2\n\n3,4\n", "x.csv: line 2 is empty; expected one sample a line"),
        ("x.csv", "#1,2\n", "x.csv: could not convert string '#1' to float64 at row 0"),
        ("x.csv", "a,b\n1,2\n", "could not convert string 'a' to float64 at row 0, column 1; exp"),
        ("x.csv", "1,2\n1\n", "x.csv: the number of columns changed from 2 to 1 at row 2; expect"),
        ("x.csv", "1,2,3\n", "x.csv has 3 numbers a line; expected a multiple of the model's 8 f"),
        ("x.csv", ",".join(["0"] * 72), "x has length 9; expected at most max_len = 8"),
    ],
)
def test_input_that_does_not_fit_is_one_line(trained, fails, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    assert message in fails("predict", trained, tmp_path / name)


def test_a_folder_that_is_not_there_is_named_before_anything_is_computed(trained, fails, tmp_path):
    message = f"--out: the folder {tmp_path / 'nowhere'} does not exist; create it first"
    assert message in fails("predict", trained, "x.npy", "--out", tmp_path / "nowhere" / "y.npy")


@pytest.mark.parametrize("name", ["labels.txt", "labels", "folder.npy"])
def test_results_go_into_a_file_that_ends_in_npy(trained, fails, tmp_path, name):
    (tmp_path / "folder.npy").mkdir()
    line = fails("predict", trained, "--out", tmp_path / name)
    assert f"--out is {tmp_path / name}; expected the name of a file that ends in .npy" in line
    assert names(tmp_path) == {"folder.npy"}


def test_an_array_of_the_wrong_width_is_one_line(trained, fails, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 8, 9)))
    line = fails("predict", trained, tmp_path / "x.npy")
    assert "x has shape (2, 8, 9); expected (batch, length, 8)" in line


def test_python_objects_are_never_loaded(trained, fails, tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}]), allow_pickle=True)
    assert "is not an array of numbers" in fails("predict", trained, tmp_path / "x.npy")


@pytest.mark.parametrize("text", ["0,7\n", "0,-1\n"])
def test_a_token_id_out_of_range_is_one_line(tokens, fails, tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    line = fails("predict", tokens[0], tmp_path / "x.csv")
    assert "expected whole numbers from 0 to 6" in line


def test_token_ids_with_a_fraction_are_refused(tokens, fails, tmp_path):
    (tmp_path / "x.csv").write_text("0,1.5\n")
    line = fails("predict", tokens[0], tmp_path / "x.csv")
    assert "x has dtype float64; expected whole numbers" in line


def test_a_mask_needs_an_input(trained, fails, tmp_path):
    line = fails("predict", trained, "--mask", tmp_path / "mask.npy")
    assert "--mask is given without INPUT" in line


def test_samples_are_counted_from_one(trained, fails):
    assert "--samples is 0; expected a whole number" in fails("predict", trained, "--samples", 0)


# gradcheck, doctor --------------------------------------------------------------------------------


def test_gradcheck_takes_a_name(capsys):
    pytest.importorskip("npformer.proof.cases")
    assert run("gradcheck", "relu") == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.endswith(("passed", "a derivative)"))]
    assert rows
    assert all("relu" in row.lower() for row in rows)
    assert f"{len(rows)} cases, {len(rows)} passed, 0 failed" in out


def test_gradcheck_of_a_wrong_backward_pass_fails(capsys, monkeypatch):
    cases = pytest.importorskip("npformer.proof.cases")
    (case,) = [case for case in cases.cases() if case.name.startswith("relu")][:1]

    def wrong():
        from npformer import functional as F

        twice = lambda dy, cache: 2.0 * F.relu_backward(dy, cache)  # noqa: E731
        x = np.random.default_rng(0).normal(size=(3, 4))
        return nf.gradcheck((F.relu, twice), x)

    monkeypatch.setattr(cases, "cases", lambda: [type(case)("wrong", "functional", (), wrong)])
    assert run("gradcheck") == 1
    assert "1 cases, 0 passed, 1 failed" in capsys.readouterr().out


def test_gradcheck_of_an_unknown_name_is_one_line(fails):
    pytest.importorskip("npformer.proof.cases")
    assert "no case is called zzz" in fails("gradcheck", "zzz")
    assert "Did you mean layer_norm" in fails("gradcheck", "layer_nrom")


def test_gradcheck_takes_a_name_in_capitals_or_not(capsys):
    found = []
    for name in ("LayerNorm", "layer_norm"):
        assert run("gradcheck", name) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]


def test_doctor_finds_everything_in_order(capsys):
    assert run("doctor") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.split()[0] in ("ok", "--") for line in lines)
    for name in ("npformer", "Python", "numpy", "scipy", "BLAS", "self-test", "GPU"):
        assert any(line.split()[1] == name for line in lines)


def test_doctor_reports_what_is_missing(capsys, monkeypatch):
    from importlib import metadata

    found = metadata.version

    def version(name):
        if name in ("scipy", "matplotlib"):
            raise metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(metadata, "version", version)
    assert run("doctor") == 1
    lines = capsys.readouterr().out.splitlines()
    assert "PROBLEM  scipy        not installed" in lines
    assert any(line.startswith("--       matplotlib   not installed; python -m") for line in lines)


# Where it runs, precision, memory -----------------------------------------------------------------


@pytest.mark.usefixtures("no_curves")
def test_predict_says_on_stderr_where_it_ran(trained, capsys):
    assert run("predict", trained, "--samples", 3) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert err.startswith("3 samples on CPU (")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["train", "evaluate", "predict"])
def test_tf32_on_a_cpu_is_one_line(trained, fails, tmp_path, command):
    words = ("digits", *TINY, "--out", tmp_path) if command == "train" else (trained,)
    line = fails(command, *words, "--precision", "tf32")
    assert "precision is 'tf32' and the backend is 'numpy'; expected 'float32'" in line


def test_a_micro_batch_reaches_the_training(tmp_path, no_curves, monkeypatch):
    used = {}

    def fit(model, data, **options):
        used.update(options)
        return nf.fit(model, data, **options)

    monkeypatch.setattr(cli, "fit", fit)
    words = ("--split", "ordered", "--micro-batch", 16, "--masks", "device", "--out", tmp_path)
    assert run("train", "digits", *TINY, *words) == 0
    assert (used["micro_batch"], used["masks"]) == (16, "device")
    assert used["precision"] == "float32"
    assert json.loads((tmp_path / "metrics.json").read_text())["precision"] == "float32"


def test_running_out_of_memory_is_one_line_with_options_to_try(tmp_path, fails, monkeypatch):
    def accumulate(*arguments, **options):
        raise MemoryError("Unable to allocate 7.45 GiB")

    monkeypatch.setattr("npformer.engine.workers.accumulate", accumulate)
    line = fails("train", "digits", *TINY, "--batch-size", 64, "--workers", 1, "--out", tmp_path)
    assert "(Unable to allocate 7.45 GiB). Try --batch-size 32 or --micro-batch 32, which" in line


def test_batches_of_prediction_are_chosen(trained, capsys, fails, monkeypatch):
    sizes = []
    forward = nf.SequenceClassifier.forward

    def noted(self, x, context):
        sizes.append(len(x))
        return forward(self, x, context)

    monkeypatch.setattr(nf.SequenceClassifier, "forward", noted)
    assert run("predict", trained, "--samples", 5, "--batch-size", 2) == 0
    assert sizes == [2, 2, 1]
    capsys.readouterr()
    assert "batch_size is 0" in fails("predict", trained, "--batch-size", 0)
