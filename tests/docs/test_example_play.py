"""The page of a run that the site shows."""

import json
import re

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site.example_play import build


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the data in the page."""
    html = build(tmp_path_factory.mktemp("play") / "play.html", epochs=1).read_text("utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', html)[1])


def test_a_digit_can_be_drawn_on_it(data):
    assert data["run"]["kind_of_input"] == "image"
    assert data["model"]["arguments"]["pooling"] == "flatten"


def test_it_shows_how_the_model_was_trained(data):
    assert len(data["points"]) > 30
    assert any(point.get("norms") for point in data["points"])
    assert any(point["accuracy"] for point in data["points"])
