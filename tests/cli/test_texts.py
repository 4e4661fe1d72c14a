"""npformer train, predict, evaluate and look with a file of texts."""

import csv
import io
import json
import os
import re
import signal
import sys

import numpy as np
import pytest

import npformer as nf
from npformer.cli import train_file
from npformer.cli.common import STATUS
from npformer.engine.team import Team
from tests.cli.conftest import metrics_of, names, run
from tests.needs import NEEDS
from tests.tasks.estimators.conftest import texts_and_labels

TINY = ["--quiet", "--validation=.1", "--epochs=4", "--d-model=16", "--heads=2", "--d-ff=16"]
TINY += ["--lr=.03", "--members=1", "--ngrams=0", "--dropout=0", "--token-dropout=0"]
FILES = {
    "model.safetensors",
    "history.json",
    "metrics.json",
    "report.html",
    "run.json",
    "drawn.safetensors",
}


def write(path, texts, labels, text="text", label="label"):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", text, label])
        writer.writerows(zip(range(len(texts)), texts, labels, strict=True))
    return path


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    texts, labels = texts_and_labels(200)
    folder = tmp_path_factory.mktemp("texts")
    unique = [f"{text} no{i}" for i, text in enumerate(texts)]
    return write(folder / "reviews.csv", unique, labels, "review", "stars")


@pytest.fixture(scope="session")
def trained_on_texts(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    assert run("train", table, "--text", "review", "--label", "stars", *TINY, "--out", folder) == 0
    return folder


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_standard_input_is_read_as_a_file_is(table, trained_on_texts, prints, monkeypatch, mark):
    for words in (["predict", trained_on_texts], ["evaluate", trained_on_texts]):
        expected = prints(*words, table)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(mark + table.read_bytes())))
        assert prints(*words, "-") == expected.replace(str(table), "standard input")


def test_standard_input_comes_once(table, trained_on_texts, fails, prints, monkeypatch, tmp_path):
    columns = "--text", "review", "--label", "stars", *TINY
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table.read_bytes())))
    twice = "'-', standard input, is given twice; expected one use of it"
    for option in ("--test", "--validation"):
        assert twice in fails("train", "-", *columns, option, "-", "--out", tmp_path / "run")
    assert "- is a table, and there is more" in fails("predict", trained_on_texts, "-", "a text")
    for words in (("train", table, *columns, "--out", "-"), ("look", "-"), ("generate", "-")):
        with pytest.raises(SystemExit):
            fails(*words)
    assert not (tmp_path / "run").exists()
    prints("train", "-", *columns, "--out", tmp_path / "run")
    message = "the model was trained on standard input, of which nothing is kept"
    assert message in fails("evaluate", tmp_path / "run")  # though there is something to read
    prints("train", "-", *columns, "--out", tmp_path / "run", "--resume")


def test_a_run_of_standard_input_is_measured_on_files(table, tmp_path, fails, prints, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table.read_bytes())))
    prints("train", "-", "--text", "review", "--label", "stars", *TINY, "--out", tmp_path)
    for command in (["evaluate"], ["look", "--overwrite"]):
        line = fails(*command, tmp_path)
        assert "on standard input, of which nothing is kept; expected a" in line


def test_a_run_has_its_files(trained_on_texts):
    assert names(trained_on_texts) - {"checkpoints", ".lock", "curves.png"} == FILES


def test_metrics_tell_how_the_texts_were_split(trained_on_texts):
    samples = metrics_of(trained_on_texts)["samples"]
    assert samples == {"train": 144, "test": 40, "validation": 16}


def test_metrics_compare_with_a_baseline(trained_on_texts):
    metrics = metrics_of(trained_on_texts)
    assert metrics["test"]["accuracy"] > 0.9
    assert metrics["baselines"]["majority class"]["accuracy"] == 0.5


def test_a_run_has_a_history_for_each_member(trained_on_texts):
    (history,) = json.loads((trained_on_texts / "history.json").read_text())
    assert len(history["train_loss"]) == 4


def test_a_run_has_a_report(trained_on_texts):
    report = (trained_on_texts / "report.html").read_text("utf-8")
    assert "<h1>reviews.csv: 40 test texts</h1>" in report
    assert "majority class is the baseline" in report
    assert ">precision<" in report
    assert re.search(r'<p class="text">[a-z ]* no\d+</p>', report)


