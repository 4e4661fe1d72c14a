"""Where libraries disagree: the page is of the stored table, and npformer gives its numbers."""

import numpy as np
import pytest

from benchmarks.disagreements import asking
from benchmarks.disagreements.asking import (
    ask_library,
    call_names,
    library_names,
    packages,
)
from benchmarks.disagreements.page import (
    PAGE,
    calls_that_miss,
    cells_without_reason,
    count_cells,
    page_text,
    pairs_without_words,
)
from benchmarks.disagreements.parts import PARTS
from benchmarks.disagreements.reasons import evaluate, reason_number, reasons_of
from benchmarks.disagreements.table import (
    STORED,
    differs,
    relative_gap,
    stored_table,
    table_text,
    update_table,
)
from benchmarks.disagreements.without_calls import ALL, WithoutCall, all_reasons

TABLE = stored_table()

QUESTIONS = [
    pytest.param(part, question, id=f"{part.name}/{question.name}")
    for part in PARTS
    for question in part.questions
]

REASONS = [
    pytest.param(part, number, reason, id=f"{part.name}-{number}")
    for part in PARTS
    for number, reason in enumerate(reasons_of(part), start=1)
]


def test_the_page_is_what_the_command_writes_of_the_stored_table():
    assert PAGE.read_text("utf-8") == page_text(TABLE)


def test_the_stored_table_is_written_as_the_command_writes_it():
    assert STORED.read_text("utf-8") == table_text(TABLE)


@pytest.mark.parametrize(("part", "question"), QUESTIONS)
def test_npformer_gives_today_what_the_table_has(part, question):
    stored = TABLE["parts"][part.name]["questions"][question.name]["npformer"]
    assert stored.keys() == question.answers.keys()
    for name, value in question.answers.items():
        np.testing.assert_allclose(
            np.array(stored[name], "float64"), value, rtol=1e-12, atol=1e-300
        )


def test_each_call_gives_npformers_numbers_at_ten_random_settings():
    assert calls_that_miss(TABLE) == []
    settings = [
        it["settings"] for part in TABLE["parts"].values() for it in part["random"].values()
    ]
    assert set(settings) == {10}


def test_each_library_has_a_call_or_words_for_each_part():
    assert pairs_without_words(TABLE) == []


@pytest.mark.parametrize("without_call", all_reasons(), ids=lambda it: it.words)
def test_a_library_without_a_call_has_no_agreement(without_call):
    agreements = {
        (library, part) for part, stored in TABLE["parts"].items() for library in stored["random"]
    }
    assert {pair for pair in named_pairs(without_call) if pair in agreements} == set()
    known_pairs = {(library, part) for library in library_names() for part in TABLE["parts"]}
    assert named_pairs(without_call) <= known_pairs


@pytest.mark.parametrize(
    "without_call", [it for it in all_reasons() if it.call_of], ids=lambda it: it.words
)
def test_the_call_to_use_instead_agrees(without_call):
    for _, part in named_pairs(without_call):
        assert without_call.call_of in TABLE["parts"][part]["random"]


def named_pairs(without_call: WithoutCall):
    """Return the pairs of library and part that are named, not those that "*" stands for."""
    return {
        (library, part)
        for library in without_call.libraries
        for part in without_call.parts
        if ALL not in (library, part)
    }


@pytest.mark.parametrize(("part", "question"), QUESTIONS)
def test_each_library_with_a_call_for_a_question_has_a_cell(part, question):
    callers = {name for name in library_names() if question.call in call_names(name)}
    row = TABLE["parts"][part.name]["questions"][question.name]
    assert row.keys() - {"npformer"} == callers


def test_each_cell_that_differs_has_a_reason():
    assert cells_without_reason(TABLE) == []


@pytest.mark.parametrize(("part", "number", "reason"), REASONS)
def test_each_reason_explains_a_cell_that_differs(part, number, reason):
    rows = TABLE["parts"][part.name]["questions"]
    explained_libraries = {
        library
        for name in reason.questions
        for library, cell in rows[name].items()
        if library != "npformer"
        and any(
            differs(cell, rows[name]["npformer"], it) for it in names_of_answers(cell, rows[name])
        )
        and reason_number(reasons_of(part), name, library) == number
    }
    assert explained_libraries == set(reason.libraries)


def names_of_answers(cell, row):
    """Return the names of the answers in a cell; npformer has none if it refuses the arrays."""
    return [name for name in ("y", *row["npformer"]) if name in cell or "error" in cell]


@pytest.mark.parametrize(
    ("part", "number", "reason"), [it for it in REASONS if it.values[2].npformer]
)
def test_npformers_expression_gives_the_librarys_number(part, number, reason):
    compared_cells = 0
    for question in part.questions:
        row = TABLE["parts"][part.name]["questions"][question.name]
        for library, cell in row.items():
            is_explained = reason_number(reasons_of(part), question.name, library) == number
            if library != "npformer" and is_explained and differs(cell, row["npformer"], "y"):
                y = evaluate(reason.npformer, question)
                np.testing.assert_allclose(np.array(cell["y"], "float64"), y, rtol=1e-5, atol=1e-12)
                compared_cells += 1
    assert compared_cells


@pytest.mark.parametrize("library", library_names())
def test_each_package_of_a_library_has_one_version(library):
    assert all(len(package.split("==")) == 2 for package in packages(library))
    assert TABLE["libraries"][library] == packages(library)


def test_a_cell_that_changed_keeps_what_it_was():
    answer = {"y": {"dtype": "float32", "values": [1.0]}}
    first = update_table({"libraries": {}, "parts": {}}, PARTS[:1], {"torch": {KEY: answer}})
    other = {"y": {"dtype": "float32", "values": [2.0]}}
    second = update_table(first, PARTS[:1], {"torch": {KEY: other}})
    row = second["parts"][PARTS[0].name]["questions"][PARTS[0].questions[0].name]
    assert row["torch"] == {"y": [2.0], "dtype": "float32", "was": {"y": [1.0], "dtype": "float32"}}


KEY = f"{PARTS[0].name}/{PARTS[0].questions[0].name}"


@pytest.mark.parametrize(
    ("answer", "value", "expected"),
    [
        pytest.param([1.0], [1.0], False, id="equal"),
        pytest.param([1.0 + 15 * 2**-23], [1.0], False, id="rounding"),
        pytest.param([1.0 + 17 * 2**-23], [1.0], True, id="too-far"),
        pytest.param([np.nan], [1.0], True, id="nan"),
        pytest.param([np.nan], [np.nan], False, id="both-nan"),
        pytest.param([[1.0]], [1.0], True, id="another-shape"),
        pytest.param([1e-9, 1.0], [0.0, 1.0], False, id="nearly-zero"),
    ],
)
def test_a_cell_differs_beyond_sixteen_units_in_the_last_place(answer, value, expected):
    assert differs({"y": answer, "dtype": "float32"}, {"y": value}, "y") is expected


def test_a_gap_of_other_shapes_is_infinite():
    assert relative_gap(np.zeros(2), np.zeros(3)) == np.inf


def test_at_least_forty_of_two_hundred_cells_with_a_number_differ():
    counts = count_cells(TABLE)
    assert counts["n_cells"] >= 200
    assert counts["n_marked"] >= 40


def test_a_missing_uv_is_explained(monkeypatch):
    monkeypatch.setattr(asking.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="pip install uv"):
        ask_library("torch", {})
