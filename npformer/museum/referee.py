"""A wrong referee."""

# ruff: noqa: D102 -- documented in GradcheckReport

from __future__ import annotations

from npformer.proof.gradcheck import GradcheckReport


class RefereeThatSkipsNan(GradcheckReport):
    """The referee takes Python's max of errors that may be NaN.

    Notes
    -----
    Who: Whoever forgets that no comparison with NaN is true. npformer's own gradcheck had it.

    Why: max(1e-9, nan) is 1e-9, because nan > 1e-9 is False: NaN in any tensor but the first
    passed.

    Cost: A backward pass that gives NaN is called proven.

    Caught: By a backward pass that gives NaN: `a_referee_passes_no_nan`.
    """

    @property
    def error(self) -> float:
        return max((tensor.error for tensor in self.tensors), default=0.0)

    @property
    def passed(self) -> bool:
        return not self.broken_rules and self.error <= self.tolerance
