"""Pretrained weights on the device: texts go up as ids, and their vectors come down."""

import numpy as np
import pytest

import npformer as nf
from tests.interop.folders import TEXTS, tiny
from tests.needs import NEEDS

pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
pytestmark = pytest.mark.usefixtures("plain")


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "fnet"])
def test_vectors_are_those_of_the_host(kind, pooling, tmp_path):
    tiny(tmp_path / kind, kind)
    found = nf.from_pretrained(tmp_path / kind, pooling=pooling, normalize=True)
    vectors, hidden = found.embed(TEXTS), found.hidden(TEXTS)
    assert found.to("fake") is found
    moved = found.embed(TEXTS)
    assert type(moved) is np.ndarray
    np.testing.assert_allclose(moved, vectors, rtol=1e-10)
    for ours, expected in zip(found.hidden(TEXTS), hidden, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-13)


def test_a_classifier_and_a_folder_come_from_the_device(tmp_path):
    tiny(tmp_path / "one")
    found = nf.from_pretrained(tmp_path / "one").to("fake")
    model = found.classifier(2, seed=0)
    assert model.backend == "numpy"
    found.save(tmp_path / "two")
    found.save(tmp_path / "three", model.to("fake"))
    again = nf.from_pretrained(tmp_path / "two").encoder.parameters()
    for name, value in again.items():
        np.testing.assert_array_equal(value, nf.to_numpy(found.encoder.parameters()[name]))
    assert nf.from_pretrained(tmp_path / "three").classes == ["LABEL_0", "LABEL_1"]
