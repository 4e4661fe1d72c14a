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


def test_a_folder_of_texts_is_learned_and_words_are_shown(pretrained, tmp_path, prints, fails):
    assert names(pretrained) >= {"model.safetensors", "metrics.json", "history.json", "run.json"}
    metrics = metrics_of(pretrained)
    assert metrics["kind"] == "unlabelled"
    assert metrics["samples"] == {"train": 190, "validation": 0, "test": 10}
    assert f"guessed {metrics['test']['accuracy']:.4f}" in prints("evaluate", pretrained)
    assert run("look", pretrained) == 0
    head, *lines = prints("predict", pretrained, "[MASK] and [MASK]").splitlines()[-6:]
    assert head == "[MASK] and [MASK]"
    assert [len(line.split()) for line in lines] == [4] * 5
    table = write(tmp_path / "a.csv", ["the [MASK]", "is [MASK] a"], ["x", "y"])
    prints("predict", pretrained, table, "--out", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text().startswith("id,text,label,predicted,probability\n")
    assert "0 times [MASK]; expected" in fails("predict", pretrained, "the rain")


def test_it_goes_on_and_is_what_few_labels_begin_with(pretrained, tmp_path, prints, fails):
    table = write(tmp_path / "few.csv", TEXTS[:60], LABELS[:60])
    begin = ("--from", pretrained, "--out", tmp_path / "run")
    for wrong in ("--d-model=8", "--tokenizer=bpe", "--mixer=fourier", "--max-len=9"):
        flag = wrong.partition("=")[0]
        assert f"{flag} is given together with pretrained" in fails("train", table, *begin, wrong)
    prints("train", table, *begin, "--quiet", "--epochs=1", "--keep-repeated")
    assert metrics_of(tmp_path / "run")["training"]["layer_decay"] < 1.0
    assert "accuracy" in prints("evaluate", tmp_path / "run")
    assert "pretrained is a TextClassifier" in fails(
        "train", table, "--quiet", "--from", tmp_path / "run", "--out", tmp_path / "other"
    )
    assert "3 of 3" in prints(
        "pretrain", pretrained.parent / "texts", "--out", pretrained, "--resume", "--epochs=3"
    )
    assert "has no column" in fails("pretrain", table, "--text", "words", "--out", tmp_path / "x")
    assert "is no table" in fails("pretrain", pretrained.parent / "texts", "--text", "words")
