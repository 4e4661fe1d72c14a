"""npformer train: what its options do, what it prints, and which files it writes."""

import json
import sys

import numpy as np
import pytest

import npformer as nf
from npformer.cli import train_task as command
from npformer.cli.play import what_to_type
from npformer.cli.program import make_parser
from npformer.engine.team import Team
from tests.cli.conftest import TINY, metrics_of, names, run, train
from tests.needs import NEEDS

RUN = {"run.json", "checkpoints", ".lock"}
FILES = {"model.safetensors", "model-ordered.safetensors", "history.json", "metrics.json", *RUN}
ONE_MODEL = FILES - {"model-ordered.safetensors"}

quick = pytest.mark.usefixtures("no_curves")


# Files --------------------------------------------------------------------------------------------
def test_a_run_has_its_files(trained):
    assert names(trained) - {"curves.png"} == FILES


def test_metrics_are_written_for_each_split(trained):
    metrics = metrics_of(trained)
    assert set(metrics["splits"]) == {"stratified", "ordered"}
    assert metrics["config"]["d_model"] == 16


def test_a_history_is_written_for_each_split(trained):
    history = json.loads((trained / "history.json").read_text())
    assert len(history["stratified"]["train_loss"]) == 1


@pytest.mark.parametrize(
    ("split", "file"),
    [("stratified", "model.safetensors"), ("ordered", "model-ordered.safetensors")],
)
def test_metrics_are_those_of_the_model_that_was_saved(trained, split, file):
    metrics = metrics_of(trained)
    model = nf.load(trained / file)
    evaluation = nf.evaluate(model, nf.data.digits(split).test)
    assert metrics["splits"][split]["test_accuracy"] == evaluation.accuracy
    assert metrics["splits"][split]["test_loss"] == pytest.approx(evaluation.loss, rel=1e-6)
    assert metrics["splits"][split]["file"] == file
    assert metrics["parameters"] == model.n_parameters()
    notes = {"task": "digits", "split": split, "seed": 0, "plugins": []}
    assert nf.read_notes(trained / file) == notes


