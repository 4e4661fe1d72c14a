"""Formulas of the reference: indices, powers, roots and Greek letters, and nothing else."""

import pytest

pytest.importorskip("sphinx", reason="the site's extra: docs")

from docs.site.typeset import nodes, typeset


def shown(text, **options):
    """Return what is set, with an index as _{} and a power as ^{}."""
    marks = {nodes.subscript: "_{%s}", nodes.superscript: "^{%s}"}
    return "".join(marks.get(type(part), "%s") % part.astext() for part in typeset(text, **options))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y_i = exp(x_i) / sum_j exp(x_j)", "y_{i} = exp(x_{i}) / \u2211_{j} exp(x_{j})"),
        ("Q K^T / sqrt(d_head)", "Q K^{T} / \u221a(d_head)"),
        ("p theta^(-2 i / d)", "p \u03b8^{-2 i / d}"),
        ("d_model, n_heads, d_ff and `x_i.shape`", "d_model, n_heads, d_ff and `x_i.shape`"),
        ("the sum of all W_ij.", "the sum of all W_{ij}."),
    ],
)
def test_a_formula(text, expected):
    assert shown(text) == expected


def test_without_an_equation_names_stay():
    assert shown("gamma and dy_j", signs=False) == "gamma and dy_{j}"
