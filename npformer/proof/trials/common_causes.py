"""A wrong factor at several shapes: its cause is one that holds at each of them."""

import re
from dataclasses import replace
from typing import Any

from npformer.proof.factors import PLAIN_TWO
from npformer.proof.report import GradcheckReport, TensorReport

FACTOR = re.compile(r"(backward is [^;]+ the derivative); (.+)")
"""What a report says of a factor, and the causes that may explain it."""


def keep_common_causes(reports: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return reports of one layer at several shapes, without causes that hold at one shape alone.

    Half the derivative at a batch of two and at one of four is neither 1 / the batch size nor 1 /
    the root of it. A factor that differs from shape to shape has a cause at each.
    """
    compared = [report for _, report in reports if isinstance(report, GradcheckReport)]
    explanations = [_explanations(report) for report in compared]
    common: dict[str, str] = {}
    for name, (factor, causes) in explanations[0].items() if len(compared) > 1 else ():
        others = [explanation.get(name, ("", set())) for explanation in explanations[1:]]
        if all(other_factor == factor for other_factor, _ in others):
            common_causes = causes.intersection(*(other_causes for _, other_causes in others))
            reason = " or ".join(sorted(common_causes)) or "not a size of x: it is so at each shape"
            common[name] = f"{factor}; {reason}"
    return [(what, _explain_by(report, common)) for what, report in reports]


def _explanations(report: GradcheckReport) -> dict[str, tuple[str, set[str]]]:
    """Return the factor of each tensor that has one, and its causes."""
    explanations = {}
    for tensor in report.tensors:
        match = FACTOR.match(tensor.pattern)
        if match is not None:
            causes = re.split(" or | and ", match[2].removesuffix(PLAIN_TWO))
            explanations[tensor.name] = match[1], set(causes)
    return explanations


def _explain_by(report: Any, patterns: dict[str, str]) -> Any:
    """Return a report in which the factors of some tensors are explained in these words."""
    if not patterns or not isinstance(report, GradcheckReport):
        return report
    return replace(report, tensors=[_explain_tensor(tensor, patterns) for tensor in report.tensors])


def _explain_tensor(tensor: TensorReport, patterns: dict[str, str]) -> TensorReport:
    return replace(tensor, pattern=patterns.get(tensor.name, tensor.pattern))