def test_all_sections_of_a_report_are_of_the_same_samples(trained_on_texts):
    report = (trained_on_texts / "report.html").read_text("utf-8")
    accuracy = f"{metrics_of(trained_on_texts)['test']['accuracy']:.4f}"
    assert report.count(f">{accuracy}</td>") >= 2  # of "this model", and of the model below it
    assert "are over all 40 samples" in report


def test_the_model_is_the_one_that_was_measured(trained_on_texts, prints):
    classifier = nf.load(trained_on_texts / "model.safetensors")
    assert classifier.classes_.tolist() == ["food", "weather"]
    test = metrics_of(trained_on_texts)["test"]
    assert f"accuracy {test['accuracy']:.4f}" in prints("evaluate", trained_on_texts)


def test_what_it_prints(table, tmp_path, prints):
    out = prints(
        "train", table, "--text", "review", "--label", "stars", *TINY[1:], "--out", tmp_path / "run"
    )
    split = "144 texts to train on, 16 for validation, 40 for testing; split by class"
    assert f"reviews.csv: {split}" in out
    for words in ("macro F1", "label / predicted", "majority class", "TF-IDF", "npformer predict"):
        assert words in out


def test_sentences_are_predicted(trained_on_texts, prints):
    lines = prints("predict", trained_on_texts, "soup and bread", "snow, wind").splitlines()
    assert [line.split()[0] for line in lines] == ["food", "weather"]


def test_a_table_is_predicted(trained_on_texts, table, tmp_path):
    out = tmp_path / "answers.csv"
    assert run("predict", trained_on_texts, table, "--out", out, "--probabilities") == 0
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert ",".join(rows[0]) == "id,review,stars,predicted,probability,p(food),p(weather)"
    assert len(rows) == 200
    assert np.mean([row["predicted"] == row["stars"] for row in rows]) > 0.9
    sums = [float(row["p(food)"]) + float(row["p(weather)"]) for row in rows]
    np.testing.assert_allclose(sums, 1.0, atol=2e-6)


def test_a_text_cannot_control_the_terminal(trained_on_texts, capsys, tmp_path):
    """Nor can the names of classes in a model's file, or what an error quotes."""
    model = nf.load(trained_on_texts / "model.safetensors")
    model.take(model.models_, ["\x1b[2J", "\u202eb"])
    nf.save(model, tmp_path / "model.safetensors")
    for words, status in (
        ((trained_on_texts, "soup\x1b[2J\nbread"), 0),
        ((tmp_path / "model.safetensors", "soup"), 0),
        ((tmp_path / "a\x1b[2J", "soup"), 2),
    ):
        assert run("predict", *words) == status
        streams = capsys.readouterr()
        printed = streams.err if status else streams.out
        assert printed.replace("\n", "").isprintable()
        assert printed.count("\n") == 1


@pytest.fixture
def other_table(tmp_path):
    """Return a table with other names of columns."""
    texts, labels = texts_and_labels(20, seed=3)
    return write(tmp_path / "other.csv", texts, labels, "review", "kind")


def test_other_texts_are_evaluated(trained_on_texts, other_table, prints):
    out = prints("evaluate", trained_on_texts, other_table, "--label", "kind")
    assert out.startswith("20 texts on CPU")


def test_rows_without_a_label_can_be_skipped(trained_on_texts, other_table, tmp_path, prints):
    texts, labels = texts_and_labels(20, seed=3)
    gap = write(tmp_path / "gap.csv", [*texts, "c"], [*labels, ""], "review", "kind")
    out = prints("evaluate", trained_on_texts, gap, "--label", "kind", "--skip-empty")
    assert out == prints("evaluate", trained_on_texts, other_table, "--label", "kind")


def test_rows_that_end_before_their_label_can_be_skipped(
    trained_on_texts, other_table, tmp_path, prints
):
    (tmp_path / "gap.csv").write_bytes(other_table.read_bytes() + b"a text\n")
    out = prints(
        "evaluate", trained_on_texts, tmp_path / "gap.csv", "--label", "kind", "--skip-empty"
    )
    assert out == prints("evaluate", trained_on_texts, other_table, "--label", "kind")


def test_faults_of_a_table_are_printed_line_by_line(tmp_path, capsys):
    table = tmp_path / "a.tsv"
    table.write_text('text\tlabel\n"so "awful" it was"\tbad\nso warm\n')
    assert run("train", table) == 2
    words = capsys.readouterr().err
    assert '\n    "so ""awful"" it was"\tbad\n  line 3 has 1 field and the heading 2' in words


