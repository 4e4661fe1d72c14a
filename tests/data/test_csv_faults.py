"""Faults of a CSV table: all in one message, each with its line and its repair."""

import csv
import re
from pathlib import Path

import pytest

from npformer.data.csv_table import read_csv_table

RIGHT = 'the plot was fine,good\n"bad, so bad",bad\nwe liked it a lot,good\n'
HEADING = "text,label\n"
FILE = Path("reviews.csv")


def message_of(text: str) -> str:
    with pytest.raises(ValueError, match="cannot be read") as caught:
        read_csv_table(FILE, text)
    return str(caught.value)


def repairs_of(text: str) -> dict[int, str]:
    """Return the repaired line that a message shows, by line number."""
    shown = re.findall(r"\n  line (\d+) .*:\n    (.*)", message_of(text))
    return {int(line): repaired for line, repaired in shown}


REPAIRS = {
    "inner marks": ('"so "awful" it was, yes",bad', '"so ""awful"" it was, yes",bad'),
    "an inner mark at the end": ('"so "awful"",bad', '"so ""awful""",bad'),
    "a mark that is not closed": ('"so awful,bad', '"so awful",bad'),
    "words behind a closing mark": ('"so" awful,bad', '"""so"" awful",bad'),
    "backslashes": (r'"so \"awful\" it was",bad', '"so ""awful"" it was",bad'),
    "a backslash at a delimiter": (r'"so \", awful",bad', '"so "", awful",bad'),
    "a space before a mark": ('so awful, "bad, too"', 'so awful,"bad, too"'),
    "a space behind a mark": ('"so awful" ,bad', '"so awful",bad'),
    "a comma in a text": ("so awful, it was,bad", '"so awful, it was",bad'),
    "a comma at the end": ("so awful,bad,", "so awful,bad"),
    "no label": ('"so awful"', '"so awful",<label>'),
}


@pytest.mark.parametrize(("faulty", "repaired"), REPAIRS.values(), ids=REPAIRS)
def test_a_fault_comes_with_its_line_and_the_line_repaired(faulty, repaired):
    assert repairs_of(f"{HEADING}{RIGHT}{faulty}\n{RIGHT}") == {5: repaired}


@pytest.mark.parametrize("repaired", [pair[1] for pair in REPAIRS.values()], ids=REPAIRS)
def test_a_repaired_line_can_be_read(repaired):
    table = read_csv_table(FILE, f"{HEADING}{RIGHT}{repaired}\n{RIGHT}")
    assert len(table.columns["text"]) == 7


def test_all_faults_are_named_at_once():
    faulty = "".join(f"{pair[0]}\n{RIGHT}" for pair in list(REPAIRS.values())[:5])
    assert [*repairs_of(HEADING + RIGHT + faulty)] == [5, 9, 13, 17, 21]


def test_faults_in_lines_that_follow_each_other_are_all_named():
    faulty = '"so awful,bad\n"so "awful" it was",bad\nso awful, it was,bad\n"so awful"\n'
    assert [*repairs_of(HEADING + RIGHT + faulty + RIGHT)] == [5, 6, 7, 8]


def test_more_faults_than_a_handful_are_counted():
    message = message_of(HEADING + (RIGHT + '"so "awful"",bad\n') * 40)
    assert "reviews.csv: 40 lines cannot be read" in message
    assert message.endswith("and 35 more")
    assert message.count(":\n    ") == 5


def test_a_text_of_several_lines_is_blamed_where_its_fault_is():
    faulty = '"so\nhow, why\nthen, it, too,\nit "really" was",bad\n'
    assert repairs_of(HEADING + RIGHT + faulty + RIGHT) == {8: 'it ""really"" was",bad'}


def test_a_mark_that_is_not_closed_is_blamed_in_its_own_line():
    faulty = '"so awful,bad\nwe liked it,good\n"we did not",bad\n'
    assert repairs_of(HEADING + RIGHT + faulty) == {5: '"so awful",bad'}


def test_a_mark_that_is_never_closed_takes_no_later_rows():
    message = message_of(f'{HEADING}{RIGHT}"so awful\n{RIGHT}')
    assert re.findall(r"\n  line (\d+)", message) == ["5"]
    assert "is never closed; expected one" in message


def test_line_breaks_that_only_python_counts_are_not_counted():
    faulty = '"a\x0bb",good\n"so "awful"\x85 it was",bad\n'
    assert [*repairs_of(HEADING + RIGHT + faulty)] == [6]


def test_a_heading_that_lacks_a_name_is_blamed_instead_of_all_rows():
    message = message_of(HEADING + "1,so awful,bad\n" * 20)
    assert "line 1 has 2 fields and 20 of 20 rows 3" in message
    assert "\n  line 2" not in message


def test_a_heading_that_lacks_a_name_hides_no_other_fault():
    message = message_of(HEADING + "1,so awful,bad\n" * 20 + '2,"so "awful"",bad\n')
    assert re.findall(r"\n  line (\d+)", message) == ["1", "22"]


def test_numbers_are_not_put_in_marks():
    message = message_of("x,y,label\n1,2,slow\n3,4,fast\n1,2,3,slow\n")
    assert "line 4 has 4 fields and the heading 3; expected the same number" in message


def test_a_long_line_is_shown_around_its_fault():
    long = "word " * 1000
    (shown,) = repairs_of(f'{HEADING}{RIGHT}"{long}"awful" {long}",bad\n').values()
    assert '""awful""' in shown
    assert len(shown) < 140


def test_pandas_is_named_once_for_many_backslashes():
    message = message_of(HEADING + (r'"so \"awful\" it was",bad' + "\n") * 4)
    assert message.count("escapechar") == 1


def test_a_short_row_is_filled_if_asked():
    table = read_csv_table(FILE, f'{HEADING}{RIGHT}"so awful"\n{RIGHT}', fill_short_rows=True)
    assert table.columns["label"][3] == ""


def test_a_long_row_is_no_short_row():
    with pytest.raises(ValueError, match="line 5 has 3 fields"):
        read_csv_table(FILE, f"{HEADING}{RIGHT}a,b,c\n", fill_short_rows=True)


@pytest.mark.parametrize(
    "rows",
    ['"so awful,bad\n', '"so awful\n', 'x,""y""\n', "a,b,c\n", '"a\n'],
    ids=["not closed", "not closed, no label", "pairs", "a comma", "short"],
)
def test_the_search_ends_soon_in_a_file_of_faults(rows, monkeypatch):
    n_read = 0
    reader = csv.reader

    def counted(lines):
        nonlocal n_read
        for line in lines:
            n_read += 1
            yield line

    def counting_reader(lines, **options):
        return reader(counted(lines), **options)

    monkeypatch.setattr("npformer.data.csv_faults.csv.reader", counting_reader)
    n = 20_000
    message_of(HEADING + RIGHT + rows * n)
    assert n_read < 10 * n
