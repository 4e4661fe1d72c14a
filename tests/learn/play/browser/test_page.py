"""The page of npformer play in a real browser: trains, looks inside, draws, breaks, comes back."""

import re
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.learn.play.browser.drawing import DIGITS, draw
from tests.learn.play.browser.handling import agree, number, start, states, steps, until, wait_for

pytestmark = pytest.mark.browser


def test_a_trained_model_recognizes_digits_drawn_with_a_mouse(page):
    start(page, "attention")
    wait_for(page, "finished")
    assert number(page.inner_text(".accuracy")) >= 95
    page.click("#tab-try")
    for digit, strokes in DIGITS.items():
        page.click("#clear")
        draw(page, strokes)
        until(page, lambda digit=digit: page.locator("#digit").all_inner_texts() == [digit])
        shares = [number(x) for x in page.locator(".bars .value").all_inner_texts()]
        assert np.argmax(shares) == int(digit)
    assert page.locator(".mixing canvas").count() == 4  # of one layer of four heads


def weights(live):
    return load_file(live.last / "checkpoint.safetensors")


def test_pausing_changes_no_bit(page, live):
    few = {"epochs": 3}
    start(page, "attention", **few)
    page.click("#pause")
    wait_for(page, "paused")
    before = steps(page)
    assert before < 3 * 40
    page.wait_for_timeout(300)
    assert steps(page) == before
    for k in (1, 2, 3):
        page.click("#one-step")
        until(page, lambda k=k: steps(page) == before + k)
    page.click("#pause")  # it says "Go on" now
    wait_for(page, "finished")
    paused = weights(live)
    start(page, "attention", **few)
    wait_for(page, "finished")
    for name, value in weights(live).items():
        assert np.array_equal(value, paused[name], equal_nan=True), name


def test_comes_back_after_the_server_was_started_again(page, live):
    start(page, "attention", epochs=200)
    until(page, lambda: steps(page) > 20)
    before = live.known
    live.stop()
    page.wait_for_selector("#connection.lost")
    step = steps(page)
    page.click("#start")
    agree(page)
    page.locator("#message", has_text="npformer play does not answer; start it again").wait_for()
    live.start()
    assert {live.known[name] == before[name] for name in ("port", "token")} == {True}
    assert (live.folder / "server.json").stat().st_mode & 0o777 == 0o600
    page.wait_for_selector("#connection:not(.lost)", timeout=20_000)
    wait_for(page, "from an earlier time")  # it does not go on by itself
    assert "parameters" not in page.inner_text(".runs")  # nobody knows how many
    assert steps(page) >= step  # some may have been made after the page was cut off
    assert "loads it" in page.inner_text(".runs")
    page.click("#tab-try")
    assert "from an earlier time" in page.inner_text("#try .empty")
    page.click("#tab-train")
    page.click("#pause")
    assert page.is_hidden("#message")  # what was wrong is over
    until(page, lambda: steps(page) > step + 20)
    page.click("#stop")
    wait_for(page, "stopped")


def test_a_run_that_was_finished_says_how_far_it_came(page, live):
    start(page, "attention", epochs=2)
    wait_for(page, "finished")
    live.stop()
    live.start()
    wait_for(page, "from an earlier time")
    state = page.locator(".runs .state").first.inner_text()
    assert "epoch 2 of 2 · step 80 of 80 · “Go on”" in state
    assert page.evaluate("document.querySelector('progress').position") == 1
    page.click("#pause")
    wait_for(page, "finished")


def test_a_second_page_steers_the_same_run_by_the_keyboard(page, browser, live):
    start(page, "attention", epochs=200)
    other = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    other.goto(live.address)
    other.locator(".steps").wait_for()
    until(other, lambda: steps(other) > 0)
    other.focus("#pause")
    other.keyboard.press("Enter")
    for tab in (page, other):
        wait_for(tab, "paused")
    assert steps(page) == steps(other) > 0
    other.focus("#tab-train")
    other.keyboard.press("ArrowRight")
    until(other, lambda: other.locator(".map button").count() > 10)
    assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
    title = other.inner_text(".detail h3")
    other.focus(".map button")
    other.keyboard.press("ArrowRight")
    assert other.inner_text(".detail h3") != title
    other.click("#tab-try")
    other.locator(".paper").wait_for()
    start(page, "fourier", task="parity", epochs=200)
    other.locator("#sentence").wait_for()  # the other page follows
    other.close()
    page.click("#stop")
    wait_for(page, "stopped")


def test_exports_a_page_that_runs_without_the_server(page, browser, tmp_path):
    start(page, "attention", epochs=8)
    wait_for(page, "finished")
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(path := tmp_path / "page.html")
    alone = browser.new_page()
    requests = []
    wrong = []
    alone.on("request", lambda request: requests.append(request.url))
    alone.on("console", lambda line: wrong.append(line.text))
    alone.goto(path.as_uri())
    draw(alone, DIGITS["3"])
    until(alone, lambda: alone.locator("#digit").all_inner_texts() == ["3"])
    alone.close()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert wrong == []


