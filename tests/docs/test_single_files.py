"""The README and the first page show the examples in single files as they are today."""

import re

import pytest

from docs.site.single_files import (
    COMMAND,
    FILES,
    PAGES,
    excerpt,
    outputs_in,
    rewritten,
    run,
)

CASES = [pytest.param(page, folder, id=page.name) for page, folder in PAGES.items()]


def without_numbers(printed):
    """Return an output's form: other machines round differently, and the GPT writes other words."""
    before_the_play = printed.partition("First Citizen:")[0]
    return re.sub(r"\d[\d.e+-]*", "#", before_the_play)


@pytest.mark.parametrize(("page", "folder"), CASES)
def test_the_counts_of_lines_are_current(page, folder):
    text = page.read_text("utf-8")
    assert rewritten(text, folder, outputs_in(text)) == text, COMMAND


def test_all_pages_show_the_same_output():
    readme, *others = (outputs_in(page.read_text("utf-8")) for page in PAGES)
    assert {*readme} == {file.name for file in FILES}
    assert others == [readme]


@pytest.mark.slow
@pytest.mark.parametrize("file", [pytest.param(file, id=file.name) for file in FILES])
def test_a_file_prints_what_the_pages_show(file):
    readme, *_ = PAGES
    shown = outputs_in(readme.read_text("utf-8"))[file.name]
    printed = excerpt(run(file.name), file.first, file.last)
    assert without_numbers(printed) == without_numbers(shown), COMMAND


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        pytest.param("a\nb\nc\nd\n", "a\n...\nd\n", id="longer than both ends"),
        pytest.param("a\nb \n", "a\nb\n", id="as long as both ends"),
    ],
)
def test_an_excerpt_has_dots_where_lines_are_left_out(printed, expected):
    assert excerpt(printed, first=1, last=1) == expected


def test_a_page_without_a_place_for_the_files_is_refused():
    with pytest.raises(ValueError, match="0 places for the single files"):
        rewritten("# T\n", "examples", {file.name: "" for file in FILES})
