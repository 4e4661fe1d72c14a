"""Line by line: a page for each pair, with the numbers that its lines really make."""

import re

import numpy as np
import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site import in_pytorch, line_by_line, running_examples
from npformer import functional as F
from tests.pairs import FUNCTIONS, NAMES


def test_the_lines_of_softmax_make_the_numbers_of_the_chapter():
    inputs, options, dy = line_by_line.example("softmax")
    (y, cache), values = line_by_line.traced(F.softmax, *inputs, **options)
    np.testing.assert_allclose(y, [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    lines = {c.split(" = ")[0]: first for first, _, _, c in line_by_line.statements(F.softmax)}
    np.testing.assert_allclose(values[lines["total"]]["total"], [[2.0], [2.0]])
    text = line_by_line.page("softmax")
    assert "changes nothing in y / total, and nothing can overflow" in text
    assert "[[0.25 0.5  0.25]" in text
    assert "torch.softmax(" in text
    dx = F.softmax_backward(dy, cache)
    assert np.array2string(dx, precision=4, suppress_small=True) in text


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_every_line_of_a_pair(name):
    pytest.importorskip("torch", reason=NEEDS["torch"])
    text = line_by_line.page(name)
    for function in (FUNCTIONS[name], FUNCTIONS[f"{name}_backward"]):
        rows = [*line_by_line.statements(function)]
        assert all(line_by_line.escape(code) in text for *_, code in rows)
        explanations = [comments or line_by_line.said_of(code) for *_, comments, code in rows]
        assert sum(map(bool, explanations)) > 0.55 * len(explanations)
        for explanation in explanations:
            for line in explanation.splitlines():
                assert line_by_line.escape(line) in text
    assert text.count("class='numbers'") >= 2
    assert re.search(r"## The same in PyTorch.*```python\nimport.+```", text, re.DOTALL)


def test_a_running_example_is_that_of_the_chapter():
    names = running_examples.names_of_example("linear")
    inputs, _, dy = line_by_line.example("linear")
    np.testing.assert_array_equal(inputs[0] @ inputs[1] + inputs[2], names["y"])
    np.testing.assert_array_equal(dy, [[1.0, -2.0], [3.0, 0.5]])
    text = line_by_line.page("attention_scores")
    dS = running_examples.names_of_example("attention")["dS"]
    dscores = np.array2string(dS, precision=4, suppress_small=True)
    assert f"dscores (2, 2)\n{dscores}" in text
    assert "scale\n0.5774" in text
    assert len(running_examples.RUNNING) > 20


def test_a_comment_above_a_line_is_another_paragraph():
    lines = {code: comments for *_, comments, code in line_by_line.statements(F.linear)}
    rows = next(comments for code, comments in lines.items() if code.startswith("rows = "))
    assert rows.splitlines()[0].startswith("One matrix product")
    assert rows.splitlines()[1:] == ["[..., d_in] -> [rows, d_in]"]


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
