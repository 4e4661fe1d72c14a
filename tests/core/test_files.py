import errno
import fcntl
import os

import pytest

from npformer.core.files import check_writable, remove_unfinished, write_whole


def test_a_file_is_written_whole_and_forced_to_disk(tmp_path, monkeypatch):
    forced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (forced.append(os.fstat(fd).st_ino), fsync(fd)))
    path = tmp_path / "model"
    write_whole(path, b"first")
    assert path.read_bytes() == b"first"
    assert forced == [path.stat().st_ino, tmp_path.stat().st_ino]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = tmp_path / "model"
    write_whole(path, b"old")

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os if moment == "fsync" else type(path), moment, full)
    with pytest.raises(OSError, match="No space left") as error:
        write_whole(path, b"new")
    assert error.value.filename == str(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == b"old"


def test_leftovers_of_killed_writes_are_removed_and_others_kept(tmp_path):
    path = tmp_path / "model[1].safetensors"
    left = tmp_path / "model[1].safetensors.01234567.part"
    busy = tmp_path / "model[1].safetensors.89abcdef.part"
    other = tmp_path / "model1.safetensors.01234567.part"
    for each in (left, busy, other):
        each.write_bytes(b"half")
    with busy.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # somebody is writing it now
        write_whole(path, b"whole")
    assert set(tmp_path.iterdir()) == {path, busy, other}
    remove_unfinished(path)
    assert set(tmp_path.iterdir()) == {path, other}


def test_a_place_is_checked_before_work_begins(tmp_path):
    folder = tmp_path / "a" / "b"
    check_writable(folder, 1000)
    assert list(folder.iterdir()) == []
    file = tmp_path / "file"
    file.write_bytes(b"")
    for place in (file, file / "below"):
        with pytest.raises((FileExistsError, NotADirectoryError)) as error:
            check_writable(place)
        assert error.value.filename == str(place)
