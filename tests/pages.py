"""Pages in a browser, for tests."""

from contextlib import contextmanager


@contextmanager
def page_without_errors(browser, **options):
    """Give a new page; when it closes, neither its console nor its scripts have shown an error."""
    page = browser.new_page(**options)
    errors = []
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []
