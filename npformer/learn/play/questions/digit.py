"""A picture that was drawn: what the model reads, and which rows take from which."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import to_numpy
from npformer.learn.play.questions.tensors import mixing
from npformer.learn.play.state import Now
from npformer.training.inspection.explain import explanations
from npformer.training.inspection.trace import trace

SHAPE = 8, 8


def digit(now: Now, image: Any) -> dict[str, Any]:
    """Return the probabilities of all classes, and the matrices of all mixers."""
    x = picture(now, image)
    model = now.plain
    calls = trace(model, x)
    p = to_numpy(model.loss.probabilities(calls[0].output))[0]
    return {"probabilities": p.tolist(), "mixing": mixing(explanations(calls))}


def picture(now: Now, image: Any) -> np.ndarray:
    """Return ink from 0 to 1 as the model takes it, from -1 to 1, (1, 8, 8)."""
    if now.work.kind != "image":
        raise ValueError(f"the task {now.settings.task!r} has no pictures; expected digits")
    try:
        x = np.array(image, "float32")
    except (TypeError, ValueError):
        x = np.zeros(0)
    if x.shape != SHAPE or not (np.isfinite(x).all() and (x >= 0.0).all() and (x <= 1.0).all()):
        raise ValueError(
            f"image has shape {x.shape}; expected {SHAPE[0]} rows of {SHAPE[1]} numbers from 0, "
            "no ink, to 1"
        )
    return np.asarray(2.0 * x - 1.0, "float32")[None]
