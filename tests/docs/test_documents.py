"""What is written: each mixer's row, the glossary, the chapters' questions, the reading list."""

import re

import pytest

import npformer
from docs.site import reading_list
from docs.site.languages import language_of
from docs.site.pages import DOCS
from docs.site.reading_list import PAGE, ROOT, STOP, lines_of_code, parts, rewritten


@pytest.mark.parametrize("name", npformer.MIXERS)
def test_every_mixer_has_a_row_on_its_page(name):
    page = (DOCS / "mixers.md").read_text("utf-8")
    assert f"\n| `{name}` |" in page


@pytest.mark.parametrize(
    ("page", "language"),
    [
        ("questions/dense_or_conv.zh", "zh"),
        ("questions/dense_or_conv", "en"),
        ("reference/npformer.layers", "en"),
    ],
)
def test_the_end_of_a_name_tells_the_language(page, language):
    assert language_of(page) == language


# The glossary -------------------------------------------------------------------------------------
TEXT = (DOCS / "glossary.md").read_text("utf-8")
ENTRIES = {
    match[1]: match[2]
    for match in re.finditer(r"^\*\*(.+?)\.\*\* (.+?)(?=\n\n|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")


def test_the_words_are_in_their_order():
    words = [word.casefold() for word in ENTRIES]
    assert words == sorted(words)
    assert len(words) > 140


def links_of(word):
    """Return the links of an entry to pages, and its link to a file of the package, or ""."""
    links = LINK.findall(" ".join(ENTRIES[word].split()))
    file = links.pop() if "/npformer/" in links[-1] else ""
    return links, file


@pytest.mark.parametrize("word", ENTRIES)
def test_a_word_leads_to_a_page(word):
    links, file = links_of(word)
    assert re.search(r"\.md(#|$)", links[-1])
    assert (DOCS / (file or links[-1].partition("#")[0])).is_file()


@pytest.mark.parametrize("word", ENTRIES)
def test_a_word_has_a_meaning_of_one_sentence(word):
    """With a file beside the page, there is a second sentence about it."""
    _, file = links_of(word)
    entry = " ".join(ENTRIES[word].split())
    meaning = re.sub(r"\[(Chapter|Page)\].*", "", entry).replace("et al.", "et al")
    sentences = re.findall(r"\.(?= |$)", meaning.strip())
    assert len(sentences) == (2 if file else 1), meaning


# Each chapter's questions -------------------------------------------------------------------------
CHAPTERS = sorted((DOCS / "chapters").glob("*.md"))
QUESTION = re.compile(
    r"^\*(?P<question>[^\n*][^*]*\?)\*\n\n"
    r"<details><summary>Answer</summary>\n\n(?P<answer>.+?)\n\n</details>\n\n",
    re.MULTILINE | re.DOTALL,
)


def questions_at_the_end(page):
    """Return the text between the headings "Questions" and "Read on", which are the last ones."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^## .+", text, re.MULTILINE)
    assert headings[-2:] == ["## Questions", "## Read on"]
    return text.split("## Questions\n\n")[1].split("## Read on\n")[0]


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_ends_with_two_to_four_questions(page):
    text = questions_at_the_end(page)
    assert 2 <= len(QUESTION.findall(text)) <= 4
    assert QUESTION.sub("", text) == "", "nothing but questions and answers"


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_question_has_a_short_answer(page):
    for match in QUESTION.finditer(questions_at_the_end(page)):
        assert len(match["question"]) < 200
        assert len(match["answer"]) < 400
        assert not re.match(r"\d+[.)] ", match["answer"]), "Markdown takes it for a list"


# docs/afternoon.md --------------------------------------------------------------------------------
WAY = PAGE.read_text("utf-8")


def test_the_counts_are_current():
    assert rewritten(WAY) == WAY, f"{reading_list.COMMAND}"


def test_a_file_that_grows_changes_the_table(tmp_path, monkeypatch):
    for _, files in parts(WAY):
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text((ROOT / file).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(reading_list, "ROOT", tmp_path)
    assert rewritten(WAY) == WAY
    with (tmp_path / "npformer/functional/linear.py").open("a") as file:
        file.write("# one more line\n")
    assert rewritten(WAY) != WAY


def files_on_the_way():
    return [file for _, files in parts(WAY) for file in files]


def test_the_way_begins_with_the_whole():
    expected = ["examples/whole_encoder.py", "examples/one_step_by_hand.py"]
    assert files_on_the_way()[:2] == expected


def test_the_way_passes_each_file_once():
    files = files_on_the_way()
    assert len(files) > 30
    assert len(set(files)) == len(files)
    assert all((ROOT / file).is_file() for file in files)


def stops():
    """Return the text of each stop on the way."""
    starts = [match.start() for match in STOP.finditer(WAY)]
    ends = [*starts[1:], WAY.index("## Answers, checked")]
    return [WAY[start:end] for start, end in zip(starts, ends, strict=True)]


def test_each_stop_says_what_to_look_for():
    for stop in stops():
        assert stop.count("\nLook for: ") == 1, stop


def test_each_stop_asks_a_question_with_an_answer():
    for stop in stops():
        assert len(re.findall(r"^\*[^*]+\?\*$", stop, re.MULTILINE)) == 1, stop
        answers = re.findall(r"<details><summary>Answer</summary>\n\n.+?\n\n</details>", stop, re.S)
        assert len(answers) == 1, stop


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""Doc."""\n\nx = 1  # said\n# a comment\n', 1),
        ('def f():\n    """Doc\n\n    of lines.\n    """\n    return """not\n    doc"""\n', 3),
        ("", 0),
    ],
)
def test_lines_of_code_are_neither_empty_nor_comments_nor_docstrings(text, expected):
    assert lines_of_code(text) == expected


def test_a_page_without_a_place_for_the_table_is_refused():
    with pytest.raises(ValueError, match="no place for the table"):
        rewritten("# T\n")
