"""Formulas of the reference: indices, powers, roots and Greek letters, and nothing else."""

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site.typeset import nodes, typeset


def shown(text, **options):
    """Return what is set, with an index as _{} and a power as ^{}."""
    return "".join(map(marked, typeset(text, **options)))


def marked(part):
    """Return the text of a part, and of those within it."""
    marks = {nodes.subscript: "_{%s}", nodes.superscript: "^{%s}"}
    text = "".join(map(marked, part.children)) if part.children else part.astext()
    return marks.get(type(part), "%s") % text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y_i = exp(x_i) / sum_j exp(x_j)", "y_{i} = exp(x_{i}) / \u2211_{j} exp(x_{j})"),
        ("Q K^T / sqrt(d_head)", "Q K^{T} / \u221a(d_head)"),
        ("p theta^(-2 i / d)", "p \u03b8^{\u22122 i / d}"),
        ("y_t = sum_{j=0}^t k_j x_{t-j}", "y_{t} = \u2211_{j=0}^{t} k_{j} x_{t\u2212j}"),
        ("d_model^-0.5, x^2.", "d_model^{\u22120.5}, x^{2}."),
        ("sum_{t>=s} dy_t", "\u2211_{t\u2265s} dy_{t}"),
        ("e^{Delta A_n} h_{t-1}", "e^{\u0394 A_{n}} h_{t\u22121}"),
        ("W_k^T, 2 pi rope_theta^(1 - 2 / d_head)",
         "W_{k}^{T}, 2 \u03c0 rope_theta^{1 \u2212 2 / d_head}"),
        ("dQ_ic and C_tu, not d_in, d_of or W_up", "dQ_{ic} and C_{tu}, not d_in, d_of or W_up"),
        ("m_hat / (1 - beta1^t)", "m\u0302 / (1 - \u03b2_{1}^{t})"),
        ("sum_i s_i loss_i / sum_i s_i", "\u2211_{i} s_{i} loss_{i} / \u2211_{i} s_{i}"),
        ("d_model, n_heads, d_ff and `x_i.shape`", "d_model, n_heads, d_ff and `x_i.shape`"),
        ("the sum of all W_ij.", "the sum of all W_{ij}."),
    ],
)  # fmt: skip
def test_a_formula(text, expected):
    assert shown(text) == expected


def test_without_an_equation_names_stay():
    assert shown("gamma and dy_j", signs=False) == "gamma and dy_{j}"
