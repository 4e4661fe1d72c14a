"""`python -m benchmarks names` counts names that do not say what they hold; ours have few."""

from functools import cache

import pytest

from benchmarks import names


def count(source):
    result = names.Names()
    result.add(source, "file.py")
    return result


@pytest.mark.parametrize(
    "source",
    [
        "found = read(path)",
        "a, (found, b) = read(path)",
        "for found in rows: pass",
        "rows = [found for found in rows]",
        "with read(path) as found: pass",
        "if found := read(path): pass",
        "def f():\n    found: int = 1",
    ],
)
def test_each_way_to_bind_a_name_is_counted(source):
    assert [place.split(": ")[1] for place in count(source).places] == ["found"]


@pytest.mark.parametrize("source", ["f(found=1)", "row.found = 1", "print(found)", "founder = 1"])
def test_other_uses_of_a_word_are_not_counted(source):
    assert count(source).places == []


@pytest.mark.parametrize(
    "name",
    ["of_rows", "_in_full", "made", "compared_rows", "running_sum", "without_padding", "shown"],
)
def test_a_function_may_begin_badly(name):
    assert names.begins_badly(name)


@pytest.mark.parametrize(
    "name",
    ["embedding", "embed_rows", "read_table", "padding_mask", "seed", "red", "_feed", "form"],
)
def test_nouns_and_verbs_begin_well(name):
    assert not names.begins_badly(name)


@pytest.fixture
def counts():
    source = "found = 1\nx = 2\ny = 3\nz = found\ndef made(): pass\ndef read(): pass\n"
    return count(source + "class A:\n    def __init__(self): pass")


def test_vague_names_are_counted_for_1000_assignments(counts):
    assert counts.vague == 250.0


def test_bad_beginnings_are_a_share_of_functions(counts):
    assert counts.functions_that_begin_badly == 50.0


def test_each_place_is_listed(counts):
    assert counts.places == ["file.py:1: found", "file.py:5: made()"]


@cache
def names_in(folder):
    """Return the names of a folder, which take seconds to count."""
    return names.names_in(names.ROOT / folder)


@pytest.mark.parametrize(("folder", "limits"), names.LIMITS.items())
def test_local_names_say_what_they_hold(folder, limits):
    assert names_in(folder).vague <= limits[0]


@pytest.mark.parametrize(("folder", "limits"), names.LIMITS.items())
def test_functions_are_named_by_verbs_and_nouns(folder, limits):
    assert names_in(folder).functions_that_begin_badly <= limits[1]
