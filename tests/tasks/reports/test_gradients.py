"""The page of a gradcheck: pictures, words, and nothing from elsewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.tasks.reports.museum_links import PAGE, TITLES, anchor, museum_link
from npformer.tasks.reports.plots import Axis
from tests.tasks.reports.conftest import Page, pixels

MUSEUM = Path(__file__).resolve().parents[3] / "docs" / "museum.md"
X = np.random.default_rng(0).normal(size=(4, 5))
W = np.random.default_rng(1).normal(size=(5, 5))


def transposed(dy, cache):
    dx, dW = F.linear_backward(dy, cache)
    return dx / 4.0, dW.T


@pytest.fixture
def page_of(tmp_path):
    """Return a function that checks, writes the page whether or not it passes, and reads it."""

    def write(target, *inputs):
        try:
            report = nf.gradcheck(target, *inputs)
        except nf.GradcheckError as error:
            report = error.report
        path = report.save(tmp_path / "page.html", overwrite=True)
        return Page(path.read_text("utf-8"))

    return write


def plots(page):
    """Return the descriptions of all plots."""
    return [a["aria-label"] for a in page.of("svg") if "aria-label" in a]


def marks(page, kind):
    """Return how many points of a kind all plots have; one stands in the legend."""
    paths = [a["d"] for a in page.of("path") if a.get("class", "").endswith(kind)]
    return sum(path.count("M") for path in paths) - 1


def test_a_page_needs_nothing_from_elsewhere(page_of):
    page = page_of((F.linear, transposed), X, W)
    assert not {"script", "link", "iframe", "object", "img"} & {
        tag for tag, a in page.tags if not a.get("src", "").startswith("data:image/png;base64,")
    }
    addresses = [a["href"] for a in page.of("a") if not a["href"].startswith("#")]
    assert {address.partition("#")[0] for address in addresses} == {PAGE}


def test_the_kind_of_error_stands_in_words(page_of):
    page = page_of((F.linear, transposed), X, W)
    assert "Kind of error: backward is 1/4 of the derivative; 4 is the batch size." in page.text
    assert "Kind of error: transposed." in page.text


def test_a_right_gradient_has_no_kind_of_error(page_of):
    page = page_of(F.linear, X, W)
    assert "gradcheck of linear: passed" in page.text
    assert "Kind of error" not in page.text


def test_points_off_the_line_are_counted(page_of):
    assert "20 points, 20 of them off the line y = x" in plots(
        page_of((F.linear, transposed), X, W)
    )


def test_points_on_the_line_are_counted(page_of):
    assert "25 points, 0 of them off the line y = x" in plots(page_of(F.linear, X, W))


def test_a_corner_is_marked_in_both_plots(page_of):
    assert marks(page_of(F.relu, np.array([-1.0, 0.0, 0.0, 2.0])), "cross corner") == 4


def test_a_zero_is_marked_in_both_plots(page_of):
    assert marks(page_of(F.relu, np.array([-1.0, 3.0, 1.0, 2.0])), "square zero") == 2


def test_the_map_shows_where_the_errors_are(page_of):
    def backward(dy, cache):
        dx, dW = F.linear_backward(dy, cache)
        dW[2, 3] += 1.0
        return dx, dW

    page = page_of((F.linear, backward), X, W)
    index, _ = pixels(page.of("img")[1]["src"])
    assert index.shape == (5, 5)
    assert np.unravel_index(index.argmax(), index.shape) == (2, 3)
    assert np.delete(index.ravel(), 13).max() < 20


def test_the_errors_over_the_step_of_a_wrong_gradient_stay_large(page_of):
    page = page_of(((lambda x: (x**3, x)), lambda dy, x: dy * x**2), X)
    (label,) = [label for label in plots(page) if "differences come within" in label]
    assert min(map(float, re.findall(r"\d\.\de[-+]\d\d", label))) > 1e-3


def test_the_errors_over_the_step_of_a_right_gradient_become_small(page_of):
    page = page_of(((lambda x: (x**3, x)), lambda dy, x: 3.0 * dy * x**2), X)
    (label,) = [label for label in plots(page) if "differences come within" in label]
    assert max(map(float, re.findall(r"\d\.\de[-+]\d\d", label))) < 1e-7


def test_a_table_has_the_largest_errors(page_of):
    page = page_of((F.linear, transposed), X, W)
    rows = page.table_after("entry", "", "backward")[0]
    assert len(rows) == 12
    errors = [float(row[-1]) for row in rows]
    assert errors == sorted(errors, reverse=True)


def test_a_large_tensor_is_shown_along_directions(page_of):
    page = page_of(F.linear, np.random.default_rng(0).normal(size=(20, 5)), W)
    assert "8 points, 0 of them off the line y = x" in plots(page)


def test_nan_is_drawn_as_wrong(page_of):
    page = page_of(((lambda x: (x**2, x)), lambda dy, x: np.full_like(x, np.nan)), X)
    assert "20 points, 20 of them off the line y = x" in plots(page)


def test_broken_rules_are_listed(page_of):
    def backward(dy, x):
        dy *= 2.0
        return dy * x

    page = page_of(((lambda x: (x**2, x)), backward), X)
    assert "Broken rules" in page.text
    assert "the backward pass changed its dy" in page.text


def test_what_scrolls_is_reached_by_the_keyboard(page_of):
    page = page_of((F.linear, transposed), X, W)
    boxes = [a for a in page.of("div") if a.get("class") == "scroll"]
    assert boxes
    assert all(box["tabindex"] == "0" for box in boxes)


def test_a_page_that_is_there_stays(tmp_path):
    report = nf.gradcheck(F.linear, X, W)
    report.save(tmp_path / "page.html")
    with pytest.raises(FileExistsError, match="expected a new name"):
        report.save(tmp_path / "page.html")


@pytest.mark.parametrize("title", sorted(set(TITLES.values())))
def test_a_link_leads_to_a_heading_of_the_museum(title):
    assert re.search(rf"^### {re.escape(title)}$", MUSEUM.read_text("utf-8"), re.MULTILINE)


def test_an_anchor_is_made_as_hosts_make_it():
    assert anchor("3. Dropout still scales by 1 / (1 - p).") == "3-dropout-still-scales-by-1--1---p"


@pytest.mark.parametrize(
    ("kind", "words", "number"),
    [
        ("transposed", "transposed", "34"),
        ("factor", "backward is 1/3 of the derivative; 3 is the batch size", "1"),
        ("factor", "backward is 1/3 of the derivative; 3 is the length", None),
        ("factor", "so 1 / p stands for 1 / (1 - p)", "39"),
        ("reversed", "in reverse order along axis 1", None),
    ],
)
def test_a_pattern_of_the_museum_has_a_link(kind, words, number):
    link = museum_link(kind, words)
    assert (link[0].split(".")[0] if link else None) == number


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis("x", 0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
        (Axis("x", -0.3, 0.21), [-0.2, 0.0, 0.2]),
        (Axis("x", 1e-12, 1.0, log=True), [1e-12, 1e-9, 1e-6, 1e-3, 1.0]),
    ],
)
def test_ticks_are_round_numbers(axis, ticks):
    np.testing.assert_allclose(axis.ticks(), ticks, atol=1e-15)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(browser, tmp_path, width):
    with pytest.raises(nf.GradcheckError) as caught:
        nf.gradcheck((F.linear, transposed), X, W)
    file = caught.value.report.save(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()
