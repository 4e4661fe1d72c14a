"""What a live picture says that its numbers are made of: true for each cell, and to be seen."""

import re

import pytest

from tests.needs import NEEDS
from tests.pages import page_without_errors

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])
pytest.importorskip("matplotlib", reason=NEEDS["matplotlib"])

from docs.site import colours
from docs.site.live import FIGURE, LIGHT, place_figures, script, statements
from docs.site.pages import DOCS

pytestmark = pytest.mark.slow

PERTURB = (DOCS.parent / "tests" / "docs" / "perturbed.js").read_text("utf-8")

LINKED = [
    name
    for file in ("rows", "tokens")
    for name in re.findall(
        r"^PICTURES\.([a-z_]+) = ", (DOCS / "live" / f"{file}.js").read_text("utf-8"), re.MULTILINE
    )
]


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """Open a page with all linked pictures and a word that leads to one."""
    place = tmp_path_factory.mktemp("parts") / "page.html"
    figures = "".join(FIGURE.format(name) for name in LINKED)
    link = place_figures("<!-- light attention: Q[1, :]; K[2, :] -->two rows<!-- end -->")
    html = f"<meta charset=utf-8><script>{script()}</script><p>{link}</p>{figures}"
    place.write_text(html, "utf-8")
    with page_without_errors(browser) as page:
        page.goto(place.as_uri())
        yield page


@pytest.fixture
def attention(page):
    """Return the picture of attention as it begins."""
    figure = page.locator("figure[data-live=attention]")
    figure.locator("button[type=reset]").click()
    return figure


@pytest.fixture(scope="module")
def trials(page):
    """Return what changes in each picture as its cells change, one after the other."""
    code = f"{statements()}\n{PERTURB}\nreturn perturbed(name);"
    run = "([code, name]) => new Function('name', code)(name)"
    return {name: page.evaluate(run, [code, name]) for name in LINKED}


@pytest.mark.parametrize("name", LINKED)
def test_no_number_depends_on_a_cell_that_it_does_not_name(trials, name):
    assert trials[name]["undeclared"] == []


# Half of the cosines are 0, and so are their products: the Fourier transform has idle terms.
@pytest.mark.parametrize("name", [name for name in LINKED if name != "fourier"])
def test_each_cell_that_a_number_names_changes_it(trials, name):
    assert trials[name]["count"] > 0
    assert trials[name]["idle"] == []


def lit(figure, kind):
    """Return the cells that are lit in one way."""
    names = "cells => cells.map((cell) => cell.dataset.cell)"
    return figure.locator(f"td.{kind}").evaluate_all(names)


def cell(figure, name):
    return figure.locator(f'td[data-cell="{name}"]')


def said(figure):
    return figure.locator("[role=status]").inner_text()


@pytest.mark.parametrize(
    ("picture", "chosen", "sources"),
    [
        ("attention", "S[1, 2]", "Q[1, 0] Q[1, 1] K[2, 0] K[2, 1]"),
        ("attention", "Y[1, 0]", "A[1, 0] A[1, 1] A[1, 2] A[1, 3] V[0, 0] V[1, 0] V[2, 0] V[3, 0]"),
        (
            "attention_backward",
            "dV[2, 1]",
            "A[0, 2] A[1, 2] A[2, 2] A[3, 2] dY[0, 1] dY[1, 1] dY[2, 1] dY[3, 1]",
        ),
        ("attention_backward", "dA[3, 0]", "dY[3, 0] dY[3, 1] V[0, 0] V[0, 1]"),
        ("linear", "dW[2, 0]", "x[0, 2] x[1, 2] dy[0, 0] dy[1, 0]"),
    ],
)
def test_a_chosen_number_lights_up_what_it_is_made_of(page, picture, chosen, sources):
    figure = page.locator(f"figure[data-live={picture}]")
    cell(figure, chosen).click()
    assert lit(figure, "here") == [chosen]
    names = [name.rstrip("]") + "]" for name in sources.split("] ")]
    assert sorted(lit(figure, "from")) == sorted(names)


def test_a_weight_lights_up_its_row_of_scores(attention):
    cell(attention, "A[1, 2]").click()
    assert lit(attention, "from") == ["S[1, 2]", "Z[1]"]
    assert lit(attention, "before") == ["S[1, 0]", "S[1, 1]", "S[1, 3]"]


def test_an_input_lights_up_all_that_is_made_of_it(attention):
    cell(attention, "K[2, 0]").click()
    assert lit(attention, "to") == [f"S[{i}, 2]" for i in range(4)]
    later = {name.partition("[")[0] for name in lit(attention, "later")}
    assert later == {"Z", "A", "Y"}


def test_a_hidden_score_is_made_of_nothing(attention):
    attention.locator("select").select_option("causal")
    cell(attention, "S[1, 3]").click()
    assert lit(attention, "from") == []
    assert "hidden by the mask" in said(attention)


def test_a_number_is_explained_in_numbers(attention):
    cell(attention, "S[1, 2]").click()
    assert said(attention).startswith("S[1, 2] = Q[1] · K[2] / √2 = (0, 2) · (1, 1) / √2 = 1.414.")


