"""The curves: what they show of training and validation, their axes, and the keyboard."""

import re

import pytest

from tests.learn.play.browser.handling import agree, number, start, states, until, wait_for

pytestmark = pytest.mark.browser

HEIGHT = 190
"""Pixels between the ends of an axis of accuracies."""


@pytest.fixture
def learned(page):
    start(page, "attention", epochs=3)
    wait_for(page, "finished")
    return page


def chart(page, title):
    """Return the figure with a title."""
    return page.locator("#train .plot", has=page.locator(f"figcaption b:text-is('{title}')"))


def legend(page, title):
    """Return the lines of a chart with the values beside them."""
    items = chart(page, title).locator(".legend button").all_inner_texts()
    return {re.sub(r"\s*\S+( %)?$", "", item): item.split(" ", 1)[-1] for item in items}


@pytest.mark.parametrize("title", ["Loss", "Accuracy"])
def test_training_and_validation_are_in_one_chart(learned, title):
    assert {"training", "validation"} <= set(legend(learned, title))


def test_the_values_are_those_that_were_measured(learned):
    learned.click("#train .numbers summary")
    rows = learned.locator("#train .numbers tbody tr")
    until(learned, lambda: rows.count() == 3)
    cells = rows.last.locator("td").all_inner_texts()
    assert cells[:2] == ["3", "120"]
    shown = chart(learned, "Loss").locator(".legend b").all_inner_texts()
    assert [number(cell) for cell in cells[2:4]] == pytest.approx(
        [number(value) for value in shown], rel=6e-3
    )


def test_arrow_keys_go_from_epoch_to_epoch(learned):
    losses = chart(learned, "Loss")
    losses.locator("canvas").focus()
    learned.keyboard.press("Home")
    learned.keyboard.press("End")
    assert losses.locator("output").inner_text().startswith("step 120, epoch 3: training ")
    learned.keyboard.press("ArrowLeft")
    assert losses.locator("output").inner_text().startswith("step 80, epoch 2: training ")
    assert losses.locator(".legend li").first.inner_text() == "step 80, epoch 2:"
    learned.keyboard.press("Tab")
    assert losses.locator(".legend li").first.inner_text() == ""


def test_a_line_is_hidden_by_its_name(learned):
    accuracies = chart(learned, "Accuracy")
    before = accuracies.locator("canvas").evaluate("(canvas) => canvas.toDataURL()")
    line = accuracies.locator(".legend button", has_text="training")
    line.focus()
    learned.keyboard.press("Enter")
    assert line.get_attribute("aria-pressed") == "false"
    assert accuracies.locator("canvas").evaluate("(canvas) => canvas.toDataURL()") != before
    learned.keyboard.press("Enter")
    assert accuracies.locator("canvas").evaluate("(canvas) => canvas.toDataURL()") == before


def test_a_screen_reader_hears_the_last_values(learned):
    label = chart(learned, "Accuracy").locator("canvas").get_attribute("aria-label")
    assert re.match(r"Accuracy, at the end: training [\d.]+ %, validation [\d.]+ %", label)


def test_the_last_half_has_its_own_axis(learned):
    losses = chart(learned, "Loss").locator("canvas")
    before = losses.evaluate("(canvas) => canvas.toDataURL()")
    learned.locator("#train .part").select_option("0.5")
    assert losses.evaluate("(canvas) => canvas.toDataURL()") != before


def test_an_axis_that_somebody_chose_stays(learned):
    axis = chart(learned, "Accuracy").locator("select")
    other = "even" if axis.input_value() == "error" else "error"
    axis.select_option(other)
    learned.locator("#train .part").select_option("0.5")
    learned.locator("#train .part").select_option("0")
    assert axis.input_value() == other


@pytest.mark.parametrize(
    ("task", "settings", "expected"),
    [
        ("digits", {"epochs": 6}, {"Accuracy": "error", "Loss": "log"}),
        ("parity", {"epochs": 1}, {"Accuracy": "even", "Loss": "even"}),
    ],
)
def test_an_axis_suits_what_was_learned(page, task, settings, expected):
    start(page, "attention", task=task, **settings)
    wait_for(page, "finished")
    chosen = {title: chart(page, title).locator("select").input_value() for title in expected}
    assert chosen == expected


