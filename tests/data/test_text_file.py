"""A file of text is read whole, whatever wrote it; what is wrong with it is named with its line."""

import gzip
import os

import pytest

from npformer.data.text_file import read_text

TEXT = "Straße\nund Brücke\n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_line_ends_and_marks_do_not_count(tmp_path, suffix):
    content = TEXT.replace("\n", "\r\n").encode("utf-8-sig")
    path = tmp_path / f"text.txt{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    assert read_text(path) == TEXT


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a folder; expected a file"):
        read_text(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist; expected a file"):
        read_text(tmp_path / "none.txt")
    os.mkfifo(tmp_path / "pipe.txt")  # to open it would be to wait
    with pytest.raises(FileNotFoundError, match="is no regular file; expected a file"):
        read_text(tmp_path / "pipe.txt")
