"""The page of a run that the site shows."""

import json
import re

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site.example_play import build


def test_a_digit_can_be_drawn_on_it_and_it_shows_how_it_was_trained(tmp_path):
    html = build(tmp_path / "play.html", epochs=1).read_text("utf-8")
    found = json.loads(re.search(r'id="data">(.*?)</script>', html)[1])
    assert found["run"]["kind_of_input"] == "image"
    assert found["model"]["arguments"]["pooling"] == "flatten"
    assert len(found["points"]) > 30
    assert any(point.get("norms") for point in found["points"])
    assert any(point["accuracy"] for point in found["points"])
