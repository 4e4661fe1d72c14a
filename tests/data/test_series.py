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


WALKS = {"id": "walk", "time": "second", "label": "gait"}


def test_a_table_in_long_form(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(LONG)
    data = read_series(path, **WALKS)
    assert data.ids == ["b", "a"]
    assert data.labels == ["slow", "fast"]
    assert data.features == ["x", "y"]
    np.testing.assert_array_equal(data.series[0], [[3, 4], [5, 6]])
    np.testing.assert_array_equal(data.series[1], [[7, 8], [1, 2]])


def test_rows_without_a_time_keep_their_order(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(LONG)
    data = read_series(path, id="walk", label="gait", features=["y"])
    np.testing.assert_array_equal(data.series[0], [[6], [4]])


def test_a_table_without_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(LONG)
    assert read_series(path, id="walk", features=["x"]).labels is None


TIMES = [
    ["9", "10", "100"],
    ["1e1", "10.5", "100"],
    ["1700000000000000001", "1700000000000000002", "1700000000000000003"],
    ["t9", "t10", "t100"],
    ["-3 s", "-1 s", "2 s"],
    ["-1.5s", "0s", "0.25s"],
    ["2023-12", "2024-01", "2024-10"],
    ["2024-02-29", "2024-03-01", "2024-10-01"],
    ["2024-01-31 09:30:00", "2024-02-01T00:00:00.5", "2024-10-01 00:00"],
    ["2024-01-31T09:30Z", "2024-02-01T00:00Z", "2024-10-01T00:00Z"],
    ["2024-10-27T02:30+02:00", "2024-10-27T02:15+01:00", "2024-10-27T01:30Z"],
    ["2024-01-01 00:00:00.0000001", "2024-01-01 00:00:00.0000002", "2024-01-01 00:00:00.00001"],
]


def read_times(tmp_path, times, end=".csv"):
    """Read series whose only feature is the number of the row."""
    path = tmp_path / f"a{end}"
    path.write_text("id,t,x\n" + "".join(f"a ,{t},{i}\n" for i, t in enumerate(times)))
    return read_series(path, id="id", time="t").series[0].ravel().tolist()


@pytest.mark.parametrize("times", TIMES)
def test_times_are_sorted_as_times(tmp_path, times):
    assert read_times(tmp_path, times[::-1]) == [2, 1, 0]


def test_times_of_day_must_be_in_order(tmp_path):
    assert read_times(tmp_path, ["09:30", "10:00", "11:15"]) == [0, 1, 2]
    assert read_times(tmp_path, ["02:30+02:00", "02:15+01:00"]) == [0, 1]  # of one day
    with pytest.raises(ValueError, match=r"line 3 has the time '00:10' and an earlier row.*dates"):
        read_times(tmp_path, ["23:50", "00:10"])


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        (["1", "", "2"], "line 3 has no 't'; .* by which the rows of a series are sorted"),
        (["1.2.2024", "10.1.2024"], "line 2 has the time '1.2.2024'.*cannot be sorted as times"),
        (["01.02.2024", "10.01.2024"], "line 2 has the time '01.02.2024'"),
        (["10:00", "9:30"], "line 3 has the time '9:30'.*Expected numbers, or dates"),
        (["2024-01-01", "2024-01-01T09:30"], "line 3 has the time '2024-01-01T09:30'"),
        (["2024-02-28", "2024-02-30"], "line 3 has the time '2024-02-30'"),
        (["1", "nan"], "line 3 has the time 'nan'"),
        (["1", "2", "inf"], "line 4 has the time 'inf'"),
        (["1", "1e999"], "line 3 has the time '1e999'"),
        (["1", "9" * 5000], "line 3 has the time '9999"),
        (["2024-01-01T09:30", "2024-01-01T09:30Z"], "line 3.*and line 2 '2024-01-01T09:30'"),
        (["5 s", "1 min"], "line 3 has the time '1 min'"),
        (["9 AM", "12 AM"], "line 2 has the time '9 AM'"),
        (["\u22125 s", "\u22123 s"], "line 2 has the time '\u22125 s'"),
        (["t-2", "t-1"], "line 2 has the time 't-2'"),
        (["24:00", "25:00"], "line 2 has the time '24:00'"),
        (["5", "2024-01-01"], "line 3 has the time '2024-01-01'"),
        (["01", "1"], "line 3 has the time '1' of an earlier row of series 'a'"),
    ],
)
def test_times_that_cannot_be_sorted(tmp_path, times, problem):
    with pytest.raises(ValueError, match=problem):
        read_times(tmp_path, times)


ROWS = [[0.5, 0.25, 4.0], [7.0, 8.0, 10.5]]
HEADLESS = "1 {0}0.5{0}0.25{0}4\n2{0}7{0}8{0}10.5\n"


