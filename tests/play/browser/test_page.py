"""The page of npformer play in a real browser: trains, looks inside, draws, breaks, comes back."""

import time

import numpy as np
import pytest
from safetensors.numpy import load_file

import npformer as nf
from tests.play.browser.drawing import DIGITS, draw

SMALL = {"d_model": 32, "d_ff": 64, "epochs": 12, "dropout": 0.1, "seed": 0}


def number(text: str) -> float:
    """Return what a number on the page says: it has a real minus sign."""
    return float(text.replace("−", "-").removesuffix(" %"))


def start(page, *mixers, lr=3e-3, task="digits", **settings):
    """Choose settings in the form, press Start, and wait for the runs."""
    page.click("#tab-train")
    page.select_option("#task", task)
    if not page.locator(".more[open]").count():
        page.click(".more summary")
    for name, value in (SMALL | settings).items():
        page.fill(f"input[name={name}]", str(value))
    while page.locator(".mixer").count() > 1:
        page.get_by_role("button", name="− layer").click()
    for k, mixer in enumerate(mixers):
        if k:
            page.click("#another")
        page.locator(".mixer").nth(k).select_option(mixer)
        page.locator(".lr").nth(k).fill(str(lr))
    page.click("#start")
    until(page, lambda: len(states(page)) == len(mixers))


def until(page, true, seconds=60.0):
    """Wait until something holds. Playwright's own way is for pages that allow eval."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, page.inner_text("body")
        page.wait_for_timeout(20)


def states(page):
    return page.locator(".named-state").all_inner_texts()


def wait_for(page, state):
    until(page, lambda: set(states(page)) == {state})


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


def steps(page) -> int:
    return int(page.inner_text(".steps"))


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
