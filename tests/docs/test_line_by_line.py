"""Line by line: a page for each pair, with the numbers that its lines really make."""

import inspect
import re
from html import escape

import numpy as np
import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site import in_pytorch, line_by_line, running_examples
from docs.site.code_lines import find_folds, hang, text_of
from docs.site.opened_calls import Caches, groups, lines
from docs.site.statements import said_of, statements
from docs.site.traces import watch
from npformer import functional as F
from tests.pairs import FUNCTIONS, NAMES


def call_of(name):
    inputs, options, _ = line_by_line.example(name)
    return watch(FUNCTIONS[name], *inputs, **options)


def code_on(page):
    """Return the code that a page shows, without line breaks or indents."""
    blocks = re.findall(r"<pre class='code'>(.*?)</pre>", page, re.DOTALL)
    return [" ".join(text_of(block).split()) for block in blocks]


def test_the_lines_of_softmax_make_the_numbers_of_the_chapter():
    call = call_of("softmax")
    y, _ = call.result
    np.testing.assert_allclose(y, [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    rows = {row.code.split(" = ")[0]: row.first for row in statements(F.softmax.__code__)}
    np.testing.assert_allclose(call.values_by_line[rows["total"]]["total"], [[2.0], [2.0]])


@pytest.mark.slow
def test_the_page_of_softmax_has_its_numbers():
    _, _, dy = line_by_line.example("softmax")
    text = line_by_line.page("softmax")
    assert "changes nothing in y / total, and nothing can overflow" in text
    assert "[[0.25 0.5  0.25]" in text
    assert "torch.softmax(" in text
    dx = F.softmax_backward(dy, call_of("softmax").result[1])
    assert np.array2string(dx, precision=4, suppress_small=True) in text


@pytest.fixture(scope="module", params=NAMES)
def pair_page(request):
    """Return the name of a pair, and its page."""
    pytest.importorskip("torch", reason=NEEDS["torch"])
    return request.param, line_by_line.page(request.param)


@pytest.mark.slow
def test_a_page_has_every_line_of_a_pair(pair_page):
    name, text = pair_page
    shown = code_on(text)
    for function in (FUNCTIONS[name], FUNCTIONS[f"{name}_backward"]):
        rows = [*statements(inspect.unwrap(function).__code__)]
        assert all(" ".join(row.code.split()) in shown for row in rows)
        explanations = [row.comments or said_of(row.code) for row in rows]
        assert sum(map(bool, explanations)) > 0.55 * len(explanations)
        for explanation in explanations:
            for line in explanation.splitlines():
                assert escape(line) in text
    assert text.count("class='numbers") >= 2
    assert re.search(r"## The same in PyTorch.*```python\nimport.+```", text, re.DOTALL)


def test_a_page_begins_with_the_formulas(pair_page):
    _, text = pair_page
    assert re.match(r"# `\w+`, line by line\n\n```\{raw\} html\n<div class='formulas", text)


def test_an_entry_of_a_cache_has_the_name_of_the_code(pair_page):
    _, text = pair_page
    names = re.findall(r"<pre class='numbers[^>]*>(?:<[^>]+>)?([^\n=:]*)", text)
    assert names
    assert [name for name in names if re.search(r"\]\[|returned|cache\[", name)] == []


def test_a_helper_opens_below_the_line_that_calls_it():
    text = line_by_line.page("average")
    line, helper = text.split("<details class='helper'>")[:2]
    assert line.rpartition("<pre class='code'>")[2].count("weights, softmax_cache = softmax(")
    assert helper.startswith("<summary><code>softmax</code>")
    assert "y<sub>i</sub> = exp(x<sub>i</sub>)" in helper
    assert "y = xp.exp(x - top)" in helper


def test_a_helper_of_a_helper_has_its_own_lines():
    call = call_of("scaled_dot_product_attention")
    names = set()

    def visit(outer):
        for helper in (one for calls in outer.calls_by_line.values() for one in calls):
            names.add((outer.code.co_name, helper.code.co_name))
            visit(helper)

    visit(call)
    assert ("scaled_dot_product_attention", "average") in names
    assert ("average", "softmax") in names
    assert ("softmax", "sum_along") in names


def test_the_first_open_line_of_softmax_is_mathematics():
    first = next(group for group in groups(call_of("softmax")) if group.kind == "")
    assert first.rows[0].code.startswith("top = x.max(")


def test_a_line_that_reads_more_than_it_checks_stays_open():
    open_code = [
        row.code for group in groups(call_of("linear")) if not group.kind for row in group.rows
    ]
    assert any(code.startswith("rows = ") for code in open_code)
    assert not any("check_linear" in code for code in open_code)


def test_a_cache_is_printed_once():
    inputs, options, dy = line_by_line.example("linear")
    call = watch(F.linear, *inputs, **options)
    caches = Caches()
    caches.learn(call)
    forward = text_of(lines(call, caches))
    assert "cache: rows, W, has_bias, x_shape" in forward
    backward = text_of(lines(watch(F.linear_backward, dy, call.result[1]), caches))
    assert backward.count("has_bias = True") == 1


def test_a_running_example_is_that_of_the_chapter():
    names = running_examples.names_of_example("linear")
    inputs, _, dy = line_by_line.example("linear")
    np.testing.assert_array_equal(inputs[0] @ inputs[1] + inputs[2], names["y"])
    np.testing.assert_array_equal(dy, [[1.0, -2.0], [3.0, 0.5]])
    text = line_by_line.page("attention_scores")
    dS = running_examples.names_of_example("attention")["dS"]
    dscores = np.array2string(dS, precision=4, suppress_small=True)
    assert f"dscores (2, 2)\n{dscores}" in text
    assert "scale = 0.5774" in text
    assert len(running_examples.RUNNING) > 20


def test_a_comment_above_a_line_is_another_paragraph():
    rows = [*statements(F.linear.__code__)]
    comments = next(row.comments for row in rows if row.code.startswith("rows = "))
    assert comments.splitlines()[0].startswith("One matrix product")
    assert comments.splitlines()[1:] == ["[..., d_in] -> [rows, d_in]"]


def test_a_difference_from_pytorch_is_noticed():
    pytest.importorskip("torch", reason=NEEDS["torch"])
    inputs, _, dy = line_by_line.example("softmax")
    named = {"x": inputs[0]}
    code = in_pytorch.block("softmax", named, {}, dy)
    y, cache = F.softmax(*inputs)
    gradient = F.softmax_backward(dy, cache)
    in_pytorch.check(code, named, y, [gradient])
    with pytest.raises(AssertionError, match="gradient of x"):
        in_pytorch.check(code, named, y, [gradient + 1e-6])


def test_chapters_lead_to_the_pairs_that_they_quote():
    pairs_by_chapter = line_by_line.chapters()
    assert pairs_by_chapter["softmax"] == ["softmax"]
    assert len(pairs_by_chapter) > 12


QUOTED = """\
from typing import Any
from npformer.core import checks

def double(x):
    checks.floating(x=x)
    return 2.0 * x
"""


def test_checks_of_a_quoted_function_are_folded():
    folds = find_folds(QUOTED)
    assert [(fold.first, fold.last) for fold in folds] == [(1, 2), (5, 5)]
    assert folds[1].words == "the dtype of x"


def test_what_is_folded_is_still_copied():
    html = hang(QUOTED.rstrip("\n"), find_folds(QUOTED))
    assert text_of(re.sub(r"<summary.*?</summary>", "", html)) == QUOTED


def test_code_that_cannot_be_parsed_is_not_folded():
    assert find_folds("def (") == []
