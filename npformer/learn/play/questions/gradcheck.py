"""What gradcheck says about the run's bug, or about the first block of a model without one."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.learn.museum import BUGS
from npformer.learn.museum.bug import source_of
from npformer.learn.museum.probes import report_of
from npformer.learn.play.broken import described
from npformer.learn.play.state import Now
from npformer.models import EncoderBlock
from npformer.proof.problem import parameters_as
from npformer.proof.report import GradcheckReport

SMALL = 2, 5
"""Samples and tokens."""


def gradcheck(now: Now) -> dict[str, Any]:
    """Return the report on the layer that the bug is in, and what else would find it."""
    name = now.work.settings.bug
    if name is None:
        report = _report_on_block(now)
        beside: dict[str, Any] = {"bug": {}, "caught_by": [], "right": ""}
    else:
        bug, right = BUGS[name], BUGS[name].right()
        report = bug.report()
        lines = source_of(right if isinstance(right, tuple) else [type(right)])
        beside = {"bug": described(name), "caught_by": [*bug.caught_by], "right": lines}
    if report is None:
        return {"report": "", "tensors": [], **beside}
    tensors = [
        {
            "name": tensor.name,
            "error": tensor.error,
            "ok": tensor.passes(report.tolerance, report.complex_tolerance),
        }
        for tensor in report.tensors
    ]
    return {"report": str(report), "tensors": tensors, **beside}


def _report_on_block(now: Now) -> GradcheckReport | None:
    """Return the report on the first block in float64, without dropout."""
    layers: Any = now.plain.layers()
    block: Any = next((layer for _, layer in layers if isinstance(layer, EncoderBlock)), None)
    if block is None:
        return None
    x = np.random.default_rng(0).normal(size=(*SMALL, now.work.settings.d_model))
    with parameters_as(block, lambda flat: flat.astype("float64")):
        return report_of(block, x, max_entries=24)
