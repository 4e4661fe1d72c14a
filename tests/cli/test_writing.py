"""npformer train, generate, predict, evaluate and look with a text, and with pairs of texts."""

import csv
import json

import numpy as np
import pytest

import npformer as nf
from npformer.cli.options import task_or_file
from npformer.cli.program import make_parser
from npformer.data.pairs import pairs
from npformer.engine.team import Team
from npformer.tasks.sources.recipes import OPTIONS_OF, usual_options
from tests.cli.conftest import metrics_of, names, run

TINY = ["--quiet", "--epochs=3", "--d-model=16", "--heads=2", "--d-ff=16", "--layers=1"]
FILES = {"model.safetensors", "history.json", "metrics.json", "run.json"}
TEXT = "the cat sat on the mat, and the dog lay on the rug.\n" * 60


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    file = tmp_path_factory.mktemp("book") / "book.txt"
    file.write_text(TEXT, "utf-8")
    return file


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["sum", "answer"])
        writer.writerows(zip(*pairs("add", 300), strict=True))
    return file


@pytest.fixture(scope="session")
def writer(book, tmp_path_factory):
    folder = tmp_path_factory.mktemp("writer") / "run"
    assert run("train", book, *TINY, "--lr=.01", "--max-len=32", "--out", folder) == 0
    return folder


