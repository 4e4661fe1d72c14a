"""Tables and texts from files, and messages about wrong files."""

import csv
import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest

from npformer.data.tables import read_table, table_format
from npformer.data.text_file import read_text
from tests.needs import NEEDS

ROWS = [{"text": "one, two", "label": "a"}, {"text": 'say "x"\nand y', "label": "b"}]


def write(path, words, encoding="utf-8"):
    content = words.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def csv_text(delimiter=","):
    words = io.StringIO(newline="")
    writer = csv.DictWriter(words, ["text", "label"], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return words.getvalue()


def columns(table):
    return table.texts("text"), table.texts("label")


EXPECTED = ["one, two", 'say "x"\nand y'], ["a", "b"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.csv", csv_text()),
        ("a.CSV", csv_text()),
        ("a.csv", "\ufeff" + csv_text()),
        ("a.csv", csv_text(";")),
        ("a.csv", "sep=;\n" + csv_text(";")),
        ("a.csv", csv_text("|")),
        ("a.csv", csv_text("\t")),
        ("a.tsv", csv_text("\t")),
        ("a.csv.gz", csv_text()),
        ("a.jsonl", "\n".join(map(json.dumps, ROWS)) + "\n\n"),
        ("a.ndjson.gz", "\n".join(map(json.dumps, ROWS))),
        ("a.json", "\n".join(map(json.dumps, ROWS))),
        ("a.json", json.dumps(ROWS, indent=1)),
        ("a.json.gz", json.dumps(ROWS)),
    ],
)
def test_every_file_format_gives_the_same_columns(tmp_path, name, words):
    assert columns(read_table(write(tmp_path / name, words))) == EXPECTED


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDS["pyarrow"])
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert columns(read_table(tmp_path / "a.parquet")) == EXPECTED


def test_a_name_of_several_columns_in_parquet_is_refused(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDS["pyarrow"])
    import pyarrow

    table = pyarrow.table([["a"], ["b"], ["c"]], names=["text", "x", "x"])
    parquet.write_table(table, tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="several columns named 'x'"):
        read_table(tmp_path / "c.parquet").column("x")


def test_a_damaged_parquet_file_is_refused(tmp_path):
    pytest.importorskip("pyarrow.parquet", reason=NEEDS["pyarrow"])
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"b\.parquet cannot be read as a Parquet file"):
        read_table(tmp_path / "b.parquet")


def test_parquet_without_a_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match="python -m pip install pyarrow"):
        read_table(tmp_path / "a.parquet")


