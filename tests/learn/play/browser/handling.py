"""What a person does on the page, and what they wait for."""

import time

SMALL = {"d_model": 32, "d_ff": 64, "epochs": 12, "dropout": 0.1, "seed": 0}


def number(text: str) -> float:
    """Return what a number on the page says: it has a real minus sign."""
    return float(text.replace("\N{MINUS SIGN}", "-").removesuffix(" %").removeprefix("< "))


def start(page, *mixers, lr=3e-3, task="digits", **settings):
    """Choose settings in the form, press Start, and wait for the runs."""
    page.click("#tab-train")
    page.select_option("#task", task)
    if not page.locator(".more[open]").count():
        page.click(".more summary")
    if file := settings.pop("file", None):  # whose columns become menus
        page.fill("input[name=file]", str(file))
        page.press("input[name=file]", "Tab")
        page.locator("select[name=text_column]").wait_for()
    for name, value in (SMALL | settings).items():
        page.fill(f"input[name={name}]", str(value))
    while page.locator(".mixer").count() > 1:
        page.click("#fewer-layers")
    for k, mixer in enumerate(mixers):
        if k:
            page.click("#another")
        page.locator(".mixer").nth(k).select_option(mixer)
        page.locator(".lr").nth(k).fill(str(lr))
    with page.expect_response("**/api/start"):
        page.click("#start")
        agree(page)
    page.wait_for_timeout(50)  # the page reads the answer
    until(page, lambda: len(states(page)) == len(mixers))


def agree(page):
    """Say yes if the page asks whether runs may end."""
    if page.locator("dialog[open]").count():
        page.click("dialog[open] .main")


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


def steps(page) -> int:
    return int(page.inner_text(".steps"))