@pytest.mark.parametrize(
    ("name", "words", "labels"),
    [
        ("a.csv", "label,t0,t1,t2\n1,0.5,0.25,4\n2,7,8,10.5\n", ["1", "2"]),
        ("a.csv", "label,t10,t1,t9\nup,4,0.5,0.25\ndown,10.5,7,8\n", ["up", "down"]),
        ("a.csv", "label,0,1,2\nup,0.5,0.25,4\ndown,7,8,10.5\n", ["up", "down"]),
        ("a.csv", "2024-01,2024-02,2024-03,gait\n0.5,0.25,4,up\n7,8,10.5,up\n", ["up", "up"]),
        ("a.csv", "t0;t1;t2\n0.5;0.25;4\n7;8;10.5\n", None),
        ("a.csv", HEADLESS.format(","), ["1", "2"]),
        ("a.tsv", HEADLESS.format("\t"), ["1", "2"]),
        ("a.csv", HEADLESS.format(",").replace("1 ", "up").replace("2,", "down,"), ["up", "down"]),
        ("a.json", '[{"y":1,"0":0.5,"1":0.25,"2":4},{"y":2,"0":7,"1":8,"2":10.5}]', ["1", "2"]),
    ],
)
def test_a_table_with_a_series_a_row(tmp_path, name, words, labels):
    (tmp_path / name).write_text(words)
    data = read_series(tmp_path / name)
    assert [steps.ravel().tolist() for steps in data.series] == ROWS
    assert data.labels == labels


def test_shorter_series_end_with_empty_cells(tmp_path):
    (tmp_path / "a.csv").write_text("1,0.5,NaN,\n2,7,8,10\n")
    data = read_series(tmp_path / "a.csv")
    assert [steps.ravel().tolist() for steps in data.series] == [[0.5], [7, 8, 10]]
    assert data.ids == ["line 1", "line 2"]


SHORT = "1.0,0.5,0.25,{0}\n0.9,0.5,0.5,{1}\n1.0,0.5,0.75,{0}\n"
HEARTBEATS = "".join(f"{1 if i % 3 else 0.9:e},{i / 7:e},0,{i % 2:e}\n" for i in range(24))


@pytest.mark.parametrize(
    ("case", "words", "labels"),
    [
        (
            "as in the archive: the label first",
            "1,0.5,0.25\n2,0.5,0.75\n1,0.25,.5\n",
            ["1", "2", "1"],
        ),
        ("words last", SHORT.format("up", "down"), ["up", "down", "up"]),
        ("words last, each once", "1.5,0.5,0.25,up\n1.25,0.5,0.75,down\n", ["up", "down"]),
        ("numbers last", SHORT.format("3", "4"), ["3", "4", "3"]),
        ("as heartbeats: 1 at first, 0 at the end", HEARTBEATS, [f"{i % 2:e}" for i in range(24)]),
        ("no labels", SHORT.format("0.3", "4"), None),
    ],
)
def test_which_end_has_the_labels_without_a_heading(tmp_path, case, words, labels):
    (tmp_path / "a.csv").write_text(words)
    data = read_series(tmp_path / "a.csv")
    assert data.labels == labels
    row = [float(word) for word in words.split("\n")[0].split(",") if word.strip("updown")]
    if labels is None or "words" in case:  # all numbers are values
        expected = row
    elif case.startswith("as in"):
        expected = row[1:]
    else:
        expected = row[:-1]
    assert data.series[0].ravel().tolist() == expected


@pytest.mark.parametrize("begin", [0, 1])
def test_a_column_that_counts_the_rows_is_no_value(tmp_path, begin):
    rows = [f"{begin + i},0.5,{i / 7},{i % 2}\n" for i in range(12)]
    (tmp_path / "a.csv").write_text("".join(rows))
    with pytest.raises(ValueError, match=rf"first column counts the rows from {begin}; expected"):
        read_series(tmp_path / "a.csv")


@pytest.mark.parametrize("heading", ["1_10,10_1,label", "t0,t1,label"])
def test_an_underscore_is_no_part_of_a_number(tmp_path, heading):
    (tmp_path / "a.csv").write_text(f"{heading}\n1_000,2,x\n3,4,y\n")
    with pytest.raises(
        ValueError, match=r"which column|'1_000' in the column 't0'; expected a numb"
    ):
        read_series(tmp_path / "a.csv")


TWO_POSSIBLE_ENDS = "1,0.5,3\n2,0.25,4\n1,7,3\n"


def test_which_end_has_the_labels_is_asked_in_doubt(tmp_path):
    (tmp_path / "a.csv").write_text(TWO_POSSIBLE_ENDS)
    with pytest.raises(
        ValueError, match=r"both its first and its last.* label='first' or .*--label"
    ):
        read_series(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("label", "labels", "first_series"),
    [("first", ["1", "2", "1"], [0.5, 3]), ("last", ["3", "4", "3"], [1, 0.5])],
)
def test_the_end_with_the_labels_can_be_named(tmp_path, label, labels, first_series):
    (tmp_path / "a.csv").write_text(TWO_POSSIBLE_ENDS)
    data = read_series(tmp_path / "a.csv", label=label)
    assert data.labels == labels
    assert data.series[0].ravel().tolist() == first_series


