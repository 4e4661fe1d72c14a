"""A wrong report of gradcheck."""

# ruff: noqa: D102 -- documented in GradcheckReport

from npformer.learn.museum.table import plain
from npformer.proof.report import GradcheckReport


@plain(18, "a_referee_passes_no_nan")
class RefereeThatSkipsNan(GradcheckReport):
    """gradcheck takes Python's max of errors that may be NaN.

    Who: Anyone who forgets that every comparison with NaN is false. npformer's own gradcheck had
    this bug.
    Why: max(1e-9, nan) is 1e-9, because nan > 1e-9 is False. So NaN passes in every tensor but the
    first.
    Cost: A backward pass that returns NaN passes.
    Caught: Checking a backward pass that returns NaN.
    """

    @property
    def error(self) -> float:
        return max((tensor.error for tensor in self.tensors), default=0.0)

    @property
    def passed(self) -> bool:
        return not self.broken_rules and self.error <= self.tolerance
