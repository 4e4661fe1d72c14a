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
    encoder = nf.from_pretrained(tmp_path / kind, pooling=pooling, normalize=True)
    vectors, hidden = encoder.embed(TEXTS), encoder.hidden(TEXTS)
    assert encoder.to("fake") is encoder
    moved = encoder.embed(TEXTS)
    assert type(moved) is np.ndarray
    np.testing.assert_allclose(moved, vectors, rtol=1e-10)
    for ours, expected in zip(encoder.hidden(TEXTS), hidden, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-13)


@pytest.fixture
def encoder_on_device(tmp_path):
    tiny(tmp_path / "one")
    return nf.from_pretrained(tmp_path / "one").to("fake")


def test_a_classifier_of_an_encoder_on_the_device_is_on_the_host(encoder_on_device):
    assert encoder_on_device.classifier(2, seed=0).backend == "numpy"


def test_an_encoder_is_saved_from_the_device(encoder_on_device, tmp_path):
    encoder_on_device.save(tmp_path / "two")
    expected = encoder_on_device.encoder.parameters()
    for name, value in nf.from_pretrained(tmp_path / "two").encoder.parameters().items():
        np.testing.assert_array_equal(value, nf.to_numpy(expected[name]))


def test_a_classifier_is_saved_from_the_device(encoder_on_device, tmp_path):
    model = encoder_on_device.classifier(2, seed=0)
    encoder_on_device.save(tmp_path / "three", model.to("fake"))
    assert nf.from_pretrained(tmp_path / "three").classes == ["LABEL_0", "LABEL_1"]