JSON_LINES = "\n".join(map(json.dumps, ROWS))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(csv_text().encode("utf-8-sig"), id="csv, utf-8-sig"),
        pytest.param(csv_text().encode("utf-16"), id="csv, utf-16"),
        pytest.param(csv_text().encode("utf-32"), id="csv, utf-32"),
        pytest.param(json.dumps(ROWS).encode(), id="json"),
        pytest.param(JSON_LINES.encode(), id="json lines"),
        pytest.param(JSON_LINES.encode("utf-16"), id="json lines, utf-16"),
        pytest.param(gzip.compress(csv_text().encode()), id="csv, gzip"),
    ],
)
def test_a_table_from_standard_input_can_be_read_again(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert columns(read_table("-")) == columns(read_table("-")) == EXPECTED


@pytest.mark.parametrize(
    ("content", "problem"), [(b"", "is empty;"), (b"\x1f\x8b", "is not a complete .gz file")]
)
def test_wrong_standard_input_is_named(monkeypatch, content, problem):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(ValueError, match=f"^standard input {problem}"):
        read_table("-")


def test_another_encoding(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\ncafé,a\n", "latin-1")
    words = r"a\.csv is not in utf-8: byte 0xe9 in line 2.*latin-1.* command line --encoding"
    with pytest.raises(ValueError, match=words):
        read_table(path)
    assert read_table(path, encoding="latin-1").texts("text") == ["café"]


@pytest.mark.parametrize("encoding", ["utf-9", "undefined", "rot13", "punycode"])
def test_a_wrong_encoding_is_refused(tmp_path, encoding):
    path = write(tmp_path / "a.csv", "text,label\ncafé,a\n", "latin-1")
    with pytest.raises(ValueError, match=r"(?s)expected an encoding .*a\.csv|a\.csv is not in"):
        read_table(path, encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(("name", "words"), [("a.csv", csv_text()), ("a.jsonl", JSON_LINES)])
def test_the_encoding_is_known_by_a_byte_order_mark(tmp_path, encoding, name, words):
    assert columns(read_table(write(tmp_path / name, words, encoding))) == EXPECTED


def test_utf_16_without_a_byte_order_mark_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"NUL.*encoding='utf-16-le'"):
        read_table(write(tmp_path / "b.csv", csv_text(), "utf-16-le"))


COMPRESSED = gzip.compress(csv_text().encode() * 50)


POSITIONS = [0, 3, len(COMPRESSED) // 2, len(COMPRESSED) - 6, len(COMPRESSED) - 2]


def check_is_damaged(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.csv\.gz is not a complete \.gz file"):
        read_table(path)


@pytest.mark.parametrize("position", POSITIONS)
def test_a_flipped_byte_of_a_compressed_file(tmp_path, position):
    flipped = bytes([COMPRESSED[position] ^ 0xFF])
    content = COMPRESSED[:position] + flipped + COMPRESSED[position + 1 :]
    check_is_damaged(tmp_path / "a.csv.gz", content)


@pytest.mark.parametrize("position", POSITIONS[1:])
def test_a_compressed_file_that_is_cut_short(tmp_path, position):
    check_is_damaged(tmp_path / "a.csv.gz", COMPRESSED[:position])


def test_a_compressed_file_with_more_bytes_at_its_end(tmp_path):
    check_is_damaged(tmp_path / "a.csv.gz", COMPRESSED + b"more")


def test_a_compressed_file_is_known_by_its_first_bytes(tmp_path):
    (tmp_path / "a.csv").write_bytes(gzip.compress(csv_text().encode()))
    assert columns(read_table(tmp_path / "a.csv")) == EXPECTED


def test_a_field_of_ten_million_letters(tmp_path):
    path = write(tmp_path / "a.csv", f"text,label\n{'x' * 10_000_000},a\n")
    limit = csv.field_size_limit()
    assert len(read_table(path).texts("text")[0]) == 10_000_000
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("name", "words", "problem"),
    [
        ("a.csv", "", "a.csv is empty; expected the names of the columns"),
        ("a.csv", "\n1,2\n", "has no heading"),
        ("a.xlsx", "PK", "In Excel or LibreOffice: save as CSV UTF-8"),
        ("a.csv", "text,label\n", "has no rows"),
        ("a.csv", "text,text,text (column 2)\na,b,c\n", "several columns named 'text .column 2.'"),
        ("a.csv", "text,label\na,b\na,b,c\n", "line 3 has 3 fields and the heading 2"),
        ("a.csv", 'text,label\n"a"b,c\n', "line 2 has words behind a quotation mark"),
        ("a.csv", 'text,label\n"a,c\n', "line 2 has a quotation mark that opens a field"),
        (
            "a.csv",
            'text,label\na,b\n"a \\"b\\" c",d\n',
            r'(?s)line 3 has \\", a .* twice, "".*escapechar',
        ),
        ("a.csv", 'text,label\n"a \\", b",c\n', r'line 2 has \\"'),
        (
            "a.csv",
            'text,label\na,b\n"a \\"",c\n',
            r'line 3 has \\"',
        ),
        ("a.csv", "text,label\na,b,\na,b\n", "line 2 has 3 fields and the heading 2"),
        ("a.csv", "text,label\na\0,b\n", "line 2 has the character NUL"),
        ("a.jsonl", '{"text": 1}\n{', "line 2 is not JSON"),
        ("a.jsonl", "[1]\n", "line 1 is a list; expected an object"),
        ("a.jsonl", "[" * 100_000, "line 1 is not JSON that can be read: maximum recursion"),
        ("a.jsonl", f'{{"text": {"1" * 5000}}}', "line 1 is not JSON that can be read: Exceeds"),
        ("a.jsonl", '{"text": "a", "text": "b"}', "several values for 'text'"),
        ("a.json", "[" * 100_000, "a.json is not JSON that can be read: maximum recursion"),
        ("a.json", '[{"text": "a"}, 1]', "row 2 is an int; expected an object"),
        ("a.json", "[]", "has no rows"),
        (
            "a.json",
            '{"text": ["a", "b"], "label": ["c"]}',
            "'text' 2, 'label' 1; expected equally many",
        ),
        (
            "a.json",
            '{"text": ["a"], "label": "c"}',
            "'text' 1, 'label' a str; expected equally many",
        ),
        (
            "a.json",
            '{"text": {"0": "a"}, "label": {"1": "c"}}',
            "the rows of 'label' differ from those of 'text'",
        ),
        (
            "a.json",
            '{"columns": ["text"], "data": [["a"], []]}',
            "row 2 of 'data' does not have the 1",
        ),
        (
            "a.json",
            '{"data": [{"text": "a"}]}',
            "'data' is a list of rows; expected that list alone",
        ),
        ("a.csv", "PK\x03\x04", "is an Excel or LibreOffice file.*save it as CSV UTF-8"),
        (
            "a.csv",
            "version https://git-lfs.github.com/spec/v1\n",
            "is a pointer of Git LFS.*git lfs pull",
        ),
        ("a.parquet", "version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
        ("a.parquet", "PK\x03\x04", "is an Excel or LibreOffice file"),
        ("a.jsonl", "%PDF-1.7", "is a PDF file"),
        (
            "a.tsv",
            "\n<!DOCTYPE html>\n<html>",
            "is a page in HTML or XML; .*GitHub by its button Raw",
        ),
        ("a.csv.bz2", "", r"ends in '\.bz2'; expected \.csv"),
        ("a.txt", "text", r"ends in '\.txt'; expected \.csv"),
    ],
)
def test_broken_files(tmp_path, name, words, problem):
    with pytest.raises(ValueError, match=problem):
        read_table(write(tmp_path / name, words))


SPAM = 'v1,v2,,,\r\nham,"Go, now",,,\r\nspam,"Win £1000",,,\r\nham,yes, and,,\r\n'


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("as it is", SPAM),
        ("rows end before the columns without names", SPAM.replace('now",,,', 'now"')),
        ("a comma after each field", SPAM.replace(",,,", ",").replace(" and,,", "")),
        (
            "a comma after each row",
            SPAM.replace(",,,", ",").replace(" and,,", "").replace("2,", "2"),
        ),
        ("a column of row numbers", "0," + SPAM.replace("\n", "\n0,").removesuffix("0,")),
        ("others that share a name", "a,a," + SPAM.replace("\n", "\n1,2,").removesuffix("1,2,")),
    ],
)
def test_columns_that_are_not_used_cause_no_error(tmp_path, case, words):
    table = read_table(write(tmp_path / "a.csv", words, "latin-1"), encoding="latin-1")
    assert table.texts("v1") == ["ham", "spam", "ham"]
    assert table.texts("v2") == ["Go, now", "Win £1000", "yes"]


def test_a_name_of_several_columns_is_refused_if_it_is_used(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "text,text,label,,\na,b,c,,d\n"))
    assert [*table.columns] == ["text (column 1)", "text (column 2)", "label", "(column 5)"]
    with pytest.raises(
        ValueError, match=r"several columns named 'text'; expected one.*'text \(column"
    ):
        table.column("text")
    assert table.texts("text (column 2)") == ["b"]


def test_a_first_line_that_may_be_a_row_gives_a_hint(tmp_path):
    table = read_table(write(tmp_path / "a.tsv", "ham\tGo\nspam\tWin\nham\tyes\n"))
    with pytest.raises(ValueError, match=r"Is its first line a row\? 'ham' is in line 3 as well"):
        table.column("label")


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("lists", {"text": EXPECTED[0], "label": EXPECTED[1]}),
        (
            "by rows",
            {
                "text": dict(zip("ab", EXPECTED[0], strict=True)),
                "label": dict(zip("ab", EXPECTED[1], strict=True)),
            },
        ),
        (
            "split",
            {
                "columns": ["text", "label"],
                "index": [0, 1],
                "data": [[*row.values()] for row in ROWS],
            },
        ),
    ],
)
def test_json_by_columns(tmp_path, form, content):
    for indent in (None, 1):
        table = read_table(write(tmp_path / "a.json", json.dumps(content, indent=indent)))
        assert columns(table) == EXPECTED
    assert columns(read_table(write(tmp_path / "a.jsonl", json.dumps(content)))) == EXPECTED


