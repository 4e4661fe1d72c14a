"""Some of the samples that can be looked at."""

from __future__ import annotations

from typing import Any

from npformer.core import checks
from npformer.learn.play.questions.tensors import tensor
from npformer.learn.play.state import Now

MOST = 100


def samples(now: Now, start: int = 0, n: int = 12) -> dict[str, Any]:
    """Return n samples from `start` on, and from 0 again after the last."""
    checks.whole("start", start, at_least=0)
    checks.whole("n", n, at_least=1, at_most=MOST)
    work = now.work
    total = len(work)
    rows = [i % total for i in range(start, start + min(n, total))]
    found = [
        {
            "index": i,
            "label": work.label(i),
            "words": work.words(i),
            "image": tensor("picture", work.sample(slice(i, i + 1))[0]) if _is_image(now) else None,
        }
        for i in rows
    ]
    return {"total": total, "samples": found}


def _is_image(now: Now) -> bool:
    return now.work.kind == "image"


def one_of(now: Now, sample: Any) -> slice:
    """Return the rows of one sample, after checking its number."""
    i = checks.whole("sample", sample, at_least=0, at_most=len(now.work) - 1)
    return slice(i, i + 1)
