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
