"""`python -m benchmarks cases` shows what is tested less often than before."""

import ast
from collections import Counter

import pytest

from benchmarks.cases import fewer, is_assertion


def test_a_case_that_is_gone_is_shown_with_its_folder():
    before = {"data": Counter({"1, 'a'": 2, "2, 'b'": 1}), "core": Counter({"": 3})}
    now = {"data": Counter({"1, 'a'": 1, "2, 'b'": 1}), "core": Counter({"": 4})}
    assert fewer(before, now) == ["tests/data: 1 fewer of the case 1, 'a'"]


def test_all_cases_of_a_folder_that_is_gone_are_shown():
    assert fewer({"data": Counter({"": 3})}, {}) == [
        "tests/data: 3 fewer of the case without parameters"
    ]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("assert x", True),
        ("np.testing.assert_allclose(x, y)", True),
        ("assert_gradients(layer)", True),
        ("pytest.raises(ValueError)", True),
        ("check(x)", False),
        ("x = 1", False),
    ],
)
def test_what_asserts_something_is_counted(statement, expected):
    nodes = list(ast.walk(ast.parse(statement)))
    assert any(is_assertion(node) for node in nodes) == expected
