"""The page asks before it ends a run, and a question ends none."""

import pytest

from tests.learn.play.browser.handling import agree, start, states, steps, until, wait_for

pytestmark = pytest.mark.browser

GAMMA = "LayerNormWithoutGamma"


@pytest.fixture
def training(page):
    """Return the page while a run trains."""
    start(page, "attention", epochs=1000)
    until(page, lambda: steps(page) > 0)
    yield page
    page.click("#tab-train")
    page.click("#stop")
    wait_for(page, "stopped")


def test_gradcheck_is_asked_while_a_model_trains(training):
    name = training.get_attribute("[data-run]", "data-run")
    training.click("#tab-break")
    training.select_option("#bug", GAMMA)
    training.click("#gradcheck")
    until(training, lambda: training.locator("#verdict").count() == 1)
    assert training.inner_text("#verdict") == "1 of 3 gradients are wrong."
    assert training.locator("dialog").count() == 0
    training.click("#tab-train")
    assert training.get_attribute("[data-run]", "data-run") == name
    assert states(training) == ["training"]
    before = steps(training)
    until(training, lambda: steps(training) > before)


def test_a_start_says_what_it_ends_before(training):
    before = training.get_attribute("[data-run]", "data-run")
    training.click("#start")
    words = training.inner_text("dialog")
    assert "This ends a run" in words
    assert f"{before} (attention) is training, at step" in words
    requests = []
    training.on("request", lambda request: requests.append(request.url))
    training.keyboard.press("Escape")  # no
    training.wait_for_selector("dialog", state="detached")
    training.wait_for_timeout(500)
    assert [url for url in requests if url.endswith("/start")] == []
    assert training.get_attribute("[data-run]", "data-run") == before
    assert states(training) == ["training"]


def test_the_question_begins_with_no(training):
    training.focus("#start")
    training.keyboard.press("Enter")
    assert training.evaluate("document.activeElement.value") == "no"
    training.keyboard.press("Enter")
    training.wait_for_selector("dialog", state="detached")
    assert training.evaluate("document.activeElement.id") == "start"


def test_a_bug_asks_before_it_trains_instead_of_a_run(training):
    training.click("#tab-break")
    training.click("#break-start")
    training.locator("dialog", has_text="This ends a run").wait_for()
    training.click("dialog button[value=no]")
    training.click("#tab-train")
    assert states(training) == ["training"]


def test_after_yes_the_new_run_is_shown(training):
    before = training.get_attribute("[data-run]", "data-run")
    training.click("#start")
    agree(training)
    until(training, lambda: training.get_attribute("[data-run]", "data-run") != before)


def test_a_finished_run_is_not_asked_about(page):
    start(page, "attention", epochs=1)
    wait_for(page, "finished")
    page.click("#start")
    until(page, lambda: states(page) != ["finished"])
    assert page.locator("dialog").count() == 0
    until(page, lambda: steps(page) > 0)
