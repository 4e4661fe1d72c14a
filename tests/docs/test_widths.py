"""No page of the site cuts a line of code, on a phone or on a laptop."""

import json

import pytest
from filelock import FileLock

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


WIDTHS = {"phone": 390, "laptop": 1280}


@pytest.fixture(scope="module")
def cut_by_width(whole_site, browser):
    """Return what is cut at each width on each page, measured once by all processes together."""
    file = whole_site.with_suffix(".widths.json")
    with FileLock(file.with_suffix(".lock")):
        if not file.exists():
            file.write_text(json.dumps(measure(whole_site, browser)), "utf-8")
    return json.loads(file.read_text("utf-8"))


def measure(whole_site, browser):
    """Open each page once, with everything in it opened, and measure it at each width."""
    page = browser.new_page()
    cut_by_width = {name: {} for name in WIDTHS}
    for path in sorted(whole_site.rglob("*.html")):
        if "_modules" in path.parts or "_static" in path.parts:
            continue
        page.goto(path.as_uri())
        for name, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 900})
            cut_by_width[name][path.relative_to(whole_site).as_posix()] = page.evaluate(CUT)
    page.close()
    return cut_by_width


@pytest.fixture(params=WIDTHS)
def cut(request, cut_by_width):
    """Return what is cut on each page at a width."""
    return cut_by_width[request.param]


def test_no_line_of_code_is_cut(cut):
    assert len(cut) > 110
    assert {name: cuts["lines"] for name, cuts in cut.items() if cuts["lines"]} == {}


def test_columns_that_scroll_show_that_they_do(cut):
    assert sum(cuts["count"] for cuts in cut.values()) > 20
    assert [name for name, cuts in cut.items() if cuts["hidden"]] == []
