"""Each chapter ends with questions whose answers fold out, in front of where to read on."""

import re

import pytest

from docs.site.pages import DOCS

CHAPTERS = sorted((DOCS / "chapters").glob("*.md"))

QUESTION = re.compile(
    r"^\*(?P<question>[^\n*][^*]*\?)\*\n\n"
    r"<details><summary>Answer</summary>\n\n(?P<answer>.+?)\n\n</details>\n\n",
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_ends_with_two_to_four_questions_and_short_answers(page):
    headings = re.findall(r"^## .+", page.read_text("utf-8"), re.MULTILINE)
    assert headings[-2:] == ["## Questions", "## Read on"]
    text = page.read_text("utf-8").split("## Questions\n\n")[1].split("## Read on\n")[0]
    found = list(QUESTION.finditer(text))
    assert 2 <= len(found) <= 4
    assert QUESTION.sub("", text) == "", "nothing but questions and answers"
    for one in found:
        assert len(one["question"]) < 200
        assert len(one["answer"]) < 400
        assert not re.match(r"\d+[.)] ", one["answer"]), "Markdown takes it for a list"
