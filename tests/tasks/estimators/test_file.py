"""Files of whole classifiers: damage, other versions, and what they need."""

import json

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.estimators.file import PREPARATION
from npformer.training.storage.model_file import read_model_file, write_model_file
from tests.tasks.estimators.conftest import SIZES


@pytest.fixture
def parts(classifier, tmp_path):
    nf.save(classifier, tmp_path / "model")
    description, tensors = read_model_file(tmp_path / "model")
    described = {n: v for n, v in description.items() if n != "format"}
    return tmp_path / "model", described, dict(tensors)


def edited(raw, path, change):
    """Save an estimator, and its file again after `change` of the description and preparation."""
    nf.save(raw, path)
    description, tensors = read_model_file(path)
    prepared = json.loads(tensors[PREPARATION].tobytes())
    change(description, prepared)
    del description["format"]
    content = np.frombuffer(json.dumps(prepared).encode(), "uint8")
    write_model_file(path, description, {**tensors, PREPARATION: content})
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda d, p: p.update(mean=[0.0, 0.0], deviation=[1.0, 1.0]),
        lambda d, p: p.update(mean=[float("nan")]),
        lambda d, p: p.update(deviation=[0.0]),
        lambda d, p: p.update(deviation=[1.0, 2.0]),
        lambda d, p: p.update(scale=3),
        lambda d, p: d.update(classes=["x", "x"]),
        lambda d, p: d.update(classes="xy"),
    ],
)
def test_a_file_of_a_series_classifier_whose_parts_do_not_fit(tmp_path, change):
    x = np.arange(12.0).reshape(4, 3)
    classifier = nf.SeriesClassifier(SIZES, members=1).fit(
        x, ["x", "y"] * 2, epochs=1, progress=False
    )
    with pytest.raises(nf.CheckpointError, match="model"):
        nf.load(edited(classifier, tmp_path / "model", change))


def test_a_vocabulary_of_another_size_is_refused(classifier, tmp_path):
    def longer(description, prepared):
        last_tokenizer = prepared.get("tokenizers", [prepared.get("tokenizer")])[-1]
        last_tokenizer["words" if last_tokenizer["words"] else "characters"] += ["q", "z"]

    writer = nf.TextWriter(SIZES | {"max_len": 8}).fit("abc " * 9, epochs=1, progress=False)
    sizes = {n: v for n, v in SIZES.items() if n != "token_dropout"}
    translator = nf.TextTranslator(sizes).fit(["ab", "b"], ["x", "y"], epochs=1, progress=False)
    for raw, name in ((classifier, "vocab_size"), (writer, "vocab_size"), (translator, "target")):
        with pytest.raises(nf.CheckpointError, match=f"a model has {name}"):
            nf.load(edited(raw, tmp_path / "model", longer))


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d.pop("members"),
        lambda d, t: d.update(classes=3),
        lambda d, t: d.update(classes=["food", "sport", "weather"]),
        lambda d, t: d.update(classes=["weather", "food"]),
        lambda d, t: d.update(classes=["food"]),
        lambda d, t: d.update(classes=["food", None]),
        lambda d, t: d.update(classes=["food", 1]),
        lambda d, t: d.update(members=[]),
        lambda d, t: d.update(arguments={"seed": -1, "dtype": "float32"}),
        lambda d, t: t.pop(PREPARATION),
        lambda d, t: t.update({PREPARATION: np.frombuffer(b"{}", "uint8")}),
        lambda d, t: t.update(
            {PREPARATION: np.frombuffer(json.dumps({"tokenizer": {}}).encode(), "uint8")}
        ),
        lambda d, t: t.pop("0.classify.bias"),
        lambda d, t: t.update({"0.more": np.zeros(3)}),
        lambda d, t: d.update(later=1),
    ],
)
def test_an_edited_file_is_refused_in_words(parts, change):
    path, description, tensors = parts
    change(description, tensors)
    write_model_file(path, description, tensors)
    with pytest.raises(nf.CheckpointError, match="model"):
        nf.load(path)
