"""Arrays whose rows lie in several files."""

import numpy as np
import pytest

from npformer.data import ShardedArray, sharded, stored


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """Return an array, of which files x-0 to x-11 hold some rows each, one of them none."""
    monkeypatch.chdir(tmp_path)
    found = np.random.default_rng(0).integers(0, 100, (50, 3))
    for k, part in enumerate(np.split(found, [1, 3, 3, 10, 12, 20, 30, 35, 36, 40, 49])):
        np.save(f"x-{k}.npy", part)
    return found


def test_the_order_of_files_is_not_that_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["x.npy", "x-01.npy", "x-1.npy", "x-2.npy", "x-10.npy"]
    for name in names:
        np.save(name, np.array([[names.index(name)]]))
    orders = []
    for listed in (names, names[::-1]):
        monkeypatch.setattr(stored.glob, "glob", lambda *_, listed=listed, **__: listed)
        orders.append(sharded("x*.npy")[:].ravel().tolist())
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(5, 33),
        slice(40, 2, -3),
        slice(7, 7),
        [3, 49, 3, 0],
        [],
        np.array([-1, -50, 10]),
        np.arange(50) % 3 == 0,
        0,
        -1,
        np.int64(20),
    ],
    ids=str,
)
def test_rows_are_those_of_the_whole(whole, rows):
    found = sharded("x-*.npy")[rows]
    expected = whole[:0] if isinstance(rows, list) and not rows else whole[rows]
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, expected)


def test_it_tells_what_it_is(whole):
    found = sharded("x-*.npy")
    assert isinstance(found, ShardedArray)
    assert (found.shape, found.dtype, found.ndim, len(found)) == ((50, 3), whole.dtype, 2, 50)
    assert repr(found) == "ShardedArray(12 files, shape=(50, 3), dtype=int64)"
    np.testing.assert_array_equal(np.asarray(found), whole)
    assert np.asarray(found, dtype="float32").dtype == "float32"


def test_names_are_in_the_order_of_their_numbers_and_a_list_keeps_its_order(whole, tmp_path):
    assert [file.name for file in sharded("x-*.npy").files] == [f"x-{k}.npy" for k in range(12)]
    found = sharded([tmp_path / "x-3.npy", "x-0.npy"])
    np.testing.assert_array_equal(found[:], np.concatenate([whole[3:10], whole[:1]]))


def test_few_files_are_open_at_a_time(whole, monkeypatch):
    monkeypatch.setattr(stored, "MOST_OPEN", 2)
    found = sharded("x-*.npy")
    np.testing.assert_array_equal(found[:], whole)
    assert len(found._open) == 2


def test_columns_of_all_rows(whole):
    found = sharded("x-*.npy")[:, 1:]
    assert (found.shape, found.ndim, len(found)) == ((50, 2), 2, 50)
    for rows in (slice(None), [3, 49], slice(40, 2, -3), []):
        np.testing.assert_array_equal(found[rows], whole[rows][:, 1:])
    with pytest.raises(IndexError, match="expected rows"):
        found[:, 1:]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (50, "is read by 50: index 50 is out of bounds"),
        ([0, -51], "index -51 is out of bounds"),
        ((slice(None), 0), r"expected rows from 0 to 49, .*array\[:, 1:\]"),
        (True, "is read by True"),
        ([0.5], r"is read by \[0.5\]"),
        ([[1, 2]], "is read by .*expected rows from 0 to 49, a slice"),
        (None, "is read by None"),
        (np.array([True, False]), "or 50 booleans"),
    ],
    ids=str,
)
def test_wrong_rows(whole, rows, words):
    with pytest.raises(IndexError, match=words):
        sharded("x-*.npy")[rows]


@pytest.mark.parametrize(
    ("files", "error", "words"),
    [
        ("y-*.npy", FileNotFoundError, r"no file matches 'y-\*.npy'; .*The pattern is relative to"),
        (["x-0.npy", "y.npy"], FileNotFoundError, "y.npy does not exist"),
        ([], ValueError, "files is an empty list"),
        (3, TypeError, "files is an int; expected a list with a path .*a pattern such as"),
        (["x-0.npy", 3], TypeError, r"files\[1\] is 3; expected"),
        (["x-0.npy", "other.npy"], ValueError, r"other.npy has rows of shape \(4,\) .*x-0.npy has"),
        (["x-0.npy", "small.npy"], ValueError, "dtype int32, and x-0.npy has .*int64"),
        (["words.txt"], ValueError, "words.txt cannot be read as a .npy file"),
        (["empty.npy"], ValueError, "empty.npy cannot be read as a .npy file"),
        (["objects.npy"], ValueError, "objects.npy cannot be read as a .npy file"),
        (["several.npz"], ValueError, "several.npz holds an archive of arrays"),
        (["number.npy"], ValueError, "number.npy holds a single number"),
    ],
    ids=str,
)
def test_wrong_files(whole, tmp_path, files, error, words):
    np.save("other.npy", np.zeros((2, 4), int))
    np.save("small.npy", np.zeros((2, 3), "int32"))
    (tmp_path / "words.txt").write_text("no numbers")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save("objects.npy", np.array([None, "a"], dtype=object))
    np.savez("several.npz", x=whole)
    np.save("number.npy", 3.0)
    with pytest.raises(error, match=words):
        sharded(files)


def test_a_file_that_changed_is_told(whole):
    found = sharded("x-*.npy")
    np.save("x-3.npy", np.zeros((6, 3), int))
    with pytest.raises(ValueError, match=r"x-3.npy has shape \(6, 3\) .*expected a file that"):
        found[5]
