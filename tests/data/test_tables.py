"""Tables and texts from files, and what is said of files that are none."""

import csv
import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest

from npformer.data.tables import kind_of, read_table
from npformer.data.text_file import read_text
from tests.in_turn import separately

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


@separately(
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
)
def test_every_kind_of_file_gives_the_same_columns(tmp_path, name, words):
    assert columns(read_table(write(tmp_path / name, words))) == EXPECTED


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert columns(read_table(tmp_path / "a.parquet")) == EXPECTED
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


@separately(
    ("a.csv", "", "a.csv is empty; expected the names of the columns"),
    ("a.csv", "\n1,2\n", "has no heading"),
    ("a.xlsx", "PK", "In Excel or LibreOffice: save as CSV UTF-8"),
    ("a.csv", "text,label\n", "has no rows"),
    ("a.csv", "text,text\na,b\n", "several columns named 'text'"),
    ("a.csv", "text,label\na,b\na,b,c\n", "line 3 has 3 fields and the heading 2"),
    ("a.csv", 'text,label\n"a"b,c\n', "line 2: "),
    ("a.csv", 'text,label\n"a,c\n', "a quotation mark that opens in line 2 is never closed"),
    ("a.csv", "text,label\na\0,b\n", "line 2 has the character NUL"),
    ("a.jsonl", '{"text": 1}\n{', "line 2 is not JSON"),
    ("a.jsonl", "[1]\n", "line 1 is a list; expected an object"),
    ("a.jsonl", "[" * 100_000, "line 1 is not JSON that can be read: maximum recursion"),
    ("a.jsonl", f'{{"text": {"1" * 5000}}}', "line 1 is not JSON that can be read: Exceeds"),
    ("a.jsonl", '{"text": "a", "text": "b"}', "several values for 'text'"),
    ("a.json", "[" * 100_000, "a.json is not JSON that can be read: maximum recursion"),
    ("a.json", '[{"text": "a"}, 1]', "row 2 is an int; expected an object"),
    ("a.json", "[]", "has no rows"),
    ("a.csv.bz2", "", r"ends in '\.bz2'; expected \.csv"),
    ("a.txt", "text", r"ends in '\.txt'; expected \.csv"),
)
def test_broken_files(tmp_path, name, words, problem):
    with pytest.raises(ValueError, match=problem):
        read_table(write(tmp_path / name, words))


def test_a_wrong_column_and_a_missing_value(tmp_path):
    table = read_table(write(tmp_path / "a.jsonl", '{"text": "a", "n": 1}\n{"n": 2.5}'))
    assert table.texts("n") == ["1", "2.5"]
    assert len(table) == 2
    with pytest.raises(ValueError, match=r"no column 'txt'; it has 'text', 'n'\. Did you mean"):
        table.column("txt")
    with pytest.raises(ValueError, match="line 2 has no 'text'"):
        table.texts("text")


@separately(
    ('{"a": 1}', "has a dict in the column 'text'; expected a text or a number"),
    ('["a", "b"]', "has a list in"),
    ("NaN", "has no 'text'; expected a value"),
    ("null", "has no 'text'"),
    (r'"\ud800"', r"has half of a character in the column 'text': '\\ud800'"),
)
def test_a_value_that_is_no_text(tmp_path, value, problem):
    table = read_table(write(tmp_path / "a.jsonl", f'{{"text": "a"}}\n{{"text": {value}}}'))
    with pytest.raises(ValueError, match=f"line 2 {problem}"):
        table.texts("text")


def test_a_row_is_called_by_the_line_in_which_it_begins(tmp_path):
    table = read_table(write(tmp_path / "a.csv", 'text,label\n"a\nb",x\n\nc,y\n'))
    assert [table.place(row) for row in range(2)] == ["line 2", "line 5"]


def test_names_say_the_kind():
    assert kind_of(Path("a.b.TSV.gz")) == "csv"
    assert kind_of(Path("a sentence.")) is None


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