def test_curves_are_drawn_where_matplotlib_is_installed(trained):
    pytest.importorskip("matplotlib", reason=NEEDS["matplotlib"])
    assert (trained / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_all_other_files_are_written(tmp_path, prints, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = prints("train", "digits", *TINY, "--out", tmp_path)
    assert names(tmp_path) == FILES
    assert 'no curves.png: python -m pip install "npformer[plot]"' in out


@quick
@pytest.mark.parametrize("split", ["stratified", "ordered"])
def test_one_split_is_one_model(tmp_path, split):
    train(tmp_path, "--split", split)
    assert names(tmp_path) == ONE_MODEL
    assert nf.read_notes(tmp_path / "model.safetensors")["split"] == split


@quick
def test_the_same_seed_is_the_same_model(tmp_path):
    runs = [train(tmp_path / name, "--seed", seed) for name, seed in (("a", 0), ("b", 0), ("c", 1))]
    first, same, other = (nf.load(run / "model.safetensors").parameters().flat for run in runs)
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@quick
def test_the_folder_is_named_after_the_task_with_its_mixer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("train", "digits", *TINY, "--split", "ordered", "--mixer", "fourier") == 0
    assert "model.safetensors" in names(tmp_path / "runs" / "digits-fourier")


LOUD = [word for word in TINY if word != "--quiet"]


@pytest.fixture
def lines_of_training(tmp_path, no_curves, capsys):
    assert run("train", "digits", *LOUD, "--out", tmp_path / "brief") == 0
    return capsys.readouterr().out.splitlines()


def test_it_says_what_it_trains_in_five_lines(lines_of_training):
    lines = lines_of_training
    assert [line.partition(":")[0] for line in lines[2 : lines.index("", 2)]] == [
        "digits",
        "model",
        "stratified split",
        "ordered split",
    ]
    assert "1 layer of attention" in lines[3]
    assert "parameters, float32" in lines[3]
    assert "other people wrote the test" in lines[5]


def test_it_says_what_to_do_next(lines_of_training):
    commands = [line.partition(":")[2].split()[:2] for line in lines_of_training[-3:]]
    assert commands[:2] == [["npformer", command] for command in ("look", "train")]
    assert lines_of_training[-1] == f"watch it learn:  {what_to_type()}"


@quick
def test_with_verbose_it_shows_the_layers(tmp_path, capsys):
    assert run("train", "digits", *LOUD, "--verbose", "--out", tmp_path / "table") == 0
    assert "blocks.0" in capsys.readouterr().out


@quick
def test_quiet_prints_the_results_alone(tmp_path, capsys):
    train(tmp_path)
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.split()[0] for line in out.splitlines() if line] == ["test", f"{tmp_path}:"]
    loud = [word for word in TINY if word != "--quiet"]
    status = run("train", "digits", *loud, "--split", "ordered", "--overwrite", "--out", tmp_path)
    assert status == 0
    assert "model: 1 layer of" in capsys.readouterr().out


# Options ------------------------------------------------------------------------------------------
@quick
def test_options_reach_the_model(tmp_path):
    words = "--layers 2 --mixer attention,fourier --norm pre --ffn conv1d --activation relu"
    words += " --positions sinusoidal --dropout 0.1 --dtype float64"
    train(tmp_path, *words.split())
    model = nf.load(tmp_path / "model.safetensors")
    config = model.config
    assert config.mixers() == ("attention", "fourier")
    assert (config.norm, config.ffn, config.activation) == ("pre", "conv1d", "relu")
    assert (config.positions, config.dropout, model.dtype) == ("sinusoidal", 0.1, "float64")


@quick
def test_shared_layers_may_have_no_feed_forward_network(tmp_path):
    train(tmp_path, "--ffn", "none", "--layers", 3, "--share-layers")
    model = nf.load(tmp_path / "model.safetensors")
    assert (model.config.ffn, model.config.share_layers) == ("none", True)
    assert model.encoder.blocks[0].feed_forward is None


@pytest.fixture
def used(no_curves, monkeypatch):
    """Return the options that `fit` gets."""
    options_used = {}

    def fit(model, data, **options):
        options_used.update(options)
        return nf.fit(model, data, **options)

    monkeypatch.setattr(command, "fit", fit)
    return options_used


def test_options_reach_the_training(tmp_path, used):
    words = "--batch-size 1258 --lr 0.5 --weight-decay 0.3 --clip-norm 2 --label-smoothing 0.2"
    words += " --epochs 3 --workers 2 --seed 5"
    train(tmp_path, *words.split())
    options = {"batch_size": 1258, "lr": 0.5, "weight_decay": 0.3, "clip_norm": 2.0, "epochs": 3}
    options["label_smoothing"] = 0.2
    assert metrics_of(tmp_path)["training"].items() >= options.items()
    assert used.items() >= {**options, "workers": 2, "seed": 5, "progress": False}.items()


@pytest.mark.parametrize(
    "name", ["mixer", "dtype", "seed", "workers", "masks", "backend", "precision", "share_layers"]
)
def test_what_is_not_asked_for_is_left_to_the_run(name):
    options = make_parser().parse_args(["train", "digits"])
    assert getattr(options, name) is None, "a run that goes on would be asked for another"
    assert options.defaults[name] is not None


def test_with_another_loss_no_labels_are_smoothed_unless_that_is_asked_for(tmp_path, used):
    train(tmp_path / "one", "--output", "softmax")
    assert used["label_smoothing"] == 0.0
    train(tmp_path / "two", "--output", "softmax", "--label-smoothing", "0.2")
    assert used["label_smoothing"] == 0.2


def test_a_micro_batch_reaches_the_training(tmp_path, used):
    train(tmp_path, "--micro-batch", 16, "--masks", "device")
    assert (used["micro_batch"], used["masks"]) == (16, "device")
    assert used["precision"] == "float32"
    assert metrics_of(tmp_path)["precision"] == "float32"


# Mistakes -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--no-decay nope", "--no-decay is ['nope'], and no parameter matches"),
        ("--lr 1e30", "the loss is not finite at step 2; the first tensor"),
    ],
)
def test_an_error_during_training_is_one_line(tmp_path, fails, words, message):
    assert message in fails("train", "digits", *TINY, *words.split(), "--out", tmp_path)


