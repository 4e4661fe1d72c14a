"""Arrays whose rows are in several files."""

import numpy as np
import pytest

from npformer.data import ShardedArray, sharded, stored


@pytest.fixture
def array(tmp_path, monkeypatch):
    """Return an array whose rows are in files x-0 to x-11; one file has no rows."""
    monkeypatch.chdir(tmp_path)
    array = np.random.default_rng(0).integers(0, 100, (50, 3))
    for k, rows in enumerate(np.split(array, [1, 3, 3, 10, 12, 20, 30, 35, 36, 40, 49])):
        np.save(f"x-{k}.npy", rows)
    return array


def test_the_order_of_files_does_not_depend_on_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["x.npy", "x-01.npy", "x-1.npy", "x-2.npy", "x-10.npy"]
    for name in names:
        np.save(name, np.array([[names.index(name)]]))
    orders = []
    for folder_order in (names, names[::-1]):
        monkeypatch.setattr(stored.glob, "glob", lambda *_, order=folder_order, **__: order)
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
def test_rows_are_read_from_all_files(array, rows):
    result = sharded("x-*.npy")[rows]
    expected = array[:0] if isinstance(rows, list) and not rows else array[rows]
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, expected)


def test_a_sharded_array_has_the_attributes_of_an_array(array):
    shards = sharded("x-*.npy")
    assert isinstance(shards, ShardedArray)
    assert (shards.shape, shards.dtype, shards.ndim, len(shards)) == ((50, 3), array.dtype, 2, 50)
    assert repr(shards) == "ShardedArray(12 files, shape=(50, 3), dtype=int64)"


def test_a_sharded_array_becomes_a_numpy_array(array):
    shards = sharded("x-*.npy")
    np.testing.assert_array_equal(np.asarray(shards), array)
    assert np.asarray(shards, dtype="float32").dtype == "float32"


def test_files_are_sorted_by_the_numbers_in_their_names(array):
    assert [file.name for file in sharded("x-*.npy").files] == [f"x-{k}.npy" for k in range(12)]


def test_a_list_of_files_keeps_its_order(array, tmp_path):
    shards = sharded([tmp_path / "x-3.npy", "x-0.npy"])
    np.testing.assert_array_equal(shards[:], np.concatenate([array[3:10], array[:1]]))


def test_few_files_are_open_at_a_time(array, monkeypatch):
    monkeypatch.setattr(stored, "MOST_OPEN", 2)
    shards = sharded("x-*.npy")
    np.testing.assert_array_equal(shards[:], array)
    assert len(shards._open) == 2


def test_columns_of_all_rows(array):
    columns = sharded("x-*.npy")[:, 1:]
    assert (columns.shape, columns.ndim, len(columns)) == ((50, 2), 2, 50)
    for rows in (slice(None), [3, 49], slice(40, 2, -3), []):
        np.testing.assert_array_equal(columns[rows], array[rows][:, 1:])


def test_columns_can_be_chosen_only_once(array):
    columns = sharded("x-*.npy")[:, 1:]
    with pytest.raises(IndexError, match="expected rows"):
        columns[:, 1:]


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
def test_wrong_rows(array, rows, words):
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
def test_wrong_files(array, tmp_path, files, error, words):
    np.save("other.npy", np.zeros((2, 4), int))
    np.save("small.npy", np.zeros((2, 3), "int32"))
    (tmp_path / "words.txt").write_text("no numbers")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save("objects.npy", np.array([None, "a"], dtype=object))
    np.savez("several.npz", x=array)
    np.save("number.npy", 3.0)
    with pytest.raises(error, match=words):
        sharded(files)


def test_a_file_that_has_changed_is_reported(array):
    shards = sharded("x-*.npy")
    np.save("x-3.npy", np.zeros((6, 3), int))
    with pytest.raises(ValueError, match=r"x-3.npy has shape \(6, 3\) .*expected a file that"):
        shards[5]
