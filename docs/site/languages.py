"""Tell browsers and screen readers the language of a page: ``name.zh.md`` is Chinese."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def language_of(page: str) -> str:
    """Return the language of a page from the end of its name; English if there is none."""
    ending = PurePosixPath(page).suffix.removeprefix(".")
    return ending if len(ending) == 2 else "en"


def _state(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    context["language"] = language_of(page)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("html-page-context", _state)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
