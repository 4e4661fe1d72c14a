"""Series from .ts and .arff files of the UCR archive."""

import gzip

import pytest

from npformer.data.series import read_series

TS = """# Two features, and series of unequal length.
@problemName Walks
@timeStamps false
@univariate false
@equalLength false
@classLabel true Fast Slow
@data
1,2,3:4,5,6:Fast
7,8:9,10:slow
"""

TS_OF_ONE_FEATURE = """%# One feature.
@problemName Coffee
@univariate true
@equalLength true
@classLabel true 0 1
@data
0.5,1e-1,-3:0
1,2,?:1
"""

ARFF = r"""% Two features.
@RELATION Walks
@attribute walk relational
  @attribute t0 numeric
  @attribute t1 numeric
  @attribute t2 numeric
@end walk
@attribute gait {Fast,'Slow'}

@data
'1,2,3\n4,5,6',Fast
"7,8,?\n9,10,?",'Slow'
"""

ARFF_OF_ONE_FEATURE = """@relation Coffee
@attribute 'at 0' numeric
@attribute at1 real
@attribute at2 INTEGER
@attribute target {0, 1}
@DATA
0.5,1e-1,-3,0
1,2,?, 1
"""

WALKS = [[[1, 4], [2, 5], [3, 6]], [[7, 9], [8, 10]]]
COFFEE = [[[0.5], [0.1], [-3]], [[1], [2]]]


def write(tmp_path, name, words):
    path = tmp_path / name
    path.write_text(words)
    return path


@pytest.mark.parametrize(
    ("name", "words", "series", "labels"),
    [
        ("a.ts", TS, WALKS, ["Fast", "Slow"]),
        ("a.TS", TS_OF_ONE_FEATURE, COFFEE, ["0", "1"]),
        ("a.arff", ARFF, WALKS, ["Fast", "Slow"]),
        ("a.arff", ARFF_OF_ONE_FEATURE, COFFEE, ["0", "1"]),
    ],
    ids=["ts", "ts of one feature", "arff", "arff of one feature"],
)
def test_a_file_of_the_archive_holds_series_with_labels(tmp_path, name, words, series, labels):
    data = read_series(write(tmp_path, name, words))
    assert [steps.tolist() for steps in data.series] == series
    assert data.labels == labels


def test_a_file_of_the_archive_may_be_compressed(tmp_path):
    path = tmp_path / "a.ts.gz"
    path.write_bytes(gzip.compress(TS.encode()))
    assert read_series(path).labels == ["Fast", "Slow"]


def test_series_are_called_by_their_lines(tmp_path):
    assert read_series(write(tmp_path, "a.ts", TS)).ids == ["line 8", "line 9"]


def test_a_heading_may_say_that_there_are_no_labels(tmp_path):
    words = TS_OF_ONE_FEATURE.replace("true 0 1", "false").replace("-3:0", "-3")
    data = read_series(write(tmp_path, "a.ts", words.replace("?:1", "?")))
    assert (data.labels, len(data.series)) == (None, 2)


def test_a_target_of_regression_is_read_as_written(tmp_path):
    words = TS_OF_ONE_FEATURE.replace("@classLabel true 0 1", "@targetLabel true")
    assert read_series(write(tmp_path, "a.ts", words.replace("-3:0", "-3:0.25"))).labels == [
        "0.25",
        "1",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("@data\n", "", r"line 7 is '1,2,3:4,5,6:Fast', before @data"),
        ("@data", "@data 3", "line 7 is '@data 3'; expected nothing after @data"),
        ("@univariate false", "@univariate no", "line 4 is '@univariate no'; expected true or"),
        ("@univariate false", "@univariate true", "line 8 has 2 features.*@univariate is true"),
        ("@equalLength false", "@equalLength true", "line 9 has 2 values and line 8 has 3"),
        ("@timeStamps false", "@timeStamps true", "has @timeStamps true: a time with each value"),
        ("true Fast Slow", "true", "has @classLabel true without names"),
        ("@classLabel true Fast Slow\n", "", "line 6 ends a heading that does not say whether"),
        ("9,10:slow", "9,10:walks", "line 9 has the label 'walks'; expected one .*'Fast', 'Slow'"),
        ("9,10:slow", "9:slow", "line 9 has 2 values of feature 0 and 1 of feature 1"),
        ("9,10:slow", "slow", "line 9 has 1 features, between colons, and line 8 has 2"),
        ("9,10:slow", "9,10:", "line 9 has no label"),
        ("4,5,6", "4,x,6", "line 8 has 'x' as the value of feature 1 at step 1; expected a numb"),
        ("4,5,6", "4,,6", "line 8 has nothing as the value of feature 1 at step 1"),
        ("4,5,6", "4,?,6", "line 8 lacks the value of feature 1 at step 1; expected one, except"),
        ("7,8:9,10", "?,?:NaN,?", "line 9 has no value"),
        ("1,2,3:4,5,6:Fast\n7,8:9,10:slow\n", "", "has no series; expected one in each line"),
    ],
)
def test_a_wrong_ts_file_is_refused_with_its_line(tmp_path, old, new, problem):
    assert old in TS
    path = write(tmp_path, "a.ts", TS.replace(old, new))
    with pytest.raises(ValueError, match=problem):
        read_series(path)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("@data\n", "", "line 10 is .*; expected @attribute, a name and a type, or @data"),
        ("@attribute gait {Fast,'Slow'}\n", "", "line 9 ends a heading with .*types relational;"),
        ("@attribute gait", "@attribute", "line 8 is .@attribute {Fast"),
        ("'Slow'\n", "'Walks'\n", "line 12 has the label 'Walks'; expected one"),
        ("9,10,?", "9,10", "line 12 has 3 values of feature 0 and 2 of feature 1"),
        (r"'1,2,3\n4,5,6'", "1,2,3", "line 11 does not begin with a series in quotation marks"),
        (r"\n9,10,?", "", "line 12 has 1 features and line 11 has 2; expected as many"),
        (r"'1,2,3\n4,5,6'", "{0 1}", "line 11 is in sparse form"),
        (r"'1,2,3\n4,5,6',Fast", "Fast", "line 11 has no label"),
        ("4,5,6", "4,x,6", "line 11 has 'x' as the value of feature 1 at step 1"),
    ],
)
def test_a_wrong_arff_file_is_refused_with_its_line(tmp_path, old, new, problem):
    assert old in ARFF
    path = write(tmp_path, "a.arff", ARFF.replace(old, new))
    with pytest.raises(ValueError, match=problem):
        read_series(path)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("1,2,?, 1", "1,2, 1", "line 8 has 2 values before its label, and the heading 3"),
        ("at1 real", "at1 string", "line 6 ends a heading with .*numeric, string, integer, {0, 1}"),
    ],
)
def test_a_wrong_arff_file_of_one_feature_is_refused(tmp_path, old, new, problem):
    path = write(tmp_path, "a.arff", ARFF_OF_ONE_FEATURE.replace(old, new))
    with pytest.raises(ValueError, match=problem):
        read_series(path)


def test_columns_are_refused_for_a_file_of_the_archive(tmp_path):
    with pytest.raises(ValueError, match=r"is a \.ts file, and label is given, which is for table"):
        read_series(write(tmp_path, "a.ts", TS), label="gait")
