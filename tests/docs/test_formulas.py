"""Formulas of the site: whole on a telephone, on their line, and read aloud as TeX."""

import re

import pytest

from tests.needs import NEEDS

pytest.importorskip("ziamath", reason=NEEDS["ziamath"])

from docs.site.formulas import LINE, html, pieces
from docs.site.pages import DOCS

CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(?!\s)([^$]+?)(?<!\s)\$", re.DOTALL)


def formulas():
    """Return (TeX, whether it is displayed) of all pages, each once, with a page it stands on."""
    pages = {}
    for page in sorted(DOCS.rglob("*.md")):
        for match in FORMULA.finditer(CODE.sub("", page.read_text("utf-8"))):
            pages.setdefault((match[1] or match[2], match[1] is not None), page.name)
    return pages


FOUND = formulas()


def test_the_pages_have_formulas():
    assert sum(display for _, display in FOUND) > 150
    assert len(FOUND) > 900


@pytest.mark.slow
def test_no_formula_of_a_page_is_wider_than_a_telephone():
    wide = {
        (page, latex): round(fragment.width, 1)
        for (latex, display), page in FOUND.items()
        if display or len(latex) > 30  # to set the short ones as well would take half a minute
        for fragment in pieces(latex, display)
        if fragment.width > 1.1 * LINE  # a tenth smaller can still be read
    }
    assert wide == {}, "break it by hand, or write less into one line"


WIDE = r"\mu = \frac{1}{d}\sum_i x_i, \qquad s = \sqrt{\sigma^2 + \epsilon} = (a = b)^2 + 1 + 2"


def test_a_wide_formula_may_be_broken_at_relations_or_wide_spaces():
    assert [fragment.gap for fragment in pieces(WIDE, True)] == [0.0, 0.33, 2.0, 0.33, 0.33]
    assert html(WIDE, True, set()).count("<wbr>") == 3


def test_a_short_formula_is_not_broken():
    assert len(pieces("x = y", True)) == 1


def test_what_is_still_too_wide_is_broken_before_signs():
    terms = [f"x_{i} y_{i} z_{i}" for i in range(9)]
    assert len(pieces(" + ".join(terms), True)) == 9
    assert len(pieces("(" + " + ".join(terms) + ")", True)) == 1  # never within brackets


def test_the_baseline_is_that_of_the_letters():
    assert pieces("x", False)[0].below == pytest.approx(0.0, abs=0.02)
    (index,) = pieces("x_i", False)
    assert index.below > 0.1
    assert f"vertical-align:-{index.below:.2f}em" in html("x_i", False, set())
    assert pieces(r"\frac{a}{b}", True)[0].below > 0.4


def test_brackets_are_as_high_as_what_they_hold():
    for latex in (r"\left(\sum_k w_k\right)^2", r"\left(\hat m + \int_0^1 f\right)"):
        *_, height = map(int, pieces(latex, True)[0].view.split())
        assert height < 4 * 200, latex


def test_a_minus_of_one_operand_stands_close_to_it():
    assert pieces("-x", False)[0].width < pieces("y-x", False)[0].width - 0.9
    alone, after_a_bracket = pieces("f(-x)", False)[0].width, pieces("f()-x", False)[0].width
    assert alone < after_a_bracket - 0.3


def test_a_formula_is_read_aloud_as_tex():
    assert 'role="img" aria-label="a &lt; b"' in html("a < b", False, set())


def test_a_formula_has_the_colour_of_the_text():
    picture = html("a < b", False, set())
    assert "black" not in picture
    assert "#000" not in picture


def test_a_page_holds_the_outline_of_a_glyph_once():
    outlines = set()
    first, second = html("x + x", False, outlines), html("x", False, outlines)
    (name,) = re.findall(r'<use href="#(g\w+)"', second)
    assert first.count(f'<path id="{name}"') == 1
    assert first.count(f'href="#{name}"') == 2
    assert "<path" not in second


def test_a_command_that_is_not_known_is_an_error():
    with pytest.raises(ValueError, match="nonsense"):
        pieces(r"\nonsense x", False)
