"""No page of the site cuts a line of code, on a phone or on a laptop."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes]

CUT = """() => {
    document.querySelectorAll("article details").forEach((details) => { details.open = true; });
    const wide = [...document.querySelectorAll("article pre")]
        .filter((block) => block.scrollWidth > block.clientWidth + 1);
    const scrolls = wide.filter((block) => block.classList.contains("scrolls"));
    return {
        lines: wide.filter((block) => !scrolls.includes(block)).map((block) => block.innerText),
        hidden: scrolls.filter((block) => !getComputedStyle(block).backgroundImage
            .includes("gradient")).length,
        count: scrolls.length,
    };
}"""
"""Blocks wider than their place: lines of code, and columns whose shadow does not show that."""


@pytest.fixture(scope="module", params=[390, 1280], ids=["phone", "laptop"])
def cut(request, whole_site, browser):
    """Return what is cut on each page at a width, with everything opened."""
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    cut_by_page = {}
    for path in sorted(whole_site.rglob("*.html")):
        if "_modules" in path.parts or "_static" in path.parts:
            continue
        page.goto(path.as_uri())
        cut_by_page[path.relative_to(whole_site).as_posix()] = page.evaluate(CUT)
    page.close()
    return cut_by_page


def test_no_line_of_code_is_cut(cut):
    assert len(cut) > 110
    assert {name: cuts["lines"] for name, cuts in cut.items() if cuts["lines"]} == {}


def test_columns_that_scroll_show_that_they_do(cut):
    assert sum(cuts["count"] for cuts in cut.values()) > 20
    assert [name for name, cuts in cut.items() if cuts["hidden"]] == []
