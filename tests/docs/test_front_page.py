"""The first page: its doors and its moving step are links, and stand where nobody has to scroll."""

import re

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])
pytest.importorskip("furo", reason=NEEDS["furo"])
pytest.importorskip("myst_parser", reason=NEEDS["myst_parser"])

from sphinx.application import Sphinx

from docs.site import favicon
from docs.site.front_page import BACKWARD, FORWARD, facts, moving_step, titles, with_figures
from docs.site.one_step import arrays
from docs.site.pages import DOCS
from docs.site.training_step import COMMENT

TEXT = (DOCS / "index.md").read_text("utf-8")
STAGES = [pytest.param(stage, id=stage.array) for stage in (*FORWARD, *BACKWARD)]
STEP_PAGE = (DOCS / "training_step.md").read_text("utf-8")
SHOWN = [
    {name for shown in COMMENT.finditer(box) for name in shown["names"].split()}
    for box in re.split(r"^### ", STEP_PAGE, flags=re.MULTILINE)
]
"""The arrays that each box of the whole step shows, from box 1 on."""

CONF = f"""
extensions = ["myst_parser", "docs.site.front_page", "docs.site.favicon"]
myst_enable_extensions = ["attrs_block"]
html_theme = "furo"
html_static_path = [{str(DOCS / "_static")!r}]
html_css_files = ["npformer.css"]
html_favicon = {str(favicon.SVG)!r}
html_theme_options = {{"navigation_with_keys": True}}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_an_array_is_shown_in_the_box_to_which_it_leads(stage):
    assert stage.array in SHOWN[stage.box]


@pytest.mark.parametrize(
    ("name", "ways"), [pytest.param("forward", FORWARD), pytest.param("backward", BACKWARD)]
)
def test_a_way_goes_in_the_order_of_the_boxes(name, ways):
    boxes = [stage.box for stage in ways]
    assert boxes == sorted(boxes), name


def test_a_sentence_names_the_numbers_of_the_step():
    step = arrays()
    assert facts()["label"] == step["label"] == 3
    assert facts()["share"] == max(step["p"])
    assert f"It is a 3: the loss is {step['loss']:.3f}." in moving_step("step.html")
    assert f"to {step['loss_after']:.3f}. Again!" in moving_step("step.html")


def test_the_page_has_a_place_for_each_figure():
    page = with_figures(TEXT, "step.html")
    assert "\n{.doors}\n- **[" in page
    assert page.count('<section class="moving-step"') == 1
    assert "<!-- doors" not in page
    assert "<!-- moving" not in page


def alone(page):
    """Return a page's text without what needs other pages: pictures, lists of pages, links."""
    page = re.sub(r"^!\[[^\n]*$|^```\{toctree\}.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]+\)", "](https://example.org)", page)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build a site of the first page and that of the whole step."""
    source = tmp_path_factory.mktemp("source")
    out = tmp_path_factory.mktemp("out")
    tree = "```{toctree}\n:hidden:\ntraining_step\n```\n"
    (source / "conf.py").write_text(CONF)
    (source / "index.md").write_text(alone(TEXT) + tree, "utf-8")
    (source / "training_step.md").write_text(alone(STEP_PAGE), "utf-8")
    app = Sphinx(source, source, out, out / ".doctrees", "html", status=None, warning=None)
    app.build()
    assert app.statuscode == 0
    return out


def test_each_array_leads_to_a_section_of_the_whole_step(site):
    front = (site / "index.html").read_text("utf-8")
    sections = re.findall(
        r'<section id="([^"]+)"', (site / "training_step.html").read_text("utf-8")
    )
    targets = re.findall(r'<li><a href="training_step.html#([^"]+)"', front)
    assert len(targets) == len(STAGES)
    assert {*targets} <= {*sections}


def test_each_page_names_both_icons(site):
    page = (site / "training_step.html").read_text("utf-8")
    assert re.search(r'<link rel="[a-z ]*icon" href="_static/favicon.svg', page)
    assert '<link rel="alternate icon" type="image/png" sizes="32x32" href="_static/' in page


def test_the_icons_are_those_of_today():
    assert favicon.SVG.read_text("utf-8") == favicon.svg(), "python -m docs.site.favicon"
    assert favicon.PNG.read_bytes() == favicon.png(), "python -m docs.site.favicon"


# In a browser -------------------------------------------------------------------------------------


@pytest.fixture
def open_page(site, browser):
    """Return a function that opens the first page; its scripts may not complain."""
    pages, complaints = [], []

    def open_it(width=1280, height=800, motion="no-preference"):
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion=motion)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text))
        page.goto((site / "index.html").as_uri())
        pages.append(page)
        return page

    yield open_it
    for page in pages:
        page.close()
    assert complaints == []


def lowest(page, selector):
    """Return how far down the elements reach."""
    boxes = [element.bounding_box() for element in page.query_selector_all(selector)]
    return max(box["y"] + box["height"] for box in boxes)


def array_shown(page):
    return page.locator(".panel.now b").inner_text()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "height", "selector"),
    [
        pytest.param(1280, 800, ".doors li", id="doors on a laptop"),
        pytest.param(1280, 800, ".moving-step", id="step on a laptop"),
        pytest.param(390, 844, ".doors li", id="doors on a telephone"),
        pytest.param(390, 844, ".moving-step", id="step on a telephone"),
    ],
)
def test_nobody_scrolls_to_see_it(open_page, width, height, selector):
    page = open_page(width, height)
    assert lowest(page, selector) <= height


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_not_wider_than_the_window(open_page, width):
    page = open_page(width, 844)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_a_door_is_a_link_as_a_whole(open_page):
    page = open_page()
    door = page.locator(".doors li").nth(2)
    box = door.bounding_box()
    hit = page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).closest('a')?.textContent",
        [box["x"] + box["width"] - 4, box["y"] + box["height"] - 4],
    )
    assert hit == "Check your gradients"


@pytest.mark.browser
def test_the_step_moves(open_page):
    page = open_page()
    first = array_shown(page)
    page.wait_for_function("document.querySelector('.panel.now b').textContent !== 'image'")
    assert first == "image"
    assert array_shown(page) == "x"


@pytest.mark.browser
def test_the_step_stands_still_for_who_wants_no_motion(open_page):
    page = open_page(motion="reduce")
    page.wait_for_timeout(2500)
    assert array_shown(page) == "image"
    assert page.locator(".moving-step .play").inner_text() == "Play"
    assert page.locator(".way a.later").count() == 0


@pytest.mark.browser
def test_a_pause_stops_the_motion(open_page):
    page = open_page()
    page.get_by_role("button", name="Pause").click()
    shown = array_shown(page)
    page.wait_for_timeout(2500)
    assert array_shown(page) == shown
    assert page.locator(".panels").get_attribute("aria-live") == "polite"


@pytest.mark.browser
def test_the_arrow_keys_turn_arrays_within_the_step(open_page):
    page = open_page(motion="reduce")
    page.locator(".way a").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert array_shown(page) == "x"
    assert page.url.endswith("index.html")  # the theme turns pages with the same keys
    page.keyboard.press("Enter")
    page.wait_for_url("**/training_step.html#where-each-token-stands")


@pytest.mark.browser
def test_an_array_under_the_pointer_says_what_it_is(open_page):
    page = open_page()
    page.locator(".way a").nth(4).hover()
    assert array_shown(page) == "A"
    assert "A = softmax(S)" in page.locator(".panel.now").inner_text()
    assert FORWARD[4].box == 6
    assert titles()[6] in page.locator(".panel.now a").inner_text()


@pytest.mark.browser
def test_without_a_script_the_arrays_are_links(site, browser):
    page = browser.new_page(java_script_enabled=False)
    page.goto((site / "index.html").as_uri())
    assert array_shown(page) == "image"
    page.locator(".way a").nth(9).click()
    assert page.url.endswith("#the-loss")
    page.close()
