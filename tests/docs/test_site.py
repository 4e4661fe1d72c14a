"""A small site with the extensions of the real one: dark pictures, search with excerpts."""

import re
import shutil
import subprocess

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])
pytest.importorskip("furo", reason=NEEDS["furo"])
pytest.importorskip("myst_parser", reason=NEEDS["myst_parser"])
pytest.importorskip("ziamath", reason=NEEDS["ziamath"])  # whose import warns on Python 3.11

from sphinx.application import Sphinx

from docs.site.dark_pictures import dark
from docs.site.docstrings import drop_long_value
from docs.site.pages import DOCS

CONF = """
extensions = ["myst_parser", "docs.site.formulas", "docs.site.dark_pictures", "docs.site.links",
              "docs.site.search"]
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
html_math_renderer = "svg"
html_search_scorer = {scorer!r}
"""
PAGES = {
    "index": "# Home\n\n```{toctree}\nchapters/layer_norm\nreference/layer_norm\nguide\n```\n",
    "chapters/layer_norm": "# Layer norm\n\nIt shifts and scales, $x_i$ and $\\frac{a}{b}$.\n\n"
    "![rows](../pictures/rows.svg)\n\n## Backward\n\nThree ways lead back.\n\n"
    "```py\nlost = 1\n```\n",
    "reference/layer_norm": "# layer_norm\n\n" + "The layer norm of a row. " * 9,
    "guide": "# Guide\n\nUse layer norm, or another norm. [All names](site/reference.py).\n\n"
    "```{py:data} SCALE\n:value: 20.0\n```\n\n"
    f"```{{py:data}} TABLE\n:type: dict\n:value: {dict.fromkeys(range(20))}\n```\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site."""
    source = tmp_path_factory.mktemp("source")
    out = tmp_path_factory.mktemp("out")
    (source / "conf.py").write_text(CONF.format(scorer=str(DOCS / "site" / "scorer.js")))
    (source / "site").mkdir()
    (source / "site" / "reference.py").touch()
    (source / "pictures").mkdir()
    shutil.copy(DOCS / "pictures" / "softmax_row.svg", source / "pictures" / "rows.svg")
    for name, text in PAGES.items():
        (source / f"{name}.md").parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text)
    app = Sphinx(source, source, out, out / ".doctrees", "html", status=None, warningiserror=True)
    app.connect("object-description-transform", drop_long_value)
    app.build()
    assert app.statuscode == 0
    return out


def test_a_line_cannot_begin_with_the_sign_after_a_formula(site):
    page = (site / "chapters" / "layer_norm.html").read_text("utf-8")
    assert 'aria-label="\\frac{a}{b}."' in page
    assert re.search(r'<span class="kept"><svg.*?</svg>\.</span></span></span>\s*</p>', page)


def test_a_link_to_a_file_that_writes_a_page_leads_to_the_page(site):
    page = (site / "guide.html").read_text("utf-8")
    assert (
        'href="reference/index.html"><span class="xref download myst">All names</span></a>' in page
    )
    assert "_downloads" not in page


def test_a_picture_has_a_copy_for_the_dark(site):
    page = (site / "chapters" / "layer_norm.html").read_text("utf-8")
    assert 'class="only-light"' in page
    assert '<img class="only-dark" src="../_images/dark_rows.svg" alt="rows">' in page
    drawn = (site / "_images" / "dark_rows.svg").read_text("utf-8")
    assert drawn != (site / "_images" / "rows.svg").read_text("utf-8")


def test_a_constant_shows_its_value_if_it_is_short(site):
    page = re.sub("<[^>]+>", "", (site / "guide.html").read_text("utf-8"))
    assert re.search(r"SCALE\s*=\s*20\.0", page)
    assert re.search(r"TABLE\s*:\s*dict\b", page)
    assert "0: None" not in page


@pytest.fixture
def curves():
    """Return a picture of curves, for light and for dark pages."""
    text = (DOCS / "pictures" / "softmax_row.svg").read_text("utf-8")
    return text, dark(text)


def test_in_the_dark_ink_is_light(curves):
    light_text, dark_text = curves
    assert "stroke: #000000" in light_text
    assert "stroke: #000000" not in dark_text
    assert "svg{fill: #cfd0d0}" in dark_text


def test_in_the_dark_the_ground_is_not_white(curves):
    _, dark_text = curves
    assert "fill: #ffffff" not in dark_text


def test_in_the_dark_colours_stay(curves):
    light_text, dark_text = curves
    assert dark_text.count("#0072b2") == light_text.count("#0072b2") > 0


def test_in_the_dark_white_cells_of_a_heat_map_stay_white():
    cells = (DOCS / "pictures" / "mixers_take.svg").read_text("utf-8")
    assert dark(cells).count('"fill: #ffffff"') > 20


def test_the_texts_for_excerpts_are_those_of_the_sections_without_code(site):
    script = (site / "_static" / "excerpts.js").read_text("utf-8")
    assert '["layer-norm", "It shifts and scales, x_i and \u2026."]' in script
    assert '["backward", "Three ways lead back."]' in script
    assert "lost" not in script
    assert "excerpts.js" in (site / "search.html").read_text("utf-8")
    assert "excerpts.js" not in (site / "guide.html").read_text("utf-8")


def test_a_search_from_a_file_finds_the_chapter_first_with_an_excerpt(site):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium, which runs the search: apt-get install chromium")
    address = f"file://{site}/search.html?q=layer+norm"
    run = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=4000",
            "--dump-dom",
            address,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    results = run.stdout.partition('class="search"')[2]
    places = [results.find(f'href="{page}.html') for page in PAGES if page != "index"]
    chapter, reference, guide = places
    assert -1 < chapter < guide < reference, results
    first = results[chapter:guide]
    assert "It shifts and scales" in first
