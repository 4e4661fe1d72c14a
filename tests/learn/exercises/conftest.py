"""A folder of solved exercises, in which the one that needs others runs."""

import pytest

from npformer.learn.exercises import folder
from npformer.learn.exercises.table import NAMES, exercise, stem


@pytest.fixture(scope="session")
def solved_folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("solved")
    folder.start(place)
    for name in NAMES:
        (place / f"{stem(name)}.py").write_text(exercise(name).solution, "utf-8")
    return place


@pytest.fixture(autouse=True)
def solved(solved_folder, monkeypatch):
    """Run in that folder."""
    monkeypatch.chdir(solved_folder)
    return solved_folder


@pytest.fixture
def begun(tmp_path):
    """Give a folder of exercises as they are handed out."""
    folder.start(tmp_path)
    return tmp_path
