"""npformer train, predict, evaluate and look with a file of series."""

import csv

import numpy as np
import pytest

import npformer as nf
from tests.cli.conftest import metrics_of, run
from tests.needs import NEEDS
from tests.tasks.estimators.test_series_classifier import series_and_labels

TINY = ["--quiet", "--validation=.1", "--epochs=6", "--d-model=16", "--heads=2", "--d-ff=16"]
TINY += ["--lr=.01", "--members=1"]
COLUMNS = ("--id", "walk", "--time", "second", "--label", "gait")


def write(path, series, labels):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["walk", "second", "x", "y", "gait"])
        for i, (steps, label) in enumerate(zip(series, labels, strict=True)):
            writer.writerows([f"w{i}", t, *step, label] for t, step in enumerate(steps))
    return path


@pytest.fixture(scope="session")
def trained_on_series(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    table = write(folder / "walks.csv", *series_and_labels(100))
    assert run("train", table, *COLUMNS, *TINY, "--out", folder / "run") == 0
    return folder


def test_a_table_is_split(trained_on_series):
    samples = metrics_of(trained_on_series / "run")["samples"]
    assert samples == {"train": 72, "test": 20, "validation": 8}


def test_a_model_of_a_table_has_the_sizes_of_the_options(trained_on_series):
    config = nf.load(trained_on_series / "run" / "model.safetensors").model.config
    assert (config.d_model, config.n_heads, config.d_ff) == (16, 2, 16)


def test_a_table_is_learned(trained_on_series):
    assert metrics_of(trained_on_series / "run")["test"]["accuracy"] > 0.8


def test_a_run_of_a_table_has_its_baselines(trained_on_series):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    baselines = metrics_of(trained_on_series / "run")["baselines"]
    assert set(baselines) == {"majority class", "logistic regression"}


def test_a_run_of_a_table_is_evaluated(trained_on_series, prints):
    out = prints("evaluate", trained_on_series / "run")
    assert out.startswith("20 series on CPU")
    accuracy = metrics_of(trained_on_series / "run")["test"]["accuracy"]
    assert f"accuracy {accuracy:.4f}" in out


def test_series_of_a_file_are_predicted(trained_on_series, tmp_path, capsys):
    series, labels = series_and_labels(10, seed=4)
    table = write(tmp_path / "new.csv", series, labels)
    assert run("predict", trained_on_series / "run", table) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[0].split()[2] == "w0"
    later = tmp_path / "later.csv"
    later.write_text(table.read_text().replace("second", "t"))
    assert run("predict", trained_on_series / "run", later, "--time", "t") == 0
    assert capsys.readouterr().out.splitlines() == lines
    unlabelled = tmp_path / "unlabelled.csv"
    labelled = table.read_text().splitlines()
    unlabelled.write_text("\n".join(line.rsplit(",", 1)[0] for line in labelled) + "\n")
    out = tmp_path / "answers.csv"
    assert run("predict", trained_on_series / "run", unlabelled, "--out", out) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["predicted"] for row in rows] == [line.split()[0] for line in lines]
    assert run("look", trained_on_series / "run", table, "--out", tmp_path / "r.html") == 0


def test_ragged_arrays(tmp_path, prints):
    series, labels = series_and_labels(60)
    lengths = [len(steps) for steps in series]
    np.savez(tmp_path / "a.npz", values=np.concatenate(series), lengths=lengths, labels=labels)
    prints("train", tmp_path / "a.npz", *TINY, "--out", tmp_path / "run")
    assert nf.load(tmp_path / "run" / "model.safetensors").classes_.tolist() == ["down", "up"]
    assert prints("predict", tmp_path / "run", tmp_path / "a.npz").count("\n") == 60


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--text", "x", "--id", "walk"], "--text is given; it is for texts with labels"),
        (["--features", "x"], "--features is given; it is for"),
        (["--id", "walk", "--label", "gait", "--features", "x,z"], "no column 'z'"),
        (["--id", "wlk", "--label", "gait"], "no column 'wlk'"),
        (["--id", "walk"], "Name it with --label COLUMN"),
    ],
)
def test_wrong_calls_are_explained(trained_on_series, tmp_path, fails, words, problem):
    table = trained_on_series / "walks.csv"
    message = fails("train", table, *words, "--quiet", "--out", tmp_path / "run")
    assert problem.partition(";")[0] in message


def test_nothing_to_predict(trained_on_series, fails):
    assert "expected one file" in fails("predict", trained_on_series / "run")


