"""Tables and texts from files, and what is said of files that are none."""

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


def as_csv(delimiter=","):
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
        ("a.csv", as_csv()),
        ("a.CSV", as_csv()),
        ("a.csv", "\ufeff" + as_csv()),
        *(("a.csv", each) for each in (as_csv(";"), "sep=;\n" + as_csv(";"), as_csv("|"))),
        ("a.csv", as_csv("\t")),
        ("a.tsv", as_csv("\t")),
        ("a.csv.gz", as_csv()),
        ("a.jsonl", "\n".join(map(json.dumps, ROWS)) + "\n\n"),
        ("a.ndjson.gz", "\n".join(map(json.dumps, ROWS))),
        ("a.json", "\n".join(map(json.dumps, ROWS))),
        ("a.json", json.dumps(ROWS, indent=1)),
        ("a.json.gz", json.dumps(ROWS)),
    ],
)
def test_every_kind_of_file_gives_the_same_columns(tmp_path, name, words):
    assert columns(read_table(write(tmp_path / name, words))) == EXPECTED


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDS["pyarrow"])
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert columns(read_table(tmp_path / "a.parquet")) == EXPECTED
    double = pyarrow.table([["a"], ["b"], ["c"]], names=["text", "x", "x"])
    parquet.write_table(double, tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="several columns named 'x'"):
        read_table(tmp_path / "c.parquet").column("x")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"b\.parquet cannot be read as a Parquet file"):
        read_table(tmp_path / "b.parquet")


def test_parquet_without_a_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match="python -m pip install pyarrow"):
        read_table(tmp_path / "a.parquet")


