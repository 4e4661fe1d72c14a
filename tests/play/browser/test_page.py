"""The page of npformer play in a real browser: trains, looks inside, draws, breaks, comes back."""

import numpy as np
from safetensors.numpy import load_file

from tests.play.browser.drawing import DIGITS, draw
from tests.play.browser.handling import number, start, steps, until, wait_for


def test_trains_digits_and_reads_what_a_mouse_draws(page):
    start(page, "attention")
    wait_for(page, "finished")
    assert number(page.inner_text(".accuracy")) >= 95
    page.click("#tab-try")
    for digit, strokes in DIGITS.items():
        page.click("#clear")
        draw(page, strokes)
        until(page, lambda digit=digit: page.locator("#digit").all_inner_texts() == [digit], 5.0)
        shares = [number(x) for x in page.locator(".bars .value").all_inner_texts()]
        assert np.argmax(shares) == int(digit)
    assert page.locator(".mixing canvas").count() == 4  # of one layer of four heads


def weights(server, run="run-1"):
    return load_file(server.folder / run / "checkpoint.safetensors")


def test_a_pause_and_single_steps_change_no_bit(page, server):
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
    paused = weights(server)
    start(page, "attention", **few)
    wait_for(page, "finished")
    for name, value in weights(server).items():
        assert np.array_equal(value, paused[name], equal_nan=True), name


def test_comes_back_after_the_server_was_started_again(page, server):
    start(page, "attention", epochs=200)
    until(page, lambda: steps(page) > 20)
    before = server.known
    server.stop()
    page.wait_for_selector("#connection.lost")
    step = steps(page)
    server.start()
    assert server.known == before
    assert (server.folder / "server.json").stat().st_mode & 0o777 == 0o600
    page.wait_for_selector("#connection:not(.lost)", timeout=20_000)
    wait_for(page, "paused")
    assert steps(page) >= step  # some may have been made after the page was cut off
    page.click("#pause")
    until(page, lambda: steps(page) > step + 20)
    page.click("#stop")
    wait_for(page, "stopped")
