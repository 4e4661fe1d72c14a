"""Files are handed out and never written over; hints are counted; notebooks hold the same."""

import json

import pytest

from npformer.learn.exercises import folder, notebook, reader_file
from npformer.learn.exercises.referee import is_untouched
from npformer.learn.exercises.table import NAMES, exercise, named, stem
from tests.learn.exercises.answers import MIXER, verdict
from tests.needs import NEEDS
from tests.sampling import mark_others

FIRST = "01_linear_backward.py"


def names_in(path):
    return sorted(file.name for file in path.iterdir())


def test_a_folder_has_a_file_for_each_exercise_in_order(begun):
    assert names_in(begun) == [*(f"{stem(name)}.py" for name in NAMES), "README.md"]
    assert (begun / FIRST).read_text("utf-8") == exercise("linear_backward").blank


def test_a_folder_has_a_page_that_names_each_exercise(begun):
    page = (begun / "README.md").read_text("utf-8")
    for name in NAMES:
        assert f"| `{stem(name)}.py` | {exercise(name).title} |" in page


@pytest.fixture
def changed(begun):
    """Return a folder in which an exercise and the page were changed, and another one removed."""
    (begun / FIRST).write_text("mine = 1\n")
    (begun / "README.md").write_text("my notes\n")
    (begun / "05_softmax_backward.py").unlink()
    return begun


def test_files_that_were_changed_stay_as_they_are(changed):
    lines = folder.start(changed)
    assert f"{FIRST} was changed, so it stays as it is" in lines
    assert (changed / FIRST).read_text() == "mine = 1\n"
    assert (changed / "README.md").read_text() == "my notes\n"


def test_files_that_were_not_changed_are_listed(changed):
    lines = folder.start(changed)
    assert "02_conv1d_backward.py is there already, and unchanged" in lines


def test_a_file_that_was_removed_is_written_again(changed):
    lines = folder.start(changed)
    assert lines[-1] == f"1 file written to {changed}"
    assert (changed / "05_softmax_backward.py").exists()


@pytest.fixture
def forced(begun):
    """Return a folder in which one of two changed exercises was begun again."""
    for name in (FIRST, "02_conv1d_backward.py"):
        (begun / name).write_text("mine = 1\n")
    folder.start(begun, ["linear_backward"], force=True)
    return begun


def test_force_restores_only_the_named_exercise(forced):
    assert (forced / FIRST).read_text("utf-8") == exercise("linear_backward").blank
    assert (forced / "02_conv1d_backward.py").read_text() == "mine = 1\n"


def test_force_keeps_a_copy_of_the_old_answer(forced):
    assert (forced / f"{FIRST}.old").read_text() == "mine = 1\n"


def test_only_named_ones_are_written(tmp_path):
    folder.start(tmp_path / "new" / "folder", ["softmax_backward", "relu_backward"])
    names = names_in(tmp_path / "new" / "folder")
    assert names == ["03_relu_backward.py", "05_softmax_backward.py", "README.md"]


@pytest.mark.parametrize(
    "word",
    [
        "5",
        "05",
        "softmax_backward",
        "05_softmax_backward",
        "a/05_softmax_backward.py",
        "05_softmax_backward.ipynb",
        "06_softmax_backward",  # a name says more than a number
    ],
)
def test_an_exercise_has_many_names(word):
    assert named(word) == "softmax_backward"


def test_hints_come_one_after_another_up_to_the_last(begun):
    hints = exercise("softmax_backward").hints
    shown_hints = [folder.next_hint(begun, "softmax_backward") for _ in range(5)]
    assert shown_hints == [(min(i, 3), 3, hints[min(i, 3) - 1]) for i in range(1, 6)]


