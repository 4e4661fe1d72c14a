"""npformer pretrain, and what it wrote: words for gaps, and a beginning for few labels."""

import pytest

from tests.cli.conftest import metrics_of, names, run
from tests.cli.test_texts import write
from tests.tasks.estimators.conftest import texts_and_labels

TEXTS, LABELS = texts_and_labels(200)
TINY = ["--epochs=2", "--d-model=16", "--heads=2", "--d-ff=16", "--layers=1", "--keep-repeated"]


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    (folder / "texts").mkdir()
    for k in range(2):
        lines = "\n\n".join(TEXTS[100 * k :][:100])
        (folder / "texts" / f"{k}.txt").write_text(lines + "\n", "utf-8")
    assert run("pretrain", folder / "texts", *TINY, "--quiet", "--out", folder / "run") == 0
    return folder / "run"


def test_a_run_has_its_files(pretrained):
    assert names(pretrained) >= {"model.safetensors", "metrics.json", "history.json", "run.json"}


def test_a_folder_of_texts_is_split(pretrained):
    metrics = metrics_of(pretrained)
    assert metrics["kind"] == "unlabelled"
    assert metrics["samples"] == {"train": 190, "validation": 0, "test": 10}


def test_a_run_is_evaluated(pretrained, prints):
    accuracy = metrics_of(pretrained)["test"]["accuracy"]
    assert f"guessed {accuracy:.4f}" in prints("evaluate", pretrained)


def test_a_run_is_looked_at(pretrained):
    assert run("look", pretrained) == 0


def test_words_are_predicted_for_gaps(pretrained, prints):
    head, *lines = prints("predict", pretrained, "[MASK] and [MASK]").splitlines()[-6:]
    assert head == "[MASK] and [MASK]"
    assert [len(line.split()) for line in lines] == [4] * 5


def test_words_are_predicted_for_a_table(pretrained, tmp_path, prints):
    table = write(tmp_path / "a.csv", ["the [MASK]", "is [MASK] a"], ["x", "y"])
    prints("predict", pretrained, table, "--out", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text().startswith("id,text,label,predicted,probability\n")


def test_a_text_without_a_gap_is_refused(pretrained, fails):
    assert "0 times [MASK]; expected" in fails("predict", pretrained, "the rain")


@pytest.fixture
def few_labels(tmp_path):
    return write(tmp_path / "few.csv", TEXTS[:60], LABELS[:60])


@pytest.mark.parametrize(
    "word", ["--d-model=8", "--tokenizer=bpe", "--mixer=fourier", "--max-len=9"]
)
def test_settings_of_the_pretraining_cannot_be_changed(
    pretrained, few_labels, tmp_path, fails, word
):
    message = fails("train", few_labels, "--from", pretrained, "--out", tmp_path / "run", word)
    assert f"{word.partition('=')[0]} is given together with pretrained" in message


@pytest.fixture
def tuned(pretrained, few_labels, tmp_path, prints):
    """Return the folder of a run that begins with a pretraining."""
    out = tmp_path / "run"
    prints(
        "train",
        few_labels,
        "--from",
        pretrained,
        "--out",
        out,
        "--quiet",
        "--epochs=1",
        "--keep-repeated",
    )
    return out


def test_few_labels_begin_with_a_pretraining(tuned, prints):
    assert metrics_of(tuned)["training"]["layer_decay"] < 1.0
    assert "accuracy" in prints("evaluate", tuned)


def test_a_classifier_is_no_pretraining(tuned, few_labels, tmp_path, fails):
    line = fails("train", few_labels, "--quiet", "--from", tuned, "--out", tmp_path / "other")
    assert "pretrained is a TextClassifier" in line


def test_a_pretraining_goes_on(pretrained, prints):
    texts = pretrained.parent / "texts"
    assert "3 of 3" in prints("pretrain", texts, "--out", pretrained, "--resume", "--epochs=3")


def test_a_table_needs_the_column_of_texts(few_labels, tmp_path, fails):
    line = fails("pretrain", few_labels, "--text", "words", "--out", tmp_path / "x")
    assert "has no column" in line


def test_a_folder_of_texts_has_no_columns(pretrained, fails):
    message = fails("pretrain", pretrained.parent / "texts", "--text", "words")
    assert "is no table" in message
