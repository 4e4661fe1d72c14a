"""The page of mixers has all of them."""

from pathlib import Path

import pytest

import npformer

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", npformer.MIXERS)
def test_every_mixer_has_a_row_on_its_page(name):
    page = (ROOT / "docs" / "mixers.md").read_text("utf-8")
    assert f"\n| `{name}` |" in page