def test_standard_input_is_read_once_and_without_its_mark(monkeypatch):
    as_lines = "\n".join(map(json.dumps, ROWS))
    given = [as_csv().encode(code) for code in ("utf-8-sig", "utf-16", "utf-32")]
    given += [json.dumps(ROWS).encode(), as_lines.encode(), as_lines.encode("utf-16")]
    given += [gzip.compress(as_csv().encode())]
    for content in given:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert columns(read_table("-")) == columns(read_table("-")) == EXPECTED
    for content, words in ((b"", "is empty;"), (b"\x1f\x8b", "is not a complete .gz file")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(ValueError, match=f"^standard input {words}"):
            read_table("-")


def test_another_encoding(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\ncafé,a\n", "latin-1")
    words = r"a\.csv is not in utf-8: byte 0xe9 in line 2.*latin-1.* command line --encoding"
    with pytest.raises(ValueError, match=words):
        read_table(path)
    assert read_table(path, encoding="latin-1").texts("text") == ["café"]
    for wrong in ("utf-9", "undefined", "rot13", "punycode"):
        with pytest.raises(ValueError, match=r"(?s)expected an encoding .*a\.csv|a\.csv is not in"):
            read_table(path, encoding=wrong)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_mark_says_the_encoding(tmp_path, encoding):
    for name, words in (("a.csv", as_csv()), ("a.jsonl", "\n".join(map(json.dumps, ROWS)))):
        assert columns(read_table(write(tmp_path / name, words, encoding))) == EXPECTED
    with pytest.raises(ValueError, match=r"NUL.*encoding='utf-16-le'"):
        read_table(write(tmp_path / "b.csv", as_csv(), "utf-16-le"))


DAMAGED = gzip.compress(as_csv().encode() * 50)


@pytest.mark.parametrize("place", [0, 3, len(DAMAGED) // 2, len(DAMAGED) - 6, len(DAMAGED) - 2])
def test_flipped_and_missing_bytes_of_a_compressed_file(tmp_path, place):
    flipped = DAMAGED[:place] + bytes([DAMAGED[place] ^ 0xFF]) + DAMAGED[place + 1 :]
    for content in (flipped, DAMAGED[:place] if place else DAMAGED + b"more"):
        (tmp_path / "a.csv.gz").write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.csv\.gz is not a complete \.gz file"):
            read_table(tmp_path / "a.csv.gz")
    (tmp_path / "a.csv").write_bytes(gzip.compress(as_csv().encode()))  # by its bytes
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
        ("a.csv", 'text,label\n"a"b,c\n', "line 2: "),
        ("a.csv", 'text,label\n"a,c\n', "a quotation mark that opens in line 2 is never closed"),
        (
            "a.csv",
            'text,label\na,b\n"a \\"b\\" c",d\n',
            r'Line 3 has \\", a .* twice, "".*escapechar',
        ),
        ("a.csv", 'text,label\n"a \\", b",c\n', r'line 2 has 3 fields.*Line 2 has \\"'),
        (
            "a.csv",
            'text,label\na,b\n"a \\"",c\n',
            r'opens in line 3 is never closed.*Line 3 has \\"',
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
def test_columns_that_nobody_asks_for_do_not_stand_in_the_way(tmp_path, case, words):
    table = read_table(write(tmp_path / "a.csv", words, "latin-1"), encoding="latin-1")
    assert table.texts("v1") == ["ham", "spam", "ham"]
    assert table.texts("v2") == ["Go, now", "Win £1000", "yes"]


def test_a_name_of_several_columns_is_refused_if_asked_for(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "text,text,label,,\na,b,c,,d\n"))
    assert [*table.columns] == ["text (column 1)", "text (column 2)", "label", "(column 5)"]
    with pytest.raises(
        ValueError, match=r"several columns named 'text'; expected one.*'text \(column"
    ):
        table.column("text")
    assert table.texts("text (column 2)") == ["b"]


def test_a_first_line_that_is_a_row_is_doubted(tmp_path):
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
def test_excel_s_line_says_what_stands_between_fields(tmp_path, end):
    lines = ["sep=;", "a, b, c;label", "one, two;x", ""]
    table = read_table(write(tmp_path / "a.csv", end.join(lines)))
    assert table.columns == {"a, b, c": ["one, two"], "label": ["x"]}
    assert table.place(0) == "line 3"


@pytest.mark.parametrize("encoding", ["koi8-r", "mac-roman", "gbk", "utf-16"])
def test_a_mark_and_any_other_encoding_contradict_each_other(tmp_path, encoding):
    path = write(tmp_path / "a.csv", as_csv(), "utf-8-sig")
    with pytest.raises(ValueError, match=rf"begins with the mark of utf-8, and .* {encoding} is"):
        read_table(path, encoding=encoding)


def test_a_mark_and_an_encoding_of_its_kind_agree(tmp_path):
    for mark, encoding in (("utf-8-sig", "utf-8-sig"), ("utf-16", "utf-16"), ("utf-16", "utf-8")):
        path = write(tmp_path / "a.csv", as_csv(), mark)
        assert columns(read_table(path, encoding=encoding)) == EXPECTED
    path.write_bytes(b"\xff\xfe" + as_csv().encode("utf-16-le"))
    assert columns(read_table(path, encoding="utf-16-le")) == EXPECTED


def test_a_mark_and_another_encoding_contradict_each_other(tmp_path):
    path = write(tmp_path / "a.csv", as_csv(), "utf-8-sig")
    with pytest.raises(ValueError, match=r"begins with the mark of utf-8, and .* latin-1 is given"):
        read_table(path, encoding="latin-1")
    assert columns(read_table(write(path, "\ufeff" + as_csv(), "utf-8-sig"))) == EXPECTED


def test_a_wrong_column_and_a_missing_value(tmp_path):
    table = read_table(write(tmp_path / "a.jsonl", '{"text": "a", "n": 1}\n{"n": 2.5}'))
    assert table.texts("n") == ["1", "2.5"]
    assert len(table) == 2
    with pytest.raises(ValueError, match=r"no column 'txt'; it has 'text', 'n'\. Did you mean"):
        table.column("txt")
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
def test_a_value_that_is_no_text(tmp_path, value, problem):
    table = read_table(write(tmp_path / "a.jsonl", f'{{"text": "a"}}\n{{"text": {value}}}'))
    with pytest.raises(ValueError, match=f"line 2 {problem}"):
        table.texts("text")


def test_a_row_is_called_by_the_line_in_which_it_begins(tmp_path):
    table = read_table(write(tmp_path / "a.csv", 'text,label\n"a\nb",x\n\nc,y\n'))
    assert [table.place(row) for row in range(2)] == ["line 2", "line 5"]


def test_names_say_the_kind():
    assert table_format(Path("a.b.TSV.gz")) == "csv"
    assert table_format(Path("a sentence.")) is None


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_line_ends_and_marks_do_not_count(tmp_path, suffix):
    text = "Straße\nund Brücke\n"
    content = text.replace("\n", "\r\n").encode("utf-8-sig")
    path = tmp_path / f"text.txt{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    assert read_text(path) == text


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a folder; expected a file"):
        read_text(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist; expected a file"):
        read_text(tmp_path / "none.txt")
    os.mkfifo(tmp_path / "pipe.txt")  # to open it would be to wait
    with pytest.raises(FileNotFoundError, match="is no regular file; expected a file"):
        read_text(tmp_path / "pipe.txt")
