"""One seed, one result: in each process, however it hashes, and when a training goes on."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import npformer as nf
from npformer.data.tokenizers import WordTokenizer
from npformer.tasks.estimators import (
    pair_split,
    readers,
    split,
    text_filler,
    text_translator,
    text_writer,
)
from tests.needs import NEEDS
from tests.tasks.estimators.one_seed import SETTINGS, Stop, digest, estimators, settings_of

PROCESSES = 5
SINGLE = {name: (estimator, data) for name, estimator, data in estimators()}


@pytest.mark.processes
def test_five_processes_train_the_same_models(tmp_path):
    pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
    digests = {}
    for number in range(PROCESSES):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": str(number),
            "RAYON_NUM_THREADS": str(1 + number % 3),
            "TOKENIZERS_PARALLELISM": ("true", "false")[number % 2],
        }
        folders = [tmp_path / str(number), tmp_path / str(number - 1)]
        command = [sys.executable, "-m", "tests.tasks.estimators.one_seed", *map(str, folders)]
        process = subprocess.run(command, env=environment, capture_output=True, check=True)
        for name, digest_of_estimator in json.loads(process.stdout).items():
            digests.setdefault(name.removesuffix(", resumed"), []).append(digest_of_estimator)
    assert digests.keys() == SINGLE.keys()
    for name, digests_of_name in digests.items():
        assert len(digests_of_name) == 2 * PROCESSES - 1, name
        assert len(set(digests_of_name)) == 1, name


@pytest.fixture
def another_library(monkeypatch):
    """Make vocabularies and splits come out otherwise, as in another version of a library."""

    def other_tokenizer(*arguments, **settings):
        return WordTokenizer(["other", "words"], masks=bool(settings.get("masks")))

    def other_split(labels, share, seed):
        return np.arange(1, len(labels)), np.arange(1)

    def act():
        monkeypatch.setattr(readers, "train_tokenizer", other_tokenizer)
        monkeypatch.setattr(text_filler, "train_tokenizer", other_tokenizer)
        monkeypatch.setattr(text_writer, "train_writing_tokenizer", other_tokenizer)
        monkeypatch.setattr(text_translator, "train_writing_tokenizer", other_tokenizer)
        monkeypatch.setattr(split, "stratified_split", other_split)
        monkeypatch.setattr(pair_split, "split_by_source", other_split)

    return act


@pytest.mark.parametrize(
    "name", ["classifier, word", "filler, word", "writer, char", "translator, char", "series"]
)
def test_a_training_goes_on_with_what_it_drew(name, tmp_path, another_library):
    estimator, data = SINGLE[name]
    digest_without_a_stop = digest(estimator.fit(*data, validation=0.2, **SETTINGS))
    estimator.fit(*data, **settings_of(name, tmp_path), callbacks=[Stop()])
    assert digest(estimator) != digest_without_a_stop
    another_library()
    assert digest(estimator.fit(*data, **settings_of(name, tmp_path))) == digest_without_a_stop


def test_what_was_drawn_for_other_texts_is_drawn_again(tmp_path):
    settings = {"checkpoint": tmp_path, "resume": True, **SETTINGS, "epochs": 1}
    config = SINGLE["filler, word"][0].config
    nf.TextFiller(config).fit(["a b c d e f"] * 8, **settings)
    (tmp_path / "checkpoint.safetensors").unlink()  # stopped before its first checkpoint
    filler = nf.TextFiller(config).fit(["u v w x y z"] * 8, **settings)
    assert filler.tokenizer_.vocabulary[3:] == list("uvwxyz")
    with pytest.raises(ValueError, match=r"cannot go on from the checkpoint: data is"):
        nf.TextFiller(config).fit(["a b c d e f"] * 9, **settings)
