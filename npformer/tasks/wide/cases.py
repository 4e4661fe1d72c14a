"""Cases of gradcheck for the wide model."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.models.trainable.cases import case_of_loss
from npformer.proof.cases import SUBJECTS
from npformer.proof.cases.case import MODEL, SEEDED, Case, keep, layer, pair, small
from npformer.proof.cases.models import IDS, MASK
from npformer.tasks.wide.bag import bag
from npformer.tasks.wide.layer import Wide
from npformer.tasks.wide.model import WideSequenceClassifier, WideSequenceModel

FEW_IDS = np.array([[1, 3, 1], [1, 0, 3]])


def _learn_two_pairs(wide: Wide) -> None:
    wide.learn(np.array([[0, 3], [1, 3]]), 1.0 + np.arange(7.0))


def _bags() -> Iterator[Case]:
    yield pair("repeated ids", bag, FEW_IDS, (2, 3), (5, 4))


def _layers() -> Iterator[Case]:
    def wide_layer(label: str, **options: Any) -> Case:
        wide = Wide(5, 2, 3, dtype="float64")
        case = layer(label, wide, FEW_IDS, **options)
        _learn_two_pairs(wide)  # now, because `layer` changes all parameters
        return case

    yield wide_layer("words and pairs")
    yield wide_layer("repeated words, padding mask", mask=keep([3, 1], 3))


def _models() -> Iterator[Case]:
    for model_class in (WideSequenceModel, WideSequenceClassifier):
        model = model_class(small(n_layers=1), 3, vocab_size=5, n_pairs=2, **SEEDED)
        case = layer("words and pairs, padding mask", model, IDS, mask=MASK, **MODEL)
        _learn_two_pairs(model.wide)
        yield case


def _losses() -> Iterator[Case]:
    yield case_of_loss(
        "words and pairs",
        np.array([0, 1, 1]),
        {"n_pairs": 2},
        {},
        WideSequenceClassifier,
        sample_weight=np.array([2.0, 0.5, 1.0]),
        label_smoothing=0.1,
    )


SUBJECTS += [_bags, _layers, _models, _losses]
