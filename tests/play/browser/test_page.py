"""The page of npformer play in a real browser: trains, looks inside, draws, breaks, comes back."""

import json
import re

import numpy as np
import pytest

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
    page.wait_for_function(
        "n => document.querySelectorAll('.runs .named-state').length === n", arg=len(mixers)
    )


def wait_for(page, state, timeout=60):
    page.wait_for_function(
        "state => [...document.querySelectorAll('.named-state')].every(n => n.textContent === state)",
        arg=state,
        timeout=1000 * timeout,
    )


def test_trains_digits_and_reads_what_a_mouse_draws(page):
    start(page, "attention")
    wait_for(page, "finished")
    assert number(page.inner_text(".accuracy")) >= 95
    page.click("#tab-try")
    for digit, strokes in DIGITS.items():
        page.click("#clear")
        draw(page, strokes)
        page.wait_for_function(
            "d => document.querySelector('#digit')?.textContent === d", arg=digit, timeout=5000
        )
        shares = [number(x) for x in page.locator(".bars .value").all_inner_texts()]
        assert np.argmax(shares) == int(digit)
    assert page.locator(".mixing canvas").count() == 4  # of one layer of four heads
