"""The folder of a page: nothing in it is removed, and what others wrote there is not believed."""

import json
import os
import shutil
from pathlib import Path

import pytest

from npformer.learn.play.folder import Folder
from npformer.learn.play.played import page_of_folder
from npformer.learn.play.settings import Settings

SETTINGS = Settings.of({"task": "digits"})
POINT = {"step": 1, "epoch": 1, "loss": 2.0, "lr": 0.1, "accuracy": None}


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a page with two runs, an address and a run of `npformer train`."""
    runs = Folder(tmp_path / "play")
    runs.path.mkdir()
    (runs.path / "run-1").mkdir()
    (runs.path / "run-1" / "model.safetensors").write_text("weights")
    assert runs.begin([SETTINGS, SETTINGS]) == ["run-2", "run-3"]
    runs.keep_address(4000, "a" * 32)
    return runs


def test_new_runs_stand_beside_all_earlier_ones(folder):
    before = {p: p.read_bytes() for p in folder.path.rglob("run-*/*")}
    assert [*folder.shown()] == ["run-2", "run-3"]
    (folder.path / "run-9").write_text("a file")
    assert folder.begin([SETTINGS]) == ["run-10"]
    assert {p: p.read_bytes() for p in before} == before
    assert [*folder.shown()] == ["run-10"]
    assert [*folder.runs()] == ["run-2", "run-3", "run-10"]  # in the order of their numbers


def test_an_address_is_kept_where_it_was_written(folder):
    assert folder.address() == (4000, "a" * 32)
    assert folder.address(5000) == (5000, "a" * 32)
    assert (folder.path / "server.json").stat().st_mode & 0o777 == 0o600


def readable(file):
    file.chmod(0o640)


def copied(file):
    shutil.copy2(file, file.with_name("other"))
    file.with_name("other").replace(file)


@pytest.mark.parametrize("change", [readable, copied])
def test_a_token_that_others_may_know_is_not_used_again(folder, change):
    change(folder.path / "server.json")
    port, token = folder.address()
    assert (port in (0, 4000), len(token), token == "a" * 32) == (True, 32, False)
    folder.keep_address(port, token)
    assert (folder.path / "server.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("words", ["", "[1]", '{"name": "of another"}', "[" * 100_000, None])
def test_a_file_of_another_program_or_a_link_is_not_replaced(folder, words):
    place = folder.path / "server.json"
    if words is None:
        place.rename(folder.path / "other")
        place.symlink_to("other")
    else:
        place.write_text(words)
    with pytest.raises(FileExistsError, match=r"server\.json is no address .* Name another one"):
        folder.address()


@pytest.mark.parametrize(
    "names",
    [["model.safetensors", "run.json"], ["model.safetensors", "server.json"], ["settings.json"]],
)
def test_a_folder_of_something_else_stays_as_it_was(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    expected = (
        f"{tmp_path} is no folder of a page, .* npformer play {tmp_path} --export page.html, and"
    )
    with pytest.raises(FileExistsError, match=expected):
        Folder(tmp_path).address()
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_folder_may_be_empty_but_for_hidden_files(tmp_path):
    (tmp_path / ".gitkeep").touch()
    assert Folder(tmp_path).address(5000)[0] == 5000


@pytest.mark.parametrize("port", [-5, 0, 70_000, "4000", 4e3, None])
def test_a_port_that_is_none_is_any(folder, port):
    (folder.path / "server.json").write_text(json.dumps({"token": "a" * 32, "port": port}))
    assert folder.address()[0] == 0


def damaged(words):
    return lambda place: (place / "settings.json").write_text(words)


def link_in(place):
    (place / "points.jsonl").symlink_to("elsewhere")


def link_of(place):
    shutil.move(place, place.parent / "there")
    place.symlink_to("there")


def pipe(place):
    (place / "settings.json").unlink()
    os.mkfifo(place / "settings.json")


def test_folders_in_a_run_may_be_as_deep_as_a_path_is_long(folder, monkeypatch):
    monkeypatch.chdir(folder.path / "run-2")
    for _ in range(1500):
        Path("a").mkdir()
        os.chdir("a")
    assert [*folder.runs()] == ["run-2", "run-3"]
    for _ in range(1500):  # rmtree could not
        os.chdir("..")
        Path("a").rmdir()


def pipe_in(place):
    os.mkfifo(place / "checkpoint.safetensors")


DAMAGES = pytest.mark.parametrize(
    "change",
    [
        *map(damaged, ["", "3", "[" * 100_000, '{"task": "nope"}', '{"task": 1}', "null"]),
        damaged('{"task": "digits", "n_heads": {}}'),
        damaged('{"task": "digits"}' + " " * (1 << 20)),
        link_in,
        link_of,
        pipe,
        pipe_in,
    ],
)


@DAMAGES
def test_a_damaged_run_is_left_out(folder, change):
    change(folder.path / "run-2")
    assert [*folder.runs()] == [*folder.shown()] == ["run-3"]


@DAMAGES
def test_a_damaged_run_is_not_exported(folder, change):
    change(folder.path / "run-2")
    if (folder.path / "run-2" / "settings.json").is_file():
        with pytest.raises((ValueError, TypeError)):
            page_of_folder(folder.path / "run-2")


@pytest.mark.parametrize("words", ["{}", "[[], {}, null]", '["../x", "run-1"]', "[" * 100_000])
def test_of_a_damaged_list_the_last_four_runs_are_shown(folder, words):
    folder.begin([SETTINGS] * 3)
    (folder.path / "shown.json").write_text(words)
    assert [*folder.shown()] == [f"run-{k}" for k in range(3, 7)]


@pytest.mark.parametrize(
    "line",
    ["3", "[" * 100_000, '{"step": 2, "lo', "\u2028", '{"step": "2", "loss": 1}', "\x00"]
    + [json.dumps({**POINT, **x}) for x in ({"step": None}, {"step": 2.5}, {"loss": []})]
    + [json.dumps({**POINT, **x}) for x in ({"norms": 3}, {"lr": "<b>"}, {"more": {}})]
    + [json.dumps({**POINT, **x}) for x in ({"step": -7}, {"step": 10**400}, {"epoch": 1 << 53})]
    + [
        json.dumps({**POINT, "norms": x})
        for x in ([[1.0]], ["<b>"], json.loads("[" * 500 + "]" * 500))
    ]
    + ["\udcff"],
)
def test_a_line_that_is_no_point_is_left_out(folder, line):
    last = {**POINT, "step": 3, "norms": [1.0], "dead": None}
    folder.add_points("run-2", [POINT])
    with (folder.path / "run-2" / "points.jsonl").open(
        "a", encoding="utf-8", errors="surrogateescape"
    ) as file:
        file.write(f"{line}\n")  # the last is no UTF-8
    folder.add_points("run-2", [last])
    assert folder.points("run-2") == [POINT, last]


def test_of_a_long_file_of_points_all_ends_of_epochs_are_read(folder, monkeypatch):
    """Between them, some of the steps are read."""
    monkeypatch.setattr("npformer.learn.play.folder.MOST_OF_POINTS", 1000)
    ends = [{**POINT, "step": step, "loss": None, "accuracy": 0.5} for step in (100, 333)]
    folder.add_points("run-2", [{**POINT, "step": step} for step in range(1, 400)] + ends)
    points = folder.points("run-2")
    assert [point for point in points if point["loss"] is None] == ends
    assert 10 < len(points) < 20


def test_a_line_without_an_end_is_no_point(folder, monkeypatch):
    monkeypatch.setattr("npformer.learn.play.folder.MOST_OF_POINTS", 1000)
    monkeypatch.setattr("npformer.learn.play.folder.MOST_BYTES", 100)
    (folder.path / "run-3" / "points.jsonl").write_text(" " * 60 + json.dumps(POINT))
    assert folder.points("run-3") == []


def test_no_new_run_lands_elsewhere_or_where_it_would_not_be_found(folder):
    (folder.path / "shown.json").unlink()
    (folder.path.parent / "precious").write_text("precious")
    (folder.path / "shown.json").symlink_to("../precious")
    (folder.path / "run-999999999").mkdir()
    for number in (1_000_000_000, 1_000_000_001):
        assert folder.begin([SETTINGS]) == [f"run-{number}"]
        assert [*folder.shown()] == [f"run-{number}"]
    assert (folder.path.parent / "precious").read_text() == "precious"
