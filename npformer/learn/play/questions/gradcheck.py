"""What gradcheck says about a bug of the museum: of a small layer, so no run is needed."""

from __future__ import annotations

from typing import Any

from npformer.core import checks
from npformer.learn.museum import BUGS
from npformer.learn.museum.bug import source_of
from npformer.learn.play.broken import HAVE_A_PLACE, described


def gradcheck(bug: Any) -> dict[str, Any]:
    """Return the report on the layer with a bug, and what else would find it.

    "tensors" are the gradients that were checked, with their relative errors. Raises ValueError for
    a bug that no run of the page can have.
    """
    checks.choice("bug", bug, HAVE_A_PLACE)
    wrong, right = BUGS[bug], BUGS[bug].right()
    right_lines = source_of(right if isinstance(right, tuple) else [type(right)])
    answer = {
        "bug": described(bug),
        "caught_by": [*wrong.caught_by],
        "right": right_lines,
        "report": "",
        "tensors": [],
    }
    report = wrong.report()
    if report is None:
        return answer
    tensors = [
        {
            "name": tensor.name,
            "error": tensor.error,
            "ok": tensor.passes(report.tolerance, report.complex_tolerance),
        }
        for tensor in report.tensors
    ]
    return answer | {"report": str(report), "tensors": tensors}