def test_a_score_lights_up_its_two_tokens(attention):
    cell(attention, "S[1, 2]").click()
    for role, word in (("query", "cat1"), ("key", "sat2")):
        assert attention.locator(f".sentence .{role}").all_inner_texts() == [word]


def test_a_token_lights_up_its_query_key_and_value(attention):
    attention.locator("[data-token='3']").click()
    assert lit(attention, "here") == [f"{name}[3, {c}]" for name in "QKV" for c in (0, 1)]


def test_a_term_of_a_formula_lights_up_its_cells(attention):
    cell(attention, "S[1, 2]").click()
    attention.locator("[data-step='0'] .term", has_text="K[2]").click()
    assert lit(attention, "here") == ["K[2, 0]", "K[2, 1]"]


def test_a_number_lights_up_the_terms_of_its_formula(attention):
    cell(attention, "S[1, 2]").click()
    terms = attention.locator(".formulas .term.from").all_inner_texts()
    assert terms == ["Q[1]", "K[2]"]


def test_pointing_lights_up_until_the_pointer_leaves(attention):
    cell(attention, "S[0, 0]").click()
    cell(attention, "Y[3, 1]").hover()
    assert lit(attention, "here") == ["Y[3, 1]"]
    attention.locator("figcaption").hover()
    assert lit(attention, "here") == ["S[0, 0]"]


def test_words_of_the_text_light_up_cells(page, attention):
    page.locator("a.light").hover()
    assert lit(attention, "here") == ["Q[1, 0]", "Q[1, 1]", "K[2, 0]", "K[2, 1]"]


def test_words_of_the_text_lead_to_the_picture(page, attention):
    link = page.locator("a.light")
    link.click()
    assert lit(attention, "to")
    attention.locator(".back").press("Enter")
    assert link.evaluate("link => link === document.activeElement")


def test_arrows_move_between_the_cells_of_a_matrix(page, attention):
    cell(attention, "S[1, 2]").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    assert lit(attention, "here") == ["S[2, 2]"]


def test_arrows_on_a_cell_do_not_turn_the_page(page, attention):
    page.evaluate("() => { addEventListener('keydown', (e) => (globalThis.arrived = e.key)); }")
    cell(attention, "S[1, 2]").focus()
    page.keyboard.press("a")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("globalThis.arrived") == "a"


def test_one_cell_of_a_matrix_takes_part_in_the_order_of_tab(attention):
    cell(attention, "S[1, 2]").focus()
    stops = attention.locator("table[data-name=S] td[tabindex='0']")
    assert stops.evaluate_all("cells => cells.map((c) => c.dataset.cell)") == ["S[1, 2]"]


def test_escape_clears_what_is_lit(page, attention):
    cell(attention, "S[1, 2]").focus()
    page.keyboard.press("Escape")
    assert lit(attention, "here") == []


def test_a_digit_on_a_cell_is_typed_into_it(page, attention):
    cell(attention, "K[1, 0]").focus()
    page.keyboard.type("2.5")
    page.keyboard.press("Enter")
    assert cell(attention, "K[1, 0]").inner_text() == "2.5"
    assert page.evaluate("document.activeElement.dataset.cell") == "K[1, 0]"


def test_a_typed_number_beyond_the_range_becomes_its_end(page, attention):
    cell(attention, "V[0, 0]").focus()
    page.keyboard.type("99")
    page.keyboard.press("Enter")
    assert cell(attention, "V[0, 0]").inner_text() == "4"
    assert attention.locator(".mover [type=number]").input_value() == "4"


def test_the_slider_of_a_cell_lands_on_tenths(page, attention):
    cell(attention, "V[0, 0]").click()
    attention.locator(".mover [type=range]").focus()
    page.keyboard.press("ArrowRight")
    assert cell(attention, "V[0, 0]").inner_text() == "1.1"


def test_a_cell_says_its_name_to_a_screen_reader(attention):
    assert cell(attention, "A[0, 0]").get_attribute("aria-label") == "A[0, 0], 0.434"


def test_weights_have_one_scale_for_all_rows(attention):
    share = cell(attention, "A[0, 0]").evaluate("cell => cell.style.getPropertyValue('--part')")
    assert share == "30%"  # .434 of the full 70 %


def test_the_links_of_all_chapters_name_cells(page):
    links = [
        (name, cells)
        for chapter in sorted((DOCS / "chapters").glob("*.md"))
        for name, cells, _ in LIGHT.findall(chapter.read_text("utf-8"))
    ]
    assert links
    lengths = """links => links.map(([name, cells]) =>
        document.querySelector(`figure[data-live=${name}]`).linked.cells(cells).length)"""
    assert all(page.evaluate(lengths, links))


@pytest.mark.parametrize(
    ("variable", "colour"),
    [
        ("plus", colours.PLUS),
        ("minus", colours.MINUS),
        ("weight-colour", colours.WEIGHT),
        ("queries", colours.LETTERS["Q"]),
        ("keys", colours.LETTERS["K"]),
        ("values", colours.LETTERS["V"]),
        ("weights", colours.LETTERS["A"]),
    ],
)
def test_live_and_still_pictures_have_the_same_colours(variable, colour):
    style = (DOCS / "_static" / "live.css").read_text("utf-8")
    assert re.search(rf"--{variable}: (#\w+);", style)[1] == colour
