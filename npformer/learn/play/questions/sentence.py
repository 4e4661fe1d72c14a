"""A sentence that was written: what the model makes of it, and which words take from which."""

from __future__ import annotations

from typing import Any

from npformer.core import checks, to_numpy
from npformer.learn.play.questions.tensors import mixing
from npformer.learn.play.state import Now
from npformer.training.inspection.explain import explanations
from npformer.training.inspection.trace import trace


def sentence(now: Now, text: str) -> dict[str, Any]:
    """Return tokens, the probabilities of all classes, and the matrices of all mixers."""
    checks.text("text", text)
    x, mask, tokens = now.work.arrays(text)
    model = now.plain
    calls = trace(model, x, mask)
    p = to_numpy(model.loss.probabilities(calls[0].output))[0]
    while p.ndim > 1:  # an answer for each token
        p = p[-1]
    return {
        "tokens": tokens,
        "probabilities": p.tolist(),
        "classes": [now.work.answer(k) for k in range(len(p))],
        "mixing": mixing(explanations(calls)),
    }