def axes(page, expression):
    """Return what an expression of axes.js is worth."""
    return page.evaluate(f"import('/static/axes.js').then((axes) => {expression})")


@pytest.mark.parametrize(
    ("values", "scale"),
    [([0.1, 0.9, 0.97, 0.983], "error"), ([0.96, 0.97, 0.983], "even"), ([0.55, 0.6], "even")],
)
def test_three_tenths_of_a_percent_are_seen(page, values, scale):
    """They are four pixels at least, beside the best of the values."""
    low, high = axes(page, f"axes.range({values}, axes.SCALES.{scale})")
    heights = axes(page, f"[{max(values) - 0.003}, {max(values)}].map(axes.SCALES.{scale}.up)")
    assert HEIGHT * (heights[1] - heights[0]) / (high - low) > 4


@pytest.mark.parametrize("scale", ["even", "log", "error"])
@pytest.mark.parametrize("values", [[0.2, 0.9], [0.5, 0.5], [0.3], [0.001, 0.002]])
def test_no_curve_touches_the_edge(page, scale, values):
    low, high = axes(page, f"axes.range({values}, axes.SCALES.{scale})")
    heights = axes(page, f"{values}.map(axes.SCALES.{scale}.up)")
    room = 0.04 * (high - low)
    assert low + room < min(heights)
    assert max(heights) < high - room


def test_ticks_close_together_have_different_labels(page):
    ticks = "[0.971, 0.972, 0.973]"
    assert axes(page, f"axes.labels({ticks}, axes.shareLabel)") == ["97.1 %", "97.2 %", "97.3 %"]


def test_epochs_are_whole_numbers(page):
    assert axes(page, "axes.wholeTicks(0, 3, 9)") == [0, 1, 2, 3]


def said(page, *epochs):
    """Return what fitting.js says about (epoch, training loss, validation loss)."""
    points = [
        {"epoch": epoch, "step": 10 * epoch, "train_loss": train, "validation_loss": validation}
        for epoch, train, validation in epochs
    ]
    return page.evaluate(
        "(points) => import('/static/fitting.js').then(({ fitting }) => fitting(points))", points
    )


FALLS = [(1, 0.9, 0.9), (2, 0.7, 0.6)]


@pytest.mark.parametrize(
    ("later", "over"),
    [
        ([(3, 0.4, 0.8), (4, 0.2, 0.9), (5, 0.1, 1.0)], True),
        ([(3, 0.4, 0.8), (4, 0.2, 0.9)], False),  # two epochs may be an accident
        ([(3, 0.4, 0.8), (4, 0.2, 0.61), (5, 0.1, 1.0)], False),  # it came back
        ([(3, 0.7, 0.8), (4, 0.7, 0.9), (5, 0.7, 1.0)], False),  # the training loss stays
        ([(3, 0.6, 0.62), (4, 0.5, 0.63), (5, 0.4, 0.64)], False),  # so little is noise
    ],
)
def test_overfitting_is_named_where_it_is(page, later, over):
    answer = said(page, *FALLS, *later)
    assert answer["over"] == over
    assert "Least validation loss: 0.6, after epoch 2" in answer["words"]
    assert answer["words"].startswith("Overfitting.") == over


def test_one_epoch_says_nothing_about_overfitting(page):
    assert said(page, FALLS[0]) is None


def test_an_example_draws_overfitting_in_two_minutes(page):
    page.click("#tab-train")
    if page.locator("#examples:visible").count():
        page.click("#examples summary")
    page.get_by_role("button", name="Draw overfitting").click()
    agree(page)
    until(page, lambda: "Overfitting." in page.inner_text(".fitting"), seconds=120)
    until(page, lambda: states(page) == ["finished"], seconds=120)
    words = page.inner_text(".fitting")
    least, rose = re.search(r"loss: ([\d.]+),.* rose to ([\d.]+),", words).groups()
    assert float(rose) > 1.5 * float(least)
    assert page.input_value("input[name=samples]") == "200"