def test_json_by_columns_with_a_name_twice(tmp_path):
    content = {"columns": ["text", "label", "label"], "data": [["hi", "a", "b"]]}
    table = read_table(write(tmp_path / "a.json", json.dumps(content)))
    assert table.columns == {"text": ["hi"], "label (column 2)": ["a"], "label (column 3)": ["b"]}
    with pytest.raises(ValueError, match=r"several columns named 'label'"):
        table.texts("label")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_of_excel_sets_the_delimiter(tmp_path, end):
    lines = ["sep=;", "a, b, c;label", "one, two;x", ""]
    table = read_table(write(tmp_path / "a.csv", end.join(lines)))
    assert table.columns == {"a, b, c": ["one, two"], "label": ["x"]}
    assert table.place(0) == "line 3"


@pytest.mark.parametrize("encoding", ["koi8-r", "mac-roman", "gbk", "utf-16"])
def test_another_encoding_than_that_of_the_mark_is_refused(tmp_path, encoding):
    path = write(tmp_path / "a.csv", csv_text(), "utf-8-sig")
    with pytest.raises(ValueError, match=rf"begins with the mark of utf-8, and .* {encoding} is"):
        read_table(path, encoding=encoding)


@pytest.mark.parametrize(
    ("mark", "encoding"), [("utf-8-sig", "utf-8-sig"), ("utf-16", "utf-16"), ("utf-16", "utf-8")]
)
def test_an_encoding_may_agree_with_the_mark(tmp_path, mark, encoding):
    path = write(tmp_path / "a.csv", csv_text(), mark)
    assert columns(read_table(path, encoding=encoding)) == EXPECTED