@pytest.fixture(scope="session")
def translator(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator") / "run"
    assert run("train", table, "--source", "sum", "--target", "answer", *TINY, "--out", folder) == 0
    return folder


def test_a_text_is_measured_beside_counts(book, writer, tmp_path, prints):
    assert names(writer) - {"checkpoints", ".lock", "curves.png"} == FILES
    metrics = metrics_of(writer)
    assert metrics["kind"] == "text"
    n = len(TEXT)
    test, validation = round(n * 0.1), round(round(n * 0.9) * 0.1)
    sizes = {"train": n - test - validation, "validation": validation, "test": test}
    assert metrics["samples"] == sizes
    assert set(metrics["baselines"]) == {f"n-grams of order {order}" for order in (1, 2, 5)}
    assert metrics["baselines"]["n-grams of order 5"] < metrics["test"]["nats"]
    out = prints("train", book, *TINY, "--max-len=32", "--epochs=1", "--out", tmp_path / "r")
    assert "Counting is better here, by" in out
    again = "generate", tmp_path / "r", "--temperature", 0.8
    assert f"npformer {' '.join(map(str, again))}\n\n{prints(*again)}" in out
    assert out.endswith(f"npformer generate {tmp_path / 'r'} '{TEXT[:30]}'\n")
    assert f"this model                {metrics['test']['nats']:.4f}"[:10] in out


def test_what_is_measured_is_what_is_saved(writer, prints):
    nats = metrics_of(writer)["test"]["nats"]
    assert f"{nats:.4f}" in prints("evaluate", writer)
    loaded = nf.load(writer / "model.safetensors")
    test = TEXT[-round(len(TEXT) * 0.1) :]
    assert loaded.evaluate(test).nats == pytest.approx(nats, abs=1e-6)


def test_a_model_writes_as_in_python(writer, prints, capsys):
    loaded = nf.load(writer / "model.safetensors")
    out = prints("generate", writer, "the c", "--tokens", 20, "--temperature", 0)
    assert out == "the c" + loaded.generate("the c", 20, temperature=0) + "\n"
    out = prints("generate", writer, "--tokens", 20, "--seed", 3, "--top-k", 4, "--top-p", 0.9)
    assert out == loaded.generate("\n", 20, seed=3, top_k=4, top_p=0.9) + "\n"
    assert run("generate", writer, "über", "--tokens", 2) == 0
    assert "the model was not trained on 'ü'" in capsys.readouterr().err


def test_a_text_is_looked_at(writer, tmp_path, prints):
    out = prints("look", writer, "--out", tmp_path / "r.html", "--samples", 1)
    page = (tmp_path / "r.html").read_text("utf-8")
    assert out.strip() == str(tmp_path / "r.html")
    assert page.count("<svg") == 2  # a layer of two heads
    assert "<text" in page


def test_pairs_are_measured(translator, prints):
    assert names(translator) - {"checkpoints", ".lock", "curves.png"} == FILES | {
        "drawn.safetensors"
    }
    metrics = metrics_of(translator)
    assert metrics["samples"] == {"train": 240, "validation": 0, "test": 60}
    assert metrics["test"]["sources"] == 60
    out = prints("evaluate", translator)
    assert f"{metrics['test']['exact']:.4f} exact matches" in out
    assert "worst: edits, source, target, written" in out


def test_pairs_are_translated(translator, table, tmp_path, prints):
    loaded = nf.load(translator / "model.safetensors")
    assert prints("predict", translator, "1+2") == loaded.translate(["1+2"])[0] + "\n"
    two = prints("predict", translator, "1+2", "20+3", "--beams", 2).splitlines()
    sources = ["1+2", "20+3"]
    targets = loaded.translate(["1+2", "20+3"], beams=2)
    pairs = zip(sources, targets, strict=True)
    assert two == [f"{source:<4}  {target}".rstrip() for source, target in pairs]
    out = tmp_path / "answers.csv"
    assert "300 rows" in prints("predict", translator, table, "--out", out)
    with out.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert list(rows[0]) == ["sum", "answer", "predicted"]
    assert [row["predicted"] for row in rows] == loaded.translate([row["sum"] for row in rows])


def test_the_three_attentions_of_a_translation(translator, tmp_path, prints):
    prints("look", translator, "--out", tmp_path / "r.html", "--samples", "0,2")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.count("<svg") == 2 * 3 * 2  # samples, attentions, heads
    for words in ("source from source", "target from source", "target from earlier target"):
        assert page.count(words) == 2


def test_a_stopped_training_goes_on_to_the_same_weights(book, writer, tmp_path, monkeypatch):
    step = Team.step
    steps = []

    def stops(self, *arguments, **more):
        steps.append(None)
        if len(steps) == 8:
            raise KeyboardInterrupt
        return step(self, *arguments, **more)

    words = ("train", book, *TINY, "--lr=.01", "--max-len=32", "--out", tmp_path / "run")
    monkeypatch.setattr(Team, "step", stops)
    assert run(*words) == 130
    monkeypatch.undo()
    assert run(*words, "--resume") == 0
    uninterrupted, again = (
        nf.load(folder / "model.safetensors") for folder in (writer, tmp_path / "run")
    )
    for name, value in uninterrupted.model.parameters().items():
        np.testing.assert_array_equal(again.model.parameters()[name], value)


def test_words_for_what_comes_with_the_package(tmp_path):
    for word, end in (("shakespeare", ".txt.gz"), ("pronunciations", ".csv.gz")):
        assert task_or_file(word).endswith(word + end)
    assert task_or_file("sort") == "sort"
    plays = task_or_file("shakespeare")
    assert usual_options(plays, ["attention"])["positions"] == "rotary"
    for_both = usual_options(plays, ["attention", "state_space"])
    assert {"ffn", "positions"} - for_both.keys() == {"positions"}
    assert usual_options(str(tmp_path / "shakespeare.txt.gz"), ["attention"]) == {}


@pytest.mark.slow
def test_the_plays_have_settings_of_their_own(tmp_path):
    """And the counts that a model of them should beat, as docs/writing.md states them."""
    status = run(
        "train",
        "shakespeare",
        *TINY,
        "--max-len=16",
        "--batch-size=512",
        "--epochs=1",
        "--mixer=attention",
        "--out",
        tmp_path,
    )
    assert status == 0
    begun = json.loads((tmp_path / "run.json").read_text())["options"]
    options = vars(make_parser().parse_args(["train", "shakespeare"]))
    assert OPTIONS_OF["shakespeare"].keys() <= begun.keys() & options.keys()
    metrics = metrics_of(tmp_path)
    config = metrics["config"]
    assert [config[n] for n in ("norm_kind", "positions", "ffn")] == ["rms", "rotary", "gated"]
    assert metrics["baselines"]["n-grams of order 5"] == pytest.approx(1.669, abs=5e-4)
    assert run("train", "shakespeare", "--quiet", "--resume", "--epochs=2", "--out", tmp_path) == 0


def test_a_generated_task(tmp_path, prints, monkeypatch):
    monkeypatch.setattr("npformer.tasks.sources.file_task.GENERATED", 300)
    out = prints("train", "reversal", *TINY, "--epochs=1", "--test=.1", "--out", tmp_path / "run")
    assert "30 test sources" in out
    assert "exact matches" in prints("evaluate", tmp_path / "run")
    notes = json.loads((tmp_path / "run" / "metrics.json").read_text())["task"]
    assert notes["file"] == "reversal"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "BOOK", "--text", "a"), "--text is given; it is for texts with labels"),
        (("train", "BOOK", "--pooling", "cls"), "--pooling is given; it is for texts with labels"),
        (("train", "TABLE", "--source", "sum"), "which column of"),
        (("train", "TABLE", "--source", "sum", "--target", "sum"), "for the sources and for the"),
        (("train", "TABLE", "--source", "sum", "--target", "answer", "--id", "x"), "--"),
        (("train", "BOOK", "--tokenizer", "wordpiece"), "tokenizer is 'wordpiece'"),
        (("train", "missing.txt"), "missing.txt does not exist"),
        (("generate", "TRANSLATOR"), "expected a TextWriter"),
        (("generate", "WRITER", ""), "prompt is empty"),
        (("generate", "WRITER", "a", "--tokens", "0"), "--tokens is 0"),
        (("predict", "WRITER", "a"), "npformer generate"),
        (("predict", "TRANSLATOR"), "there is nothing to predict"),
        (("predict", "TRANSLATOR", "1+2", "--probabilities"), "--probabilities is given"),
        (("predict", "TRANSLATOR", "1" * 99), "has 100 tokens"),
    ],
)
def test_mistakes_are_said(book, table, writer, translator, tmp_path, fails, words, said):
    places = {"BOOK": book, "TABLE": table, "WRITER": writer, "TRANSLATOR": translator}
    arguments = [places.get(word, word) for word in words]
    more = ["--out", tmp_path / "run"] if words[0] == "train" else []
    assert said in fails(*arguments, *more)


def test_the_vocabulary_of_a_text_may_be_smaller(book, tmp_path):
    status = run(
        "train",
        book,
        *TINY,
        "--tokenizer",
        "word",
        "--vocab-size",
        25,
        "--max-len=8",
        "--out",
        tmp_path,
    )
    assert status == 0
    assert nf.load(tmp_path / "model.safetensors").model.vocab_size == 25


def test_a_text_that_cannot_be_measured_is_refused_before_training(book, table, tmp_path, capsys):
    (tmp_path / "short.txt").write_text("t")
    short = tmp_path / "short.txt"
    assert run("train", book, *TINY, "--test", short, "--out", tmp_path / "run") == 2
    assert "short.txt has 1 tokens; expected at least 2" in capsys.readouterr().err
    assert not (tmp_path / "run" / "model.safetensors").exists()
    (tmp_path / "long.csv").write_text(f"sum,answer\n{'1+1 ' * 99},2\n")
    training = ["train", table, "--source=sum", "--target=answer", *TINY]
    training += ["--test", tmp_path / "long.csv", "--out", tmp_path / "run2"]
    assert run(*training) == 2
    assert "tokens, the end token included; expected at most" in capsys.readouterr().err
    assert not (tmp_path / "run2" / "model.safetensors").exists()