def test_the_hints_of_each_exercise_are_counted(begun):
    for _ in range(5):
        folder.next_hint(begun, "softmax_backward")
    assert folder.next_hint(begun, "relu_backward")[0] == 1
    counts = json.loads((begun / "hints.json").read_text())
    assert counts == {"softmax_backward": 3, "relu_backward": 1}


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": "b"}', '{"a": -1}', "\xff"])
def test_a_spoilt_count_of_hints_is_explained(begun, text):
    (begun / "hints.json").write_text(text, "latin-1")
    with pytest.raises(ValueError, match=r"delete it, and hints begin anew"):
        folder.next_hint(begun, "relu_backward")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_holds_the_code_of_the_file(name):
    blank = exercise(name).blank
    text = notebook.from_source(blank, name)
    source, places = notebook.to_source(text, "a.ipynb")
    code = blank.partition('\n"""\n')[2]
    code_lines = [line for line in code.splitlines() if line and not line.startswith("# %%")]
    assert [line for line in source.splitlines() if line] == [*code_lines, "pass"]
    assert len(places) == len(source.splitlines())
    assert is_untouched(exercise(name), source)
    first = json.loads(text)["cells"][0]
    assert first["cell_type"] == "markdown"
    assert exercise(name).page in "".join(first["source"])


def test_a_notebook_follows_the_formats_schema():
    nbformat = pytest.importorskip("nbformat", reason=NEEDS["nbformat"])
    for name in NAMES:
        text = notebook.from_source(exercise(name).blank, name)
        nbformat.validate(nbformat.reads(text, as_version=4), version=4, version_minor=5)


def solved_notebook(name):
    return notebook.from_source(exercise(name).solution, name)


@pytest.mark.parametrize("name", mark_others(NAMES[:3], NAMES))
def test_a_solved_notebook_is_right(name):
    source, _ = notebook.to_source(solved_notebook(name), "a.ipynb")
    assert verdict(name, source).state == "right"


def test_what_is_for_the_notebook_alone_is_left_out():
    cells = ["%matplotlib inline\nx = 1", "%%bash\nls\nrm", "%%time\ny = 2", "if x:\n    !ls\n", ""]
    cells = [{"cell_type": "code", "source": cell} for cell in cells]
    cells.append({"cell_type": "markdown", "source": ["words"]})
    source, places = notebook.to_source(json.dumps({"cells": cells}), "a.ipynb")
    assert source == "pass\nx = 1\npass\ny = 2\nif x:\n    pass\n"
    assert places[3] == "line 2 of code cell 3"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": [{}]}', '{"cells": 3}'])
def test_what_is_no_notebook_is_explained(text):
    with pytest.raises(ValueError, match=r"a\.ipynb is not a notebook"):
        notebook.to_source(text, "a.ipynb")


def test_a_changed_notebook_stays(tmp_path):
    folder.start(tmp_path, notebooks=True)
    assert names_in(tmp_path)[0] == "01_linear_backward.ipynb"
    path = tmp_path / "03_relu_backward.ipynb"
    path.write_text(solved_notebook("relu_backward"), "utf-8")
    lines = folder.start(tmp_path, notebooks=True)
    assert "03_relu_backward.ipynb was changed, so it stays as it is" in lines
    assert len([line for line in lines if "unchanged" in line]) == len(NAMES) - 1


@pytest.fixture
def file_and_notebook(tmp_path):
    """Hand an exercise out as a file and as a notebook; return both."""
    folder.start(tmp_path, ["own_mixer"])
    folder.start(tmp_path, ["own_mixer"], notebooks=True)
    return tmp_path / "18_own_mixer.py", tmp_path / "18_own_mixer.ipynb"


def test_a_changed_notebook_is_marked_beside_an_unchanged_file(file_and_notebook):
    _, cells = file_and_notebook
    cells.write_text(solved_notebook("own_mixer"), "utf-8")
    assert folder.find(cells.parent, "own_mixer") == cells


def test_a_changed_file_is_marked_beside_an_unchanged_notebook(file_and_notebook):
    file, cells = file_and_notebook
    cells.write_text(solved_notebook("own_mixer"), "utf-8")
    folder.start(file.parent, ["own_mixer"], notebooks=True, force=True)
    file.write_text(MIXER)
    assert folder.find(file.parent, "own_mixer") == file


def test_an_exercise_that_was_not_handed_out_has_no_file(file_and_notebook):
    file, _ = file_and_notebook
    assert folder.find(file.parent, "relu_backward") is None


def test_what_a_file_cannot_be_read_as_is_explained(tmp_path):
    path = tmp_path / FIRST
    path.write_bytes(b"x = '\xff'")
    with pytest.raises(ValueError, match="not text in UTF-8"):
        reader_file.source_of(path)
    path.write_bytes("x = 'ü'".encode("utf-8-sig"))
    assert reader_file.source_of(path) == ("x = 'ü'", None)
