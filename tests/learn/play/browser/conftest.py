"""What a test of the live page begins with."""

import pytest


@pytest.fixture
def page(browser, live):
    """Give the page, newly opened. In the end there is no error, and no request elsewhere."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []
    requests: list[str] = []
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(live.address)
    page.locator(".settings").wait_for()
    yield page
    page.close()
    ours = (f"http://127.0.0.1:{live.known['port']}/", "blob:", "data:")
    assert [url for url in requests if not url.startswith(ours)] == []
    assert [line for line in wrong if "ERR_CONNECTION_REFUSED" not in line] == []  # it restarts
