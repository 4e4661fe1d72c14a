"""TextClassifier with pretrained weights and with frozen parameters."""

import numpy as np
import pytest

import npformer as nf
from tests.cli.conftest import metrics_of
from tests.cli.test_texts import write
from tests.interop.folders import tiny
from tests.needs import NEEDS
from tests.tasks.estimators.conftest import texts_and_labels

pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
BRIEF = {"epochs": 2, "progress": False, "workers": 1, "lr": 1e-3}


@pytest.fixture
def folder(tmp_path):
    tiny(tmp_path / "bert")
    return tmp_path / "bert"


def test_it_begins_with_the_weights_of_the_folder(folder, tmp_path):
    texts, labels = ["the cat sat .", "a dog ran ?"] * 20, ["cat", "dog"] * 20
    classifier = nf.TextClassifier(pretrained=folder, freeze=["embed.*", "encoder.*"])
    classifier.fit(texts, labels, **BRIEF)
    before = nf.from_pretrained(folder).encoder.named_parameters()
    after = classifier.model.named_parameters()
    for name in before:
        if name.startswith(("embed.", "encoder.")):
            np.testing.assert_array_equal(after[name].value, before[name].value)
    assert classifier.model.pooling == "pooler"
    assert classifier.model.config.max_len == 16
    nf.save(classifier, tmp_path / "file")
    back = nf.load(tmp_path / "file")
    expected = classifier.predict_probabilities(texts)
    np.testing.assert_array_equal(back.predict_probabilities(texts), expected)


def test_whole_fine_tuning_changes_the_encoder_with_any_pooling(folder):
    texts, labels = ["the cat sat .", "a dog ran ?"] * 20, ["cat", "dog"] * 20
    classifier = nf.TextClassifier(pretrained=folder, pooling="mean").fit(texts, labels, **BRIEF)
    assert classifier.model.pooling == "mean"
    classifier = nf.TextClassifier(pretrained=folder).fit(texts, labels, **BRIEF)
    before = nf.from_pretrained(folder).encoder.parameters()
    weight = "encoder.blocks.0.mixer.query.weight"
    assert not np.array_equal(classifier.model.parameters()[weight], before[weight])
    assert classifier.settings_["no_decay"] == nf.optim.NORMS_AND_BIASES


def test_the_embedding_alone_may_be_frozen():
    texts, labels = texts_and_labels(40)
    config = {"d_model": 8, "n_heads": 2, "d_ff": 8}
    classifier = nf.TextClassifier(config, freeze=["embed.tokens.*"], members=1)
    classifier.fit(texts, labels, **BRIEF)
    assert "embed.tokens.weight" in classifier.model.frozen()


def test_the_command_line_fine_tunes(folder, tmp_path, prints):
    texts = [f"{text} {'cat' * (i % 7)}" for i, text in enumerate(["the cat", "a dog ran"] * 20)]
    table = write(tmp_path / "a.csv", texts, ["x", "y"] * 20)
    prints(
        "train",
        table,
        "--quiet",
        "--from",
        folder,
        "--freeze",
        "embed.*,encoder.*",
        "--epochs",
        1,
        "--keep-repeated",
        "--out",
        tmp_path / "run",
    )
    assert metrics_of(tmp_path / "run")["config"]["embedding_norm"]
    prints("predict", tmp_path / "run", "the cat")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"pretrained": "bert-base-uncased"}, FileNotFoundError, "bert-base-uncased"),
        ({"pretrained": 3}, TypeError, "pretrained is"),
        ({"freeze": "embed.*"}, TypeError, "expected a list with patterns"),
        ({"config": {"d_model": 8}}, ValueError, "pretrained is given together with config"),
        ({"max_len": 8}, ValueError, "pretrained is given together with config"),
    ],
)
def test_mistakes_are_explained(folder, settings, error, words):
    with pytest.raises(error, match=words):
        nf.TextClassifier(**{"pretrained": folder, **settings}).fit(["good", "bad"], ["yes", "no"])


def test_options_that_the_folder_decides(folder, tmp_path, fails):
    table = write(tmp_path / "a.csv", *texts_and_labels(20))
    words = ("--from", folder, "--out", tmp_path / "run")
    message = fails("train", table, *words, "--d-model", 8)
    assert "--d-model is given together with pretrained weights" in message
    assert "--tokenizer is given together" in fails("train", table, *words, "--tokenizer", "bpe")