@pytest.mark.parametrize("command", [("look",), ("predict", "--explain")], ids=" ".join)
def test_a_text_is_explained_on_the_screen(trained_on_texts, prints, command):
    name, *flags = command
    text = "the soup was warm"
    out = prints(name, trained_on_texts, *flags, text)
    assert out.strip() == str(nf.load(trained_on_texts / "model.safetensors").explain(text))


def test_several_texts_are_explained(trained_on_texts, prints):
    out = prints("predict", trained_on_texts, "the soup was warm", "rain again", "--explain")
    assert "\n\nrain again\n" in out


def test_an_explanation_is_not_written(trained_on_texts, fails, tmp_path):
    words = fails("predict", trained_on_texts, "a text", "--explain", "--out", tmp_path / "a.csv")
    assert "--out is given and an explanation is printed; expected none" in words


def test_texts_may_follow_an_option(trained_on_texts, prints):
    texts = ["the soup was warm", "rain again"]
    before = prints("predict", trained_on_texts, *texts, "--probabilities")
    assert prints("predict", trained_on_texts, "--probabilities", *texts) == before
    assert prints("predict", trained_on_texts, texts[0], "--probabilities", texts[1]) == before


def test_a_misspelt_file_is_no_text_to_explain(trained_on_texts, fails, tmp_path):
    out = tmp_path / "report.html"
    assert "reviews.cvs" in fails("look", trained_on_texts, "reviews.cvs", "--out", out)


