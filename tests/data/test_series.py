"""Series from tables in long form and from arrays."""

import numpy as np
import pytest

from npformer.data.series import read_series

LONG = """walk,second,x,y,gait
b,2,5,6,slow
a,1,1,2,fast
b,1,3,4,slow
a,0.5,7,8,fast
"""


def test_a_table_in_long_form(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(LONG)
    found = read_series(path, id="walk", time="second", label="gait")
    assert found.ids == ["b", "a"]
    assert found.labels == ["slow", "fast"]
    assert found.features == ["x", "y"]
    np.testing.assert_array_equal(found.series[0], [[3, 4], [5, 6]])
    np.testing.assert_array_equal(found.series[1], [[7, 8], [1, 2]])
    kept = read_series(path, id="walk", label="gait", features=["y"])
    np.testing.assert_array_equal(kept.series[0], [[6], [4]])
    assert read_series(path, id="walk", features=["x"]).labels is None


def test_times_may_be_dates(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,t,x\na,2024-03-01,2\na,2024-01-15,1\n")
    np.testing.assert_array_equal(read_series(path, id="id", time="t").series[0], [[1], [2]])


@pytest.mark.parametrize(
    "times",
    [
        ["9", "10", "100"],
        ["t9", "t10", "t100"],
        ["09:30", "10:00", "11:15"],
        ["2024-01-31 09:30:00", "2024-02-01 00:00:00", "2024-10-01 00:00:00"],
        ["2024-01-31T09:30Z", "2024-02-01T00:00Z", "2024-10-01T00:00Z"],
    ],
)
def test_times_are_sorted_as_times(tmp_path, times):
    path = tmp_path / "a.csv"
    path.write_text("id,t,x\n" + "".join(f"a,{t},{i}\n" for i, t in enumerate(times)))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[:0:-1]]))
    (series,) = read_series(path, id="id", time="t").series
    assert series.ravel().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        (["1", "", "2"], "line 3 has no 't', by which the rows of a series are sorted"),
        (["1.2.2024", "10.1.2024"], "line 2 has the time '1.2.2024'.*does not sort by time"),
        (["01.02.2024", "10.01.2024"], "line 2 has the time '01.02.2024'"),
        (["10:00", "9:30"], "line 3 has the time '9:30'.*Expected numbers, or dates"),
        (["2024-01-01", "2024-01-01T09:30"], "line 3 has the time '2024-01-01T09:30'"),
    ],
)
def test_times_that_do_not_sort(tmp_path, times, problem):
    path = tmp_path / "a.csv"
    path.write_text("id,t,x\n" + "".join(f"a,{t},1\n" for t in times))
    with pytest.raises(ValueError, match=problem):
        read_series(path, id="id", time="t")


@pytest.mark.parametrize(
    ("words", "settings", "problem"),
    [
        (LONG, {}, "says to which series a row belongs"),
        (LONG, {"id": "wlk"}, "no column 'wlk'.*Did you mean 'walk'"),
        (LONG, {"id": "walk"}, "line 2 has 'slow' in the column 'gait'; expected a number"),
        (LONG.replace("5,6", ",6"), {"id": "walk", "label": "gait"}, "line 2 has nothing in the"),
        (
            LONG.replace("5,6", '"0,5",6'),
            {"id": "walk", "label": "gait"},
            "line 2 has '0,5' in .*A decimal comma. Write 0.5",
        ),
        (LONG.replace("5,6", "nan,6"), {"id": "walk", "label": "gait"}, "line 2 has 'nan' in"),
        (
            LONG.replace("b,1,3", "b,2,3"),
            {"id": "walk", "time": "second", "label": "gait"},
            "line 4 has the time '2' of an earlier row of series 'b'",
        ),
        (
            LONG.replace("4,slow", "4,fast"),
            {"id": "walk", "label": "gait"},
            "line 4 gives series 'b' the label 'fast', and an earlier row 'slow'",
        ),
        ("id,label\na,b\n", {"id": "id", "label": "label"}, "has no feature columns"),
    ],
)
def test_wrong_tables(tmp_path, words, settings, problem):
    path = tmp_path / "a.csv"
    path.write_text(words)
    with pytest.raises(ValueError, match=problem):
        read_series(path, **settings)


@pytest.mark.parametrize("flat", [False, True])
def test_arrays(tmp_path, flat):
    values = np.arange(10.0) if flat else np.arange(10.0).reshape(5, 2)
    lengths = [4, 6] if flat else [2, 3]
    np.savez(tmp_path / "a.npz", values=values, lengths=lengths, labels=["x", "y"])
    found = read_series(tmp_path / "a.npz")
    assert [len(each) for each in found.series] == lengths
    assert found.labels == ["x", "y"]
    assert found.series[0].shape[1] == (1 if flat else 2)
    x = np.zeros((2, 3, 2))
    np.savez(tmp_path / "b.npz", x=x, lengths=[1, 3])
    assert [len(each) for each in read_series(tmp_path / "b.npz").series] == [1, 3]
    np.savez(tmp_path / "c.npz", x=x)
    assert [len(each) for each in read_series(tmp_path / "c.npz").series] == [3, 3]


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({}, "has no array; expected values"),
        ({"values": np.zeros((3, 1))}, "has values; expected values"),
        ({"y": np.zeros(3)}, "has an array 'y'"),
        ({"values": np.zeros((3, 1)), "lengths": [1, 1]}, "add up to 2, and values has 3 rows"),
        ({"values": np.zeros((3, 1)), "lengths": [3, 0]}, "each at least 1"),
        ({"values": np.zeros((3, 1)), "lengths": [1.0, 2.0]}, "lengths is float64"),
        ({"values": np.array(["a"]), "lengths": [1]}, "values is <U1"),
        ({"x": np.zeros((2, 3, 1)), "lengths": [1, 4]}, "lengths must be from 1 to 3"),
        ({"x": np.zeros((2, 3, 1)), "labels": [1]}, r"labels has shape \(1,\)"),
    ],
)
def test_wrong_arrays(tmp_path, arrays, problem):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=problem):
        read_series(tmp_path / "a.npz")


def test_what_is_no_file_of_arrays(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"not a \.npz file of plain arrays"):
        read_series(tmp_path / "a.npz")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_series(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", values=np.array([None]), lengths=[1])
    with pytest.raises(ValueError, match=r"not a \.npz file of plain arrays"):
        read_series(tmp_path / "c.npz")
    with pytest.raises(ValueError, match="id is given, which is for tables"):
        read_series(tmp_path / "c.npz", id="a")