def test_markup_in_a_file_is_shown_as_text(page, tmp_path):
    hostile = "<img src=x onerror=alert(1)>"
    lines = ["words,kind"]
    for good in ("good", "bad"):
        lines += [f"it is {good} {k},{good}{hostile}" for k in range(40)]
    (tmp_path / "own.csv").write_text("\n".join(lines), "utf-8")
    start(page, "attention", task="file", epochs=4, file=tmp_path / "own.csv")
    for name, column in {"text_column": "words", "label_column": "kind"}.items():
        assert page.input_value(f"select[name={name}]") == column
    wait_for(page, "finished")
    assert "of 8 samples; always the most frequent label: 50.0 %" in page.inner_text(".runs")
    assert "always the most frequent label 50.0 %" in page.inner_text(".plots")
    page.click("#tab-try")
    page.fill("#sentence", "")
    until(page, lambda: "An empty box" in page.inner_text(".answer"))
    assert page.locator("#try :is(.bars, .tokens, .mixing):visible").count() == 0
    page.fill("#sentence", f"it is good {hostile}")
    until(page, lambda: "good" in page.inner_text(".tokens"))
    assert hostile in page.inner_text(".bars")
    assert page.inner_text(".answer b") == f"good{hostile}"
    shares = [number(x) for x in page.locator(".bars .value").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    page.click("#tab-step")
    until(page, lambda: page.locator(".map path").count() > 1)
    answers = page.locator(".samples [aria-pressed=true] .label b").all_inner_texts()
    assert answers == [page.inner_text("#right")]
    assert page.inner_text(".ids").startswith("it")  # words, not numbers as colours
    assert page.locator("main img").count() == 0


def test_a_table_opens_with_its_columns_as_menus(browser, tmp_path):
    rows = [f"{k % 2},the news number {k} is {'good' if k % 2 else 'bad'}" for k in range(60)]
    (tmp_path / "news.csv").write_text("\n".join(["topic,headline", *rows]), "utf-8")
    command = [sys.executable, "-u", "-m", "npformer", "play", "news.csv", "--no-open"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        page = browser.new_page()
        page.goto(process.stdout.readline().strip())
        page.locator("#task").wait_for()
        assert page.input_value("#task") == "file"
        for name, column in {"text_column": "headline", "label_column": "topic"}.items():
            assert page.input_value(f"select[name={name}]") == column
            options = page.locator(f"select[name={name}] option")
            assert options.all_inner_texts() == ["topic", "headline"]
        if not page.locator(".more[open]").count():
            page.click(".more summary")
        assert page.input_value("input[name=epochs]") == "100"  # as npformer train has for so few
        assert page.input_value("input[name=batch_size]") == "8"
        page.click("#start")
        until(page, lambda: states(page) in (["training"], ["finished"]))
        page.close()
        process.terminate()


@pytest.mark.parametrize(("mixer", "moved"), [("identity", 1), ("fourier", 12)])
def test_an_edited_token_moves_what_its_mixer_lets_it(page, mixer, moved):
    start(page, mixer, task="parity", epochs=1)
    wait_for(page, "finished")
    page.click("#tab-try")
    until(page, lambda: page.locator(".tokens button").count() == 12)
    page.locator(".tokens button").nth(4).click()
    is_one = page.locator(".tokens button").nth(4).inner_text() == "1"
    page.fill("#word", "0" if is_one else "1")
    page.click("#edit")
    until(page, lambda: page.locator(".moved td").count() == 12)
    cells = page.locator(".moved td").all_inner_texts()
    assert sum("still" not in cell for cell in cells) == moved
    assert "still" not in cells[4]


def test_writes_token_by_token(page):
    start(page, "attention", task="text", epochs=1, d_model=32)
    page.click("#pause")
    wait_for(page, "paused")
    page.click("#tab-try")
    page.fill("#text", "First Citizen")
    page.locator("#temperature").fill("0")
    page.click("#one")
    until(page, lambda: len(page.input_value("#text")) == 14)
    shares = [number(x) for x in page.locator(".bars .value").all_inner_texts()]
    assert len(shares) == 20
    assert shares == sorted(shares, reverse=True)
    assert page.locator(".bars li").first.get_attribute("class").split() == ["best"]
    assert "with the KV cache" in page.inner_text("#times")


def test_a_translation_shows_three_attentions(page):
    start(page, "attention", task="reverse", epochs=1)
    page.click("#pause")
    wait_for(page, "paused")
    page.click("#tab-try")
    page.fill("#source", "abcd")
    until(page, lambda: page.locator(".three h3").count() == 3)
    until(
        page, lambda: page.locator(".three .mixing canvas").count() == 12
    )  # three times four heads
    page.fill("#source", "")
    until(page, lambda: page.locator(".three .mixing").count() == 0)
    page.click("#tab-step")
    until(page, lambda: page.locator(".map path").count() > 40)
    until(page, lambda: "✗ says" in page.inner_text(".samples"))  # after one epoch, most are wrong
    assert "label" in page.inner_text(".samples")
    boxes = page.locator(".map path").evaluate_all("(all) => all.map((path) => path.getBBox().y)")
    assert min(boxes) >= 0  # no line leaves the diagram


def test_gradcheck_finds_a_bug_that_trains_beside_the_healthy_model(page):
    page.click("#tab-break")
    page.select_option("#bug", "LayerNormWithoutGamma")
    page.click("#break-start")
    agree(page)
    until(page, lambda: "with the bug" in page.inner_text("#break"))
    assert "on handwritten digits" in page.inner_text(".line:has(#break-start)")
    page.click("#gradcheck")
    until(page, lambda: page.locator("#verdict").count() == 1)
    assert "wrong" in page.inner_text("#verdict")
    assert page.locator("td.wrong").count() >= 1
    until(page, lambda: "blocks.0.mixer by" in page.inner_text("#angles"))
    assert "blocks.1" not in page.inner_text("#angles")
    assert re.match(r"Is [\d.]+° much\? For the training, no: ", page.inner_text("#judgement"))
    assert re.search(r"Two batches of 32 samples are [\d.]+° apart", page.inner_text("#judgement"))
    page.click("#tab-train")
    assert "stays in the folder" in page.inner_text("#fate")
    until(page, lambda: len(states(page)) == 2 and set(states(page)) <= {"training", "finished"})
