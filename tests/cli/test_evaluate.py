"""npformer evaluate: it measures the same figures as the training, and explains mistakes."""

import pytest

import npformer as nf
from tests.cli.conftest import metrics_of


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
def test_it_measures_the_same_as_training(trained, prints, words, split):
    file, *options = words
    out = prints("evaluate", trained / file, *options)
    found = metrics_of(trained)["splits"][split]
    assert f"digits, {split} split, 360 labels, on CPU (" in out
    assert f"accuracy {found['test_accuracy']:.4f}, loss {found['test_loss']:.4f} nats" in out
    assert "trained on" not in out


def test_it_prints_the_accuracy_of_each_class(trained, prints):
    rows = [line.split() for line in prints("evaluate", trained).splitlines()[-10:]]
    assert [int(row[0]) for row in rows] == list(range(10))
    assert sum(int(labels) for _, labels, *_ in rows) == 360
    hits = sum(int(labels) * float(recall) for _, labels, _, recall, _ in rows)
    accuracy = metrics_of(trained)["splits"]["stratified"]["test_accuracy"]
    assert hits / 360 == pytest.approx(accuracy, abs=1e-3)


def test_it_warns_about_a_split_that_may_have_been_trained_on(trained, prints):
    out = prints("evaluate", trained / "model.safetensors", "--split", "ordered")
    assert "trained on the stratified split and may have seen" in out


@pytest.mark.parametrize("split", ["both", "nope"])
def test_an_unknown_split_is_refused(trained, fails, split):
    line = fails("evaluate", trained, "--split", split)
    assert f"--split of task digits is {split!r}; expected one of 'stratified', 'ordered'" in line


def test_a_model_that_is_not_a_classifier_is_refused(tmp_path, small_config, fails):
    nf.save(nf.Encoder(small_config()), tmp_path / "encoder.safetensors")
    line = fails("evaluate", tmp_path / "encoder.safetensors")
    assert "holds a model of the class Encoder; expected one" in line
