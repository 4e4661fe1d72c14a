import errno
import fcntl
import os
from pathlib import Path

import pytest

from npformer.training.storage import files
from npformer.training.storage.files import check_writable, remove_unfinished, write_whole


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
    for file_path in (left, busy, other):
        file_path.write_bytes(b"half")
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


def test_parts_are_written_one_after_another(tmp_path):
    write_whole(tmp_path / "file", b"one", memoryview(b"two"), b"")
    assert (tmp_path / "file").read_bytes() == b"onetwo"


@pytest.mark.parametrize("removed_before", ["locking", "looking"])
def test_a_file_just_begun_that_another_process_takes_for_a_leftover_is_begun_again(
    tmp_path, monkeypatch, removed_before
):
    path, tried = tmp_path / "model", []

    def late(file):
        tried.append(file.name)
        if len(tried) > 1:
            return True
        Path(file.name).unlink()  # the other process holds the lock
        return removed_before == "looking"

    monkeypatch.setattr(files, "_try_lock", late)
    write_whole(path, b"whole")
    assert len(tried) == 2
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_check_leaves_nothing_behind_wherever_it_is_interrupted(tmp_path, monkeypatch):
    leftovers = []
    monkeypatch.setattr(files.os, "fsync", lambda file: leftovers.extend(tmp_path.iterdir()))
    check_writable(tmp_path, 100)
    if os.name == "posix":  # the file has no name, so that even a killed process leaves none
        assert leftovers == []
    assert list(tmp_path.iterdir()) == []


posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


@posix
def test_a_replaced_file_keeps_its_mode(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_whole(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


@posix
def test_a_link_is_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "model.safetensors", tmp_path / "model.safetensors"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [file.name for file in tmp_path.rglob("*.part")] == []
