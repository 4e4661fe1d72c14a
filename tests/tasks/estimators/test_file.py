"""Files of whole classifiers: damage, other versions, and what they need."""

import json

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.estimators.file import PREPARATION
from npformer.training.storage.model_file import read_model_file, write_model_file


@pytest.fixture
def parts(classifier, tmp_path):
    nf.save(classifier, tmp_path / "model")
    description, tensors = read_model_file(tmp_path / "model")
    return (
        tmp_path / "model",
        {n: v for n, v in description.items() if n != "format"},
        dict(tensors),
    )


def test_a_changed_byte_is_noticed(parts):
    path, _, _ = parts
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(nf.CheckpointError, match="does not match its checksum"):
        nf.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d.pop("members"),
        lambda d, t: d.update(classes=3),
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


def test_an_interrupted_save_leaves_the_old_file(parts, classifier, monkeypatch):
    path, _, _ = parts
    before = path.read_bytes()
    monkeypatch.setattr("npformer.training.storage.files.os.fsync", lambda file: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        nf.save(classifier, path)
    assert path.read_bytes() == before
