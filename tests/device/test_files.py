"""Files go both ways, and training goes on from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npformer as nf
from tests.device.cases import IDS, LABELS, MASK, classifier


def fit(model: nf.SequenceClassifier, data: Any, **options: Any) -> nf.History:
    usual = {"epochs": 2, "batch_size": 2, "progress": False}
    return nf.fit(model, data, **(usual | options))


def flat(model: nf.SequenceClassifier) -> np.ndarray:
    return nf.to_numpy(model.parameters().flat)


@pytest.mark.parametrize(("written", "read"), [("numpy", "fake"), ("fake", "numpy")])
def test_training_goes_on_from_a_file_of_the_other_side(tmp_path, written, read) -> None:
    results = []
    with nf.use_kernels(False):
        for way in ((written, written), (written, read)):
            model = classifier("float64").to(way[0])
            fit(model, (IDS, LABELS, MASK))
            nf.save(model, tmp_path / "model.safetensors")
            again = nf.load(tmp_path / "model.safetensors", backend=way[1])
            assert again.backend == way[1]
            np.testing.assert_array_equal(flat(again), flat(model))
            fit(again, (IDS, LABELS, MASK))
            results.append(flat(again))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-10, atol=1e-13)