def permuted(table, path, *changes):
    """Write a table's columns in another order, with one more, and without some."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in ("gait", "y", "second", "more", "x", "walk") if name not in changes]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**row, "more": "7"} for row in rows)
    return path


def test_features_are_found_by_name_in_every_file(trained_on_series, tmp_path, prints, fails):
    new = write(tmp_path / "new.csv", *series_and_labels(12, seed=4))
    other = permuted(new, tmp_path / "other.csv")
    run_folder = trained_on_series / "run"
    assert metrics_of(run_folder)["task"]["features"] == ["x", "y"]
    assert prints("predict", run_folder, new) == prints("predict", run_folder, other)
    assert prints("evaluate", run_folder, new) == prints("evaluate", run_folder, other)
    words = ("train", trained_on_series / "walks.csv", *COLUMNS, *TINY, "--validation=0", "--test")
    out = prints(*words, other, "--out", tmp_path / "run")
    expected = prints(*words, new, "--out", tmp_path / "run2")
    assert out.split("\n\n")[0] == expected.split("\n\n")[0]
    without = permuted(new, tmp_path / "without.csv", "y")
    message = fails("predict", run_folder, without)
    assert "has no column 'y'; it has" in message


@pytest.fixture
def nameless_output(tmp_path, capsys):
    """Return what a training on a table with a nameless column prints."""
    table = write(tmp_path / "walks.csv", *series_and_labels(60))
    lines = table.read_text().splitlines()
    table.write_text("\n".join([f",{lines[0]}", *(f"{i},{x}" for i, x in enumerate(lines[1:]))]))
    tiny = [word for word in TINY if word != "--quiet"]
    assert run("train", table, *COLUMNS, *tiny, "--out", tmp_path / "run") == 0
    return capsys.readouterr()


def test_features_are_printed(nameless_output):
    assert "features: , x, y\n" in nameless_output.out


def test_a_feature_without_a_name_is_doubted(nameless_output):
    assert "the column '' is taken for a feature" in nameless_output.err


def test_measuring_what_was_trained_on_is_doubted(trained_on_series, tmp_path, capsys):
    assert run("evaluate", trained_on_series / "run", trained_on_series / "walks.csv") == 0
    assert "72 of 100 series of" in capsys.readouterr().err
    new = write(tmp_path / "new.csv", *series_and_labels(12, seed=4))
    assert run("evaluate", trained_on_series / "run", new) == 0
    assert "trained on" not in capsys.readouterr().err


def test_a_series_without_a_label_is_an_error(tmp_path, fails):
    table = write(tmp_path / "walks.csv", *series_and_labels(20))
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:5], lines[5].rsplit(",", 1)[0] + ", ", *lines[6:]]))
    message = fails("train", table, *COLUMNS, *TINY, "--out", tmp_path / "run")
    assert "line 6 has no 'gait'; expected a label in every row" in message


def test_series_that_the_model_cannot_read_are_refused_before_training(tmp_path, capsys):
    series, labels = series_and_labels(40)
    table = write(tmp_path / "walks.csv", series, labels)
    longer = write(
        tmp_path / "long.csv", [np.repeat(steps, 9, axis=0) for steps in series[:4]], labels[:4]
    )
    folder = tmp_path / "run"
    assert run("train", table, *COLUMNS, *TINY, "--test", longer, "--out", folder) == 2
    assert "steps; expected at most" in capsys.readouterr().err
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_options_of_tables_are_refused_for_an_array(tmp_path, fails):
    np.savez(tmp_path / "a.npz", x=np.ones((4, 3, 1)), labels=np.arange(4) % 2)
    for option in ("--id", "--time", "--features", "--encoding", "--label"):
        message = fails("train", tmp_path / "a.npz", option, "a", "--out", tmp_path / "run")
        assert f"{option} is given; it is for tables, and {tmp_path / 'a.npz'} is none" in message


def write_archive(path, series, labels):
    """Write series and labels as the UCR archive does."""
    names = " ".join(sorted(set(labels)))
    rows = ["@univariate false", f"@classLabel true {names}", "@data"]
    for steps, label in zip(series, labels, strict=True):
        channels = [",".join(map(str, channel)) for channel in steps.T]
        rows.append(":".join([*channels, label]))
    path.write_text("\n".join(rows))


@pytest.fixture(scope="session")
def trained_on_archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    series, labels = series_and_labels(60)
    write_archive(folder / "train.ts", series[:40], labels[:40])
    write_archive(folder / "test.ts", series[40:], labels[40:])
    test, out = folder / "test.ts", folder / "run"
    assert run("train", folder / "train.ts", "--test", test, *TINY, "--out", out) == 0
    return folder


def test_a_file_of_the_archive_is_learned(trained_on_archive):
    metrics = metrics_of(trained_on_archive / "run")
    assert metrics["samples"]["test"] == 20
    assert metrics["test"]["accuracy"] > 0.8


def test_a_file_of_the_archive_is_predicted(trained_on_archive, prints):
    out = prints("predict", trained_on_archive / "run", trained_on_archive / "test.ts")
    assert len(out.splitlines()) == 20


def test_a_column_is_refused_for_a_file_of_the_archive(trained_on_archive, capsys):
    file = trained_on_archive / "test.ts"
    assert run("evaluate", trained_on_archive / "run", file, "--label", "gait") != 0
    assert f"--label is given, and {file} is no table" in capsys.readouterr().err
