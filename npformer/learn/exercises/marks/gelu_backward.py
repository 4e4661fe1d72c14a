"""gelu_backward: the backward pass of GELU."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

EXERCISE = Exercise(
    name="gelu_backward",
    title="dx of y = x Phi(x)",
    page="chapters/activations.md",
    hints=(
        "y is a product of two functions of x: x itself, and Phi(x).",
        "The product rule has two terms. One needs Phi(x), which is cached. The other needs the "
        "derivative of Phi; do not forget the inner derivative of x / sqrt 2.",
        "The derivative of Phi is the normal density, exp(-x^2 / 2) / sqrt(2 pi). The slope is Phi "
        "plus x times this density, and dx is dy times the slope.",
    ),
    why="""\
The product rule: y' = Phi(x) + x Phi'(x). With u = x / sqrt 2 the chain rule gives
    Phi'(x) = 1/2 erf'(u) du/dx = 1/2 (2 / sqrt(pi)) exp(-u^2) (1 / sqrt 2)
            = exp(-x^2 / 2) / sqrt(2 pi),
the normal density. Entries do not mix: dx = dy y'.""",
    mark=Pair(
        "gelu",
        "gelu_backward",
        ("dx",),
        (
            Trial("a matrix", (2.0 * draw(4, 5),)),
            Trial("three axes", (draw(2, 3, 4),)),
            Trial("larger arrays", (draw(3, 12, 20),)),
        ),
    ),
    wrong=(
        Wrong(
            "one term of the product rule is missing: Phi depends on x too",
            "phi + x * density",
            "phi",
        ),
        Wrong(
            "one term of the product rule is missing: the one in which x is differentiated",
            "phi + x * density",
            "x * density",
        ),
        Wrong(
            "in one term of the product rule, the other factor is missing", "x * density", "density"
        ),
        Wrong(
            "the density does not integrate to 1: its constant factor is missing",
            " / math.sqrt(2.0 * math.pi)",
            "",
        ),
        Wrong(
            "the inner derivative is missing: Phi is erf of x / sqrt 2, not of x",
            "math.sqrt(2.0 * math.pi)",
            "math.sqrt(math.pi)",
        ),
        Wrong("the exponent of the density is doubled", "-0.5 * x * x", "-x * x"),
    ),
)