def test_whole_numbers_that_rarely_repeat_are_values(tmp_path):
    many = "".join(f"{i % 2},0.5,{i}\n" for i in range(20))
    (tmp_path / "a.csv").write_text(many)
    assert read_series(tmp_path / "a.csv").labels == ["0", "1"] * 10


@pytest.mark.parametrize(
    ("words", "settings", "problem"),
    [
        (LONG, {}, "says to which series a row belongs"),
        (LONG.replace("a,1", ",1"), {"id": "walk"}, "line 3 has no 'walk'; expected the series"),
        ("id,x1,x2\n1,2,3\n", {}, "says to which series a row belongs"),
        ("t0,t1,gait\n1,2,a\n", {"time": "t0"}, "time is given without id"),
        ("t0,t1,gait\n1,2,a\n", {"label": "gai"}, "no column 'gai'.*Did you mean 'gait'"),
        ("t0,t1,gait\n1,2,NaN\n", {}, "line 2 has 'NaN' for 'gait'"),
        ("t0,t1,t2,gait\n1,,2,a\n", {}, "line 2 has nothing in the column 't1'"),
        ("t0,t1,gait\n,,a\n", {}, "line 2 has nothing in the column 't0'"),
        ("t0;t1;gait\n1;2,5;a\n", {}, "line 2 has '2,5'.*A decimal comma. Write 2.5"),
        ("t0,t1,gait\n1,inf,a\n", {}, "line 2 has 'inf' in the column 't1'"),
        ("up,1,2,3\ndown,3,2,1\n", {}, "line 1 may be the names of the columns, or a label"),
        ("1,2,3\n2,5,5\n", {}, "line 1 may be the names"),
        ("1,2,3,up\n3,2,1,down\n", {}, "line 1 may be the names"),
        (LONG, {"id": "wlk"}, "no column 'wlk'.*Did you mean 'walk'"),
        (LONG, {"id": "walk"}, "line 2 has 'slow' in the column 'gait'; expected a number"),
        (LONG.replace("5,6", ",6"), {"id": "walk", "label": "gait"}, "line 2 has nothing in the"),
        (LONG.replace("5,6", '"0,5",6'), WALKS, "line 2 has '0,5' in .*A decimal comma. Write 0.5"),
        (LONG.replace("5,6", "nan,6"), WALKS, "line 2 has 'nan' in"),
        (LONG.replace("b,1,3", "b,2,3"), WALKS, "line 4 has the time '2' of an .* row of.*'b'"),
        (LONG.replace("4,slow", "4,fast"), WALKS, "line 4 gives series 'b' .* earlier row 'slow'"),
        ("id,label\na,b\n", {"id": "id", "label": "label"}, "has no feature columns"),
    ],
)
def test_wrong_tables(tmp_path, words, settings, problem):
    path = tmp_path / "a.csv"
    path.write_text(words)
    with pytest.raises(ValueError, match=problem):
        read_series(path, **settings)


@pytest.mark.parametrize("flat", [False, True])
def test_joined_arrays(tmp_path, flat):
    values = np.arange(10.0) if flat else np.arange(10.0).reshape(5, 2)
    lengths = [4, 6] if flat else [2, 3]
    np.savez(tmp_path / "a.npz", values=values, lengths=lengths, labels=["x", "y"])
    data = read_series(tmp_path / "a.npz")
    assert [len(steps) for steps in data.series] == lengths
    assert data.labels == ["x", "y"]
    assert data.series[0].shape[1] == (1 if flat else 2)


def test_padded_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3, 2)), lengths=[1, 3])
    assert [len(steps) for steps in read_series(tmp_path / "a.npz").series] == [1, 3]


def test_padded_arrays_without_lengths(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3, 2)))
    assert [len(steps) for steps in read_series(tmp_path / "a.npz").series] == [3, 3]


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({}, "has no array; expected values"),
        ({"values": np.zeros((3, 1))}, "has values; expected values"),
        ({"y": np.zeros(3)}, "has y; expected values"),
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


def test_a_file_of_text_has_no_arrays(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"not a \.npz file of plain arrays"):
        read_series(tmp_path / "a.npz")


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_series(tmp_path / "b.npz")


def test_arrays_of_objects_are_refused(tmp_path):
    np.savez(tmp_path / "c.npz", values=np.array([None]), lengths=[1])
    with pytest.raises(ValueError, match=r"not a \.npz file of plain arrays"):
        read_series(tmp_path / "c.npz")


def test_columns_are_refused_for_a_file_of_arrays(tmp_path):
    np.savez(tmp_path / "c.npz", values=np.array([None]), lengths=[1])
    with pytest.raises(ValueError, match="id is given, which is for tables"):
        read_series(tmp_path / "c.npz", id="a")
