"""Break it: nothing is empty, and an angle is judged."""

import math

import pytest

from tests.learn.play.browser.handling import agree, start, until, wait_for

pytestmark = pytest.mark.browser

EMPTY = ("nothing yet", "appears after")


def judged(page, angle, apart=None):
    """Return what angles.js says about an angle, in degrees."""
    return page.evaluate(
        "(degrees) => import('/static/angles.js').then(({ judged }) => judged(...degrees))",
        [angle, apart],
    )


@pytest.mark.parametrize(
    ("angle", "words"), [(1.4, "no"), (30, "somewhat"), (80, "yes"), (120, "yes")]
)
def test_an_angle_is_judged_for_the_training(page, angle, words):
    assert f"For the training, {words}: " in judged(page, angle)


@pytest.mark.parametrize("angle", [1.4, 30, 80])
def test_a_turned_step_goes_as_far_as_the_cosine(page, angle):
    share = f"{100 * math.cos(math.radians(angle)):.{2 if angle < 5 else 1}f} %"
    assert f"still goes {share} as far downhill" in judged(page, angle)


def test_beyond_a_right_angle_a_step_goes_uphill(page):
    assert "goes uphill" in judged(page, 120)


@pytest.mark.parametrize(
    ("apart", "words"),
    [
        (71.3, "71.3° apart in the same layer, so chance turns a single step more than the bug"),
        (0.5, "0.5° apart in the same layer, so the bug turns a step more than chance"),
    ],
)
def test_an_angle_is_compared_with_that_of_two_batches(page, apart, words):
    assert words in judged(page, 1.4, apart)


def test_any_angle_is_much_for_a_check(page):
    assert "For a check, yes: rounding turns a gradient by less than 0.01°" in judged(page, 1.4)


def visible_words(page):
    """Return the text of the view, and what its charts say."""
    labels = page.locator("#break canvas:visible").evaluate_all(
        "(all) => all.map((canvas) => canvas.ariaLabel)"
    )
    return "\n".join([page.inner_text("#break"), *map(str, labels)])


def test_before_a_training_it_says_what_will_be_seen(page):
    start(page, "attention", epochs=1)
    wait_for(page, "finished")
    page.click("#tab-break")
    assert "What you will see here" in page.inner_text("#ahead")
    assert page.locator("#break :is(canvas, .part, .numbers):visible").count() == 0


@pytest.fixture
def broken(page):
    """Return the page with a bug that trains."""
    page.click("#tab-break")
    page.select_option("#bug", "attention_that_asks_the_keys")
    page.click("#break-start")
    agree(page)
    until(page, lambda: "with the bug" in page.inner_text("#break"))
    yield page
    page.click("#tab-train")
    if page.is_enabled("#stop"):
        page.click("#stop")
    wait_for_end(page)


def wait_for_end(page):
    ended = {"stopped", "finished", "from an earlier time"}
    until(page, lambda: {*page.locator(".named-state").all_inner_texts()} <= ended)


def test_no_chart_is_empty_while_it_begins(broken):
    until(broken, lambda: broken.locator("#judgement:visible").count() == 1)
    until(broken, lambda: not any(words in visible_words(broken) for words in EMPTY), seconds=90)


def test_no_chart_is_empty_after_the_server_was_started_again(broken, live):
    until(broken, lambda: broken.locator("#judgement:visible").count() == 1)
    live.stop()
    broken.wait_for_selector("#connection.lost")
    live.start()
    broken.wait_for_selector("#connection:not(.lost)", timeout=20_000)
    until(broken, lambda: "from an earlier time" in broken.inner_text("#break"))
    until(broken, lambda: "Is " in broken.inner_text("#judgement"))
    assert not any(words in visible_words(broken) for words in EMPTY)


def test_another_bug_hides_the_answer_about_the_last(page):
    page.click("#tab-break")
    page.select_option("#bug", "LayerNormWithoutGamma")
    page.click("#gradcheck")
    until(page, lambda: page.locator("#verdict:visible").count() == 1)
    page.select_option("#bug", "LayerNormWithoutEpsilon")
    assert page.locator("#verdict:visible").count() == 0