def test_an_encoding_with_a_byte_order_may_agree_with_the_mark(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xff\xfe" + csv_text().encode("utf-16-le"))
    assert columns(read_table(path, encoding="utf-16-le")) == EXPECTED


def test_latin_1_is_refused_for_a_file_with_a_mark(tmp_path):
    path = write(tmp_path / "a.csv", csv_text(), "utf-8-sig")
    with pytest.raises(ValueError, match=r"begins with the mark of utf-8, and .* latin-1 is given"):
        read_table(path, encoding="latin-1")


def test_a_second_byte_order_mark_is_ignored(tmp_path):
    path = tmp_path / "a.csv"
    assert columns(read_table(write(path, "\ufeff" + csv_text(), "utf-8-sig"))) == EXPECTED


@pytest.fixture
def table(tmp_path):
    return read_table(write(tmp_path / "a.jsonl", '{"text": "a", "n": 1}\n{"n": 2.5}'))


def test_numbers_as_texts(table):
    assert table.texts("n") == ["1", "2.5"]
    assert len(table) == 2


def test_an_unknown_column_is_refused(table):
    with pytest.raises(ValueError, match=r"no column 'txt'; it has 'text', 'n'\. Did you mean"):
        table.column("txt")


def test_a_missing_value_is_refused(table):
    with pytest.raises(ValueError, match="line 2 has no 'text'"):
        table.texts("text")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('{"a": 1}', "has a dict in the column 'text'; expected a string or a number"),
        ('["a", "b"]', "has a list in"),
        ("NaN", "has no 'text'; expected a value"),
        ("null", "has no 'text'"),
        (r'"\ud800"', r"has half of a character in the column 'text': '\\ud800'"),
    ],
)
def test_a_value_that_is_no_string(tmp_path, value, problem):
    table = read_table(write(tmp_path / "a.jsonl", f'{{"text": "a"}}\n{{"text": {value}}}'))
    with pytest.raises(ValueError, match=f"line 2 {problem}"):
        table.texts("text")


def test_a_row_is_named_by_its_first_line(tmp_path):
    table = read_table(write(tmp_path / "a.csv", 'text,label\n"a\nb",x\n\nc,y\n'))
    assert [table.place(row) for row in range(2)] == ["line 2", "line 5"]


def test_the_format_of_a_table_by_its_name():
    assert table_format(Path("a.b.TSV.gz")) == "csv"
    assert table_format(Path("a sentence.")) is None


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_text_of_windows_is_read_as_any_other(tmp_path, suffix):
    text = "Straße\nund Brücke\n"
    content = text.replace("\n", "\r\n").encode("utf-8-sig")
    path = tmp_path / f"text.txt{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    assert read_text(path) == text


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a folder; expected a file"):
        read_text(tmp_path)


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; expected a file"):
        read_text(tmp_path / "none.txt")


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")  # opening it would wait forever
    with pytest.raises(FileNotFoundError, match="is no regular file; expected a file"):
        read_text(tmp_path / "pipe.txt")
