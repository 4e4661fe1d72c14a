"""docs/afternoon.md counts the lines of today, and asks a question at every stop."""

import re

import pytest

from docs.site import reading_list
from docs.site.reading_list import PAGE, ROOT, STOP, lines_of_code, parts, rewritten
from tests.in_turn import separately

TEXT = PAGE.read_text("utf-8")


def test_the_counts_are_current():
    assert rewritten(TEXT) == TEXT, f"{reading_list.COMMAND}"


def test_a_file_that_grows_changes_the_table(tmp_path, monkeypatch):
    for _, files in parts(TEXT):
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text((ROOT / file).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(reading_list, "ROOT", tmp_path)
    assert rewritten(TEXT) == TEXT
    with (tmp_path / "npformer/functional/linear.py").open("a") as file:
        file.write("# one more line\n")
    assert rewritten(TEXT) != TEXT


def test_the_way_begins_with_the_whole_and_passes_each_file_once():
    files = [file for _, of_part in parts(TEXT) for file in of_part]
    assert files[:2] == ["examples/whole_encoder.py", "examples/one_step_by_hand.py"]
    assert len(files) > 30
    assert len(set(files)) == len(files)
    assert all((ROOT / file).is_file() for file in files)


def test_each_stop_says_what_to_look_for_and_asks_a_question_with_an_answer():
    starts = [found.start() for found in STOP.finditer(TEXT)]
    for start, end in zip(starts, [*starts[1:], TEXT.index("## Answers, checked")], strict=True):
        stop = TEXT[start:end]
        assert stop.count("\nLook for: ") == 1, stop
        assert len(re.findall(r"^\*[^*]+\?\*$", stop, re.MULTILINE)) == 1, stop
        answers = re.findall(r"<details><summary>Answer</summary>\n\n.+?\n\n</details>", stop, re.S)
        assert len(answers) == 1, stop


@separately(
    ('"""Doc."""\n\nx = 1  # said\n# a comment\n', 1),
    ('def f():\n    """Doc\n\n    of lines.\n    """\n    return """not\n    doc"""\n', 3),
    ("", 0),
)
def test_lines_of_code_are_neither_empty_nor_comments_nor_docstrings(text, expected):
    assert lines_of_code(text) == expected


def test_a_page_without_a_place_for_the_table_is_refused():
    with pytest.raises(ValueError, match="no place for the table"):
        rewritten("# T\n")
