"""Every check holds on healthy code, and every bug is noticed by the check that is named for it."""

import pytest

from . import invariants
from .invariants import INVARIANTS, ROOT
from .mutants import MUTANTS, SEEN, infected

by_name = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@pytest.mark.parametrize("name", INVARIANTS)
def test_holds_on_healthy_code(name):
    INVARIANTS[name]()


@by_name
def test_is_noticed_by_its_check(mutant):
    with infected(mutant), pytest.raises(AssertionError):
        mutant.killed_by()


@by_name
def test_leaves_npformer_healthy(mutant):
    with infected(mutant):
        pass
    mutant.killed_by()


@by_name
def test_is_described_in_sentences(mutant):
    for text in (mutant.bug, mutant.who, mutant.why):
        assert len(text) > 20
        assert text[-1] in ".)"
    assert len(mutant.code.splitlines()) <= 12


def test_all_the_bugs_that_were_seen_are_here():
    assert {mutant.number for mutant in MUTANTS} >= set(SEEN)
    numbers = [mutant.number for mutant in MUTANTS]
    assert numbers == sorted(numbers)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_check_notices_something():
    assert {mutant.killed_by.__name__ for mutant in MUTANTS} == set(INVARIANTS)


def test_a_check_that_reads_the_source_reads_it_all():
    names = {name for name, _ in invariants.sources("npformer", "tests")}
    assert "npformer/functional/layer_norm.py" in names
    assert "tests/museum/test_museum.py" in names
    assert len(names) > 100


def test_the_page_says_what_the_table_says():
    page = ROOT / "docs" / "museum.md"
    from .page import write

    assert page.read_text(encoding="utf-8") == write(), "python -m tests.museum.page writes it"