def test_running_out_of_memory_is_one_line_with_options_to_try(tmp_path, fails, monkeypatch):
    def accumulate(*arguments, **options):
        raise MemoryError("Unable to allocate 7.45 GiB")

    monkeypatch.setattr("npformer.engine.team.accumulate", accumulate)
    line = fails("train", "digits", *TINY, "--batch-size", 64, "--workers", 1, "--out", tmp_path)
    assert "(Unable to allocate 7.45 GiB). Try --batch-size 32 or --micro-batch 32, which" in line


# Ctrl-C -------------------------------------------------------------------------------------------
@pytest.fixture
def interrupt_after(tmp_path, monkeypatch):
    """Return a function that interrupts a training after some steps."""
    steps = []
    step = Team.step

    def interrupt(n_steps):
        def interrupted(self, *arguments, **options):
            if len(steps) == n_steps:
                raise KeyboardInterrupt
            steps.append(1)
            return step(self, *arguments, **options)

        with monkeypatch.context() as only_here:
            only_here.setattr(Team, "step", interrupted)
            assert run("train", "digits", *TINY, "--epochs", 2, "--out", tmp_path) == 130

    return interrupt


@pytest.mark.parametrize(
    ("after", "files", "said"),
    [
        (0, RUN, "interrupted after 0 of 2 epochs. To go on:"),
        (45, ONE_MODEL, "interrupted after 1 of 2 epochs. To go on:"),
        (90, FILES, "interrupted after 0 of 2 epochs. To go on:"),
    ],
)
def test_ctrl_c_keeps_complete_files(tmp_path, capsys, interrupt_after, after, files, said):
    interrupt_after(after)
    out, err = capsys.readouterr()
    # Without an epoch that was evaluated there are no weights worth a file.
    assert names(tmp_path) == files - ({"model-ordered.safetensors"} if after == 90 else set())
    assert said in out
    assert f"npformer train digits --out {tmp_path} --resume" in out
    assert err == ""


@pytest.mark.parametrize("after", [0, 45, 90])
def test_a_training_goes_on_after_ctrl_c(tmp_path, interrupt_after, after):
    interrupt_after(after)
    assert run("train", "digits", "--quiet", "--out", tmp_path, "--resume") == 0
    assert names(tmp_path) - {"curves.png"} == FILES
    assert [*metrics_of(tmp_path)["splits"].values()][-1]["epochs"] == 2


@pytest.mark.parametrize(("quiet", "says"), [([], True), (["--quiet"], False)])
def test_a_resumed_training_says_whether_a_run_is_there(tmp_path, capsys, quiet, says):
    run(
        "train",
        "digits",
        "--epochs",
        1,
        "--mixer",
        "identity",
        "--out",
        tmp_path,
        "--resume",
        *quiet,
    )
    assert ("no run is there, so one begins" in capsys.readouterr().out) is says


def test_weights_are_saved_before_they_are_tested(tmp_path, capsys, monkeypatch):
    sizes = []

    def interrupted(model, data, batch_size, **more):
        sizes.append(batch_size)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "evaluate", interrupted)
    status = run(
        "train", "digits", *TINY, "--micro-batch", 8, "--batch-size", 64, "--out", tmp_path
    )
    assert status == 130
    assert capsys.readouterr() == ("", "interrupted\n")
    assert nf.load(tmp_path / "model.safetensors").config.d_model == 16
    result = metrics_of(tmp_path)["splits"]["stratified"]
    assert result["epochs"] == 1
    assert "test_accuracy" not in result
    assert len(json.loads((tmp_path / "history.json").read_text())["stratified"]["lr"]) == 1
    assert sizes == [32]  # without a backward pass, four times what a training step holds