def test_an_interrupted_training_leaves_its_curves(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason=NEEDS["matplotlib"])

    def interrupt(callback, state):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(train_file._CheckTest, "after_epoch", interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    table = write(tmp_path / "a.csv", *texts_and_labels(40))
    status = run("train", table, *TINY, "--epochs", "3", "--out", tmp_path / "run")
    signal.signal(signal.SIGINT, before)
    assert status == STATUS["interrupted"]
    assert "so far: " in capsys.readouterr().out
    assert (tmp_path / "run" / "curves.png").is_file()


def test_other_texts_are_looked_at(trained_on_texts, other_table, tmp_path, prints):
    report = tmp_path / "r.html"
    out = prints("look", trained_on_texts, other_table, "--label", "kind", "--out", report)
    assert out.strip() == str(report)
    assert report.read_text("utf-8").count("<h1") == 1
    assert "majority class" not in report.read_text("utf-8")  # it has no such row


def test_a_report_is_written_again(trained_on_texts, prints):
    out = prints("look", trained_on_texts, "--overwrite")
    assert out.strip() == str(trained_on_texts / "report.html")


@pytest.fixture
def untested(tmp_path, prints):
    """Train with a file to validate on, and no test; return the folder and what was printed."""
    table = write(tmp_path / "a.csv", *texts_and_labels(60))
    held_out = write(tmp_path / "b.csv", *texts_and_labels(20, seed=5))
    folder = tmp_path / "run"
    printed = prints(
        "train",
        table,
        *TINY[1:],
        "--keep-repeated",
        "--validation",
        held_out,
        "--test",
        "0",
        "--out",
        folder,
    )
    return folder, printed


def test_a_file_may_be_validated_on(untested):
    folder, _ = untested
    assert metrics_of(folder)["samples"] == {"train": 60, "test": 0, "validation": 20}


def test_a_test_may_be_left_out(untested):
    folder, _ = untested
    assert "test" not in metrics_of(folder)
    assert run("evaluate", folder) == 2


def test_without_a_test_it_asks_for_a_file_to_look_at(untested):
    folder, out = untested
    assert f"npformer look {folder} FILE\n" in out


def test_repeated_texts_are_left_out(tmp_path, prints):
    texts, labels = texts_and_labels(40)
    texts = [f"{text} no{i}" for i, text in enumerate(texts)]
    table = write(tmp_path / "a.csv", texts + texts[:10], labels + labels[:10])
    out = prints("train", table, *TINY[1:], "--out", tmp_path / "run")
    assert "10 that repeat an earlier one are left out" in out
    assert sum(metrics_of(tmp_path / "run")["samples"].values()) == 40


def test_empty_texts_are_left_out_if_asked_for(tmp_path, capsys):
    texts, labels = texts_and_labels(40)
    table = write(tmp_path / "a.csv", [*texts, "", " "], [*labels, "food", "food"])
    status = run(
        "train", table, *TINY, "--skip-empty", "--keep-repeated", "--out", tmp_path / "run"
    )
    assert status == 0
    warning = capsys.readouterr().err
    assert f"2 of 42 rows of {table} have no text or no label: they are left out" in warning
    assert sum(metrics_of(tmp_path / "run")["samples"].values()) == 40


def test_texts_with_several_labels_are_doubted(tmp_path, capsys):
    texts, labels = texts_and_labels(40)
    texts = [f"{text} no{i}" for i, text in enumerate(texts)]
    other = "weather" if labels[3] == "food" else "food"
    table = write(tmp_path / "a.csv", [*texts, texts[3]], [*labels, other])
    assert run("train", table, *TINY, "--out", tmp_path / "run") == 0
    warning = capsys.readouterr().err
    assert "1 of 40 different texts have more than one label, such as" in warning
    assert f"'{texts[3]}': 'food' and 'weather'. No model can be right for all" in warning


def test_what_is_most_likely_a_mistake_is_doubted(table, trained_on_texts, tmp_path, capsys):
    assert run("evaluate", trained_on_texts, table) == 0
    assert "144 of 200 texts of" in capsys.readouterr().err
    texts, labels = texts_and_labels(40)
    unique = [f"{text} no{i}" for i, text in enumerate(texts)]
    copies = write(tmp_path / "copies.csv", unique[:6], labels[:6])
    labels[0] = f" {labels[0]} "  # is stripped
    labels[1] = labels[1].upper()
    labels[2] = labels[1].upper()
    mine = write(tmp_path / "a.csv", unique, labels)
    status = run(
        "train", mine, *TINY, "--test", copies, "--validation=0", "--out", tmp_path / "run"
    )
    assert status == 0
    warning = capsys.readouterr().err
    assert "6 of 6 texts of" in warning
    assert "differ only in case: one class?" in warning
    assert len(metrics_of(tmp_path / "run")["classes"]) == 3


@pytest.fixture
def ensemble(tmp_path, prints):
    """Train two models with other tokens and mixers; return the folder and what was printed."""
    pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
    table = write(tmp_path / "a.csv", *texts_and_labels(80))
    words = ["--members", 2, "--tokenizer", "bpe", "--vocab-size", 300]
    words += ["--mixer", "fourier,attention", "--layers", 2, "--out", tmp_path / "run"]
    return tmp_path / "run", prints("train", table, "--keep-repeated", *TINY, *words)


def test_an_ensemble_has_several_models(ensemble):
    folder, out = ensemble
    assert "2 models with different seeds, whose probabilities are averaged" in out
    assert metrics_of(folder)["members"] == 2
    report = (folder / "report.html").read_text("utf-8")
    assert "This model is 2 models with different seeds" in report
    assert len(nf.load(folder / "model.safetensors").models_) == 2


def test_each_layer_may_have_another_mixer(ensemble):
    folder, _ = ensemble
    classifier = nf.load(folder / "model.safetensors")
    assert classifier.model.config.mixer == ("fourier", "attention")


def test_the_tokenizer_of_words_can_be_chosen(tmp_path, prints):
    table = write(tmp_path / "a.csv", *texts_and_labels(80))
    prints("train", table, "--keep-repeated", *TINY, "--tokenizer", "word", "--out", tmp_path / "b")


def test_an_interrupted_training_goes_on(table, tmp_path, monkeypatch, prints):
    columns = ("--text", "review", "--label", "stars")
    prints("train", table, *columns, *TINY, "--out", tmp_path / "whole")
    step = Team.step
    calls = []

    def interrupted(self, *arguments, **more):
        calls.append(1)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return step(self, *arguments, **more)

    monkeypatch.setattr(Team, "step", interrupted)
    out = prints("train", table, *columns, *TINY, "--out", tmp_path / "run", status=130)
    assert "interrupted after 1 of 4 epochs. To go on:" in out
    monkeypatch.undo()
    out = prints("train", table, "--out", tmp_path / "run", "--resume")
    assert f"--resume, {tmp_path / 'run'}: the run there goes on" in out
    files = (tmp_path / name / "model.safetensors" for name in ("whole", "run"))
    uninterrupted, gone_on = (nf.load(file).model.parameters().flat for file in files)
    np.testing.assert_array_equal(uninterrupted, gone_on)


def test_where_there_is_no_run_resume_says_that_one_begins(table, tmp_path, prints):
    assert f"--resume, {tmp_path}: no run is there, so one begins" in prints(
        "train",
        table,
        "--text",
        "review",
        "--label",
        "stars",
        "--epochs",
        1,
        "--out",
        tmp_path,
        "--resume",
    )


def test_a_file_that_changed_has_no_test_part(tmp_path, prints, fails, capsys):
    table = write(tmp_path / "a.csv", *texts_and_labels(40))
    prints("train", table, "--keep-repeated", *TINY, "--out", tmp_path / "run")
    prints("evaluate", tmp_path / "run")
    write(table, *texts_and_labels(44))
    assert "has changed since the training" in fails("evaluate", tmp_path / "run")
    assert run("evaluate", tmp_path / "run", table) == 0
    untold = "a.csv were also trained on cannot be told"
    assert untold in capsys.readouterr().err
    other = table.rename(tmp_path / "b.csv")
    assert "is missing" in fails("evaluate", tmp_path / "run")
    assert run("evaluate", tmp_path / "run", other) == 0
    assert untold.replace("a.csv", "b.csv") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("none.csv", "none.csv does not exist"),
        ("a.csv", "which column of a.csv holds the texts? It has 'id', 'words', 'kind'"),
        ("a.csv --text word", "no column 'word'; it has 'id', 'words', 'kind'."),
        ("a.csv --text words", "Name it with --label COLUMN"),
        ("a.csv --text=words --label=id", "the column 'id' has 20 different labels"),
        ("a.csv --text=words --label=kind --test=1", "validate on is 1"),
        ("a.csv --text=words --label=kind --test=b.csv", "b.csv does not exist"),
        (
            "a.csv --text=words --label=kind --tokenizer=letters",
            "tokenizer is 'letters'; expected one of",
        ),
        ("a.csv --text=words --label=kind --epochs=0", "epochs is 0"),
        ("one.csv", "only the class 'a'; expected at least 2 classes"),
        ("empty.csv", "2 of 4 texts are empty, the first is in line 2"),
        ("gap.jsonl", "1 of 2 labels are empty, the first is in line 2; expected words"),
        ("digits --text words", "--text is for files"),
        ("latin.csv", "latin.csv is not in utf-8"),
        ("a.csv --text=words --label=words", "for the texts and for the labels"),
        ("ids.csv", "the column 'label' has 20 different labels for 20 samples"),
        ("bare.csv", "The first line must hold the column names"),
    ],
)
def test_wrong_files_are_explained(tmp_path, monkeypatch, fails, words, problem):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", *texts_and_labels(20), "words", "kind")
    write(tmp_path / "one.csv", ["x", "y"], ["a", "a"])
    write(tmp_path / "empty.csv", ["", " ", "x", "y"], list("abab"))
    write(tmp_path / "ids.csv", texts_and_labels(20)[0], [f"no{i}" for i in range(20)])
    (tmp_path / "bare.csv").write_text("soup,food\nrain,weather\n")
    (tmp_path / "gap.jsonl").write_text('{"text": "a", "label": "x"}\n{"text": "b"}\n')
    (tmp_path / "latin.csv").write_bytes("text,label\ncafé,a\nthé,b\n".encode("latin-1"))
    assert problem in fails("train", *words.split(), "--quiet", "--out", "run")
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("predict", "there is nothing to predict; expected texts in quotes, or one table"),
        ("predict none.csv", "none.csv does not exist; expected a file"),
        ("predict a --mask m.npy", "--mask is given and the model takes texts"),
        ("predict a --out x.npy", "expected the name of a file that ends in .csv"),
        ("predict a --out none/x.csv", "--out none/x.csv is in a folder that does not exist"),
        ("evaluate a.csv", "labels have 'sport' (2 of 2), which training never saw"),
        ("evaluate gap.csv", "1 of 2 labels are empty, the first is in line 3"),
        ("predict notes.rtf", "is the name of a file or folder, not a table"),
        ("predict .", "is the name of a file or folder, not a table"),
        ("predict not_there.xlsx", "In Excel: save as CSV UTF-8"),
        ("predict a.csv text", "expected one table, or texts, not both"),
        ("look --overwrite --compare b", "--compare is for models of npformer's tasks"),
    ],
)
def test_wrong_calls_of_a_trained_model(
    trained_on_texts, tmp_path, monkeypatch, fails, words, problem
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", ["a", "b"], ["sport", "sport"], "review", "stars")
    write(tmp_path / "gap.csv", ["a", "b"], ["food", ""], "review", "stars")
    (tmp_path / "notes.rtf").write_text("soup")
    command, *rest = words.split()
    assert problem in fails(command, trained_on_texts, *rest)


def test_an_empty_text_gets_no_label(trained_on_texts, tmp_path, capsys):
    write(tmp_path / "a.csv", ["soup", " ", "rain"], ["", "", ""], "review", "other")
    assert run("predict", trained_on_texts, tmp_path / "a.csv", "--out", tmp_path / "b.csv") == 0
    assert "1 of 3 texts are empty: no label" in capsys.readouterr().err
    with (tmp_path / "b.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for column in ("predicted", "probability"):
        assert [row[column] != "" for row in rows] == [True, False, True]
    assert run("predict", trained_on_texts, "") == 2
    assert "the text is empty; expected words" in capsys.readouterr().err


def test_texts_without_a_known_word_are_said(trained_on_texts, capsys):
    assert run("predict", trained_on_texts, "soup", "zxqv zzz") == 0
    warning = capsys.readouterr().err
    assert "1 of 2 texts have no word that the model knows, the first is 'zxqv zzz'" in warning
    assert run("predict", trained_on_texts, "soup") == 0
    assert "no word that the model knows" not in capsys.readouterr().err


def test_the_file_that_is_read_is_not_written(trained_on_texts, tmp_path, capsys):
    table = write(tmp_path / "a.csv", ["soup"], ["x"], "review", "other")
    before = table.read_text()
    assert run("predict", trained_on_texts, table, "--out", table) == 2
    assert "is the file that is read; expected another name" in capsys.readouterr().err
    assert table.read_text() == before


@pytest.mark.parametrize("words", [["--patience", "3"], ["--metric", "macro_f1"]])
def test_what_needs_validation(table, tmp_path, fails, words):
    few = [word for word in TINY if not word.startswith("--validation")]
    message = fails(
        "train", table, "--text=review", "--label=stars", *few, *words, "--out", tmp_path
    )
    assert "there is no validation; expected some" in message
    assert "--validation 0.1" in message


def test_a_missing_reader_of_parquet_is_named(tmp_path, fails, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    message = fails("train", tmp_path / "a.parquet")
    assert message.startswith("npformer train: ")
    assert "python -m pip install pyarrow" in message


def test_predictions_do_not_overwrite_a_column(trained_on_texts, tmp_path, capsys):
    write(tmp_path / "a.csv", ["soup"], ["x"], "review", "predicted")
    assert run("predict", trained_on_texts, tmp_path / "a.csv", "--out", tmp_path / "b.csv") == 2
    assert "has a column 'predicted'" in capsys.readouterr().err


def test_models_of_tasks_take_no_table(trained, table, fails):
    assert "the model was not trained on a file" in fails("evaluate", trained, table)
    assert "the model was not trained on a file" in fails("look", trained, table)
    assert "expected one file" in fails("predict", trained, "a", "b")


def test_what_cannot_be_measured_is_refused_before_training(tmp_path, fails):
    texts, labels = texts_and_labels(40)
    table = write(tmp_path / "a.csv", [f"{text} no{i}" for i, text in enumerate(texts)], labels)
    for option in ("--test", "--validation"):
        for label, reason in (
            ("sport", "which training never saw"),
            ("Food", "'Food' and 'food' differ only in case. Write it as in the training"),
        ):
            other = write(tmp_path / "b.csv", ["soup", "rain"], [label, "weather"])
            message = fails("train", table, *TINY, option, other, "--out", tmp_path / "run")
            assert f"the labels of {other} have {label!r} (1 of 2)" in message
            assert reason in message
            assert not (tmp_path / "run" / "model.safetensors").exists()


def test_options_of_tables_without_a_table_are_refused(table, trained_on_texts, tmp_path, fails):
    run_folder = trained_on_texts
    for option in (["--text", "a"], ["--encoding", "latin-1"], ["--id", "a"], ["--features", "a"]):
        message = fails("predict", run_folder, "words", *option)
        assert f"{option[0]} is given, and there is no table, for which it is" in message
        for command in (["evaluate"], ["look", "--overwrite"]):
            message = fails(*command, run_folder, *option)
            assert f"{option[0]} is given, and there is no FILE, for which it is" in message
    assert "--skip-empty is given, and" in fails("evaluate", run_folder, "--skip-empty")
    message = fails("evaluate", run_folder, table, "--source", "review")
    assert "--source is given, and the model takes texts with labels; expected none" in message
    new = tmp_path / "a.csv"
    new.write_text("review,p(food)\nsoup,1\n")
    message = fails("predict", run_folder, new, "--probabilities", "--out", tmp_path / "b.csv")
    assert "has a column 'p(food)', which" in message


def test_what_is_wrong_with_a_place_is_said_before_any_work(trained_on_texts, tmp_path, fails):
    nowhere = tmp_path / "none" / "a.html"
    assert "in a folder that does not exist" in fails("look", trained_on_texts, "--out", nowhere)


def as_lines(texts, labels):
    """Return texts with labels in fastText's format."""
    pairs = zip(texts, labels, strict=True)
    return "".join(f"__label__{label} {text}\n" for text, label in pairs)


@pytest.fixture
def standard_input(monkeypatch):
    """Let standard input hold some words."""

    def put(words):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(words.encode())))

    return put


@pytest.fixture(scope="session")
def trained_on_fasttext_lines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    texts, labels = texts_and_labels(200)
    (folder / "reviews.train.txt").write_text(as_lines(texts[:160], labels[:160]))
    (folder / "reviews.valid").write_text(as_lines(texts[160:], labels[160:]))
    train, test, out = folder / "reviews.train.txt", folder / "reviews.valid", folder / "run"
    assert run("train", train, "--test", test, "--keep-repeated", *TINY, "--out", out) == 0
    return folder


def test_labels_of_fasttext_are_learned(trained_on_fasttext_lines):
    classifier = nf.load(trained_on_fasttext_lines / "run" / "model.safetensors")
    assert classifier.classes_.tolist() == ["food", "weather"]
    assert metrics_of(trained_on_fasttext_lines / "run")["test"]["accuracy"] > 0.9


def test_fasttext_s_lines_are_measured(trained_on_fasttext_lines, prints):
    folder = trained_on_fasttext_lines
    out = prints("evaluate", folder / "run", folder / "reviews.valid")
    assert "accuracy" in out


def test_labels_of_fasttext_are_no_words_to_predict_from(trained_on_fasttext_lines, prints):
    folder = trained_on_fasttext_lines
    out = prints("predict", folder / "run", folder / "reviews.valid")
    assert len(out.splitlines()) == 40
    assert "__label__" not in out


@pytest.mark.parametrize(
    "words",
    [
        "the soup was warm\nrain, again\n\n",
        "Good, warm\nBad, cold\n",
        'a "quote that is never closed\nand so on\n',
        "soup\n",
    ],
    ids=["lines", "a comma in each", "an open quotation mark", "one word"],
)
def test_plain_lines_on_standard_input_are_texts(trained_on_texts, prints, standard_input, words):
    standard_input(words)
    out = prints("predict", trained_on_texts, "-")
    expected = [line for line in words.split("\n") if line]
    assert [line.split(maxsplit=2)[2] for line in out.splitlines()] == expected


def test_a_table_on_standard_input_is_no_text(trained_on_texts, fails, standard_input):
    standard_input("comment,site\ngood soup,a\nrain,b\n")
    assert "which column of standard input holds the texts" in fails(
        "predict", trained_on_texts, "-"
    )


def test_the_lines_of_a_file_are_texts_to_predict(trained_on_texts, prints, tmp_path):
    (tmp_path / "new.txt").write_text("the soup was warm\nrain again\n")
    out = prints("predict", trained_on_texts, tmp_path / "new.txt")
    assert [line.split(maxsplit=2)[2] for line in out.splitlines()] == [
        "the soup was warm",
        "rain again",
    ]


def test_a_column_is_refused_for_a_file_with_a_text_a_line(trained_on_texts, fails, tmp_path):
    (tmp_path / "new.txt").write_text("the soup was warm\n")
    message = fails("predict", trained_on_texts, tmp_path / "new.txt", "--text", "review")
    assert "new.txt has a text in each line; expected none" in message
