"""What a model makes of a picture that was drawn, or of a sentence that was written."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.learn.play.model_answers import answer_probabilities, mixing
from npformer.learn.play.state import Now
from npformer.models import EncoderBlock
from npformer.training.inspection.trace import trace

SHAPE = 8, 8


def digit(now: Now, image: Any) -> dict[str, Any]:
    """Return the probabilities of all classes, and the matrices of all mixers."""
    return _read(now, _picture(now, image))


def sentence(now: Now, text: str) -> dict[str, Any]:
    """Return tokens, the probabilities of all classes, and the matrices of all mixers."""
    checks.text("text", text)
    x, mask, tokens = now.work.arrays(text)
    answer = _read(now, x, mask)
    classes = [now.work.names.answer(k) for k in range(len(answer["probabilities"]))]
    return {"tokens": tokens, "classes": classes, **answer}


def _read(now: Now, x: np.ndarray, mask: Any = None) -> dict[str, Any]:
    model = now.plain
    calls = trace(model, x, mask)
    return {"probabilities": answer_probabilities(model, calls).tolist(), "mixing": mixing(calls)}


def edit(
    now: Now, position: int, to: Any, text: str | None = None, image: Any = None
) -> dict[str, Any]:
    """Return how far each token's output moves if one token is changed: (layers, tokens)."""
    if (text is None) == (image is None):
        raise ValueError("both or neither of text and image are given; expected one of the two")
    if image is not None:
        return _edit_picture(now, image, position, to)
    return _edit_text(now, text, position, to)


def _edit_picture(now: Now, image: Any, position: int, to: Any) -> dict[str, Any]:
    """Return how far the outputs move if one row of a picture is changed."""
    before = _picture(now, image)
    tokens = [f"row {k + 1}" for k in range(before.shape[1])]
    changed = checks.whole("position", position, at_least=0, at_most=len(tokens) - 1)
    after = _picture(now, [to if k == changed else row for k, row in enumerate(image)])
    return _differences(now, before, after, None, tokens)


def _edit_text(now: Now, text: Any, position: int, to: Any) -> dict[str, Any]:
    """Return how far the outputs move if one token of a text is changed."""
    checks.text("text", text)
    checks.text("to", to)
    before, mask, tokens = now.work.arrays(text)
    changed = checks.whole("position", position, at_least=0, at_most=len(tokens) - 1)
    new, _, new_tokens = now.work.arrays(to)
    if len(new_tokens) != 1:
        raise ValueError(f"to is {to!r}, which is {len(new_tokens)} tokens; expected one token")
    after = before.copy()
    after[0, changed] = new[0, 0]
    return _differences(now, before, after, mask, tokens)


def _differences(
    now: Now, before: np.ndarray, after: np.ndarray, mask: np.ndarray | None, tokens: list[str]
) -> dict[str, Any]:
    """Return the distances between the outputs of all blocks for two inputs, and the tokens."""
    model = now.plain
    outputs_before = _block_outputs(model, before, mask)
    outputs_after = _block_outputs(model, after, mask)
    moved = [
        np.abs(b - a)[: len(tokens)].max(axis=-1).tolist()
        for a, b in zip(outputs_before, outputs_after, strict=True)
    ]
    return {"moved": moved, "tokens": tokens}


def _block_outputs(model: Any, x: np.ndarray, mask: np.ndarray | None) -> list[np.ndarray]:
    """Return what each block makes of one sample, (length, d_model), in float64."""
    return [
        to_numpy(call.outputs()[0])[0].astype("float64")
        for call in trace(model, x, mask)
        if isinstance(call.layer, EncoderBlock)
    ]


def _picture(now: Now, image: Any) -> np.ndarray:
    """Return ink from 0 to 1 as the model takes it, from -1 to 1, (1, 8, 8)."""
    now.work.check_kind("image", "has no pictures; expected digits")
    try:
        x = np.array(image)
    except (TypeError, ValueError):
        x = np.zeros(0)
    if x.shape != SHAPE or x.dtype.kind not in "iuf" or not ((x >= 0.0) & (x <= 1.0)).all():
        raise ValueError(
            f"image has shape {x.shape}; expected {SHAPE[0]} rows of {SHAPE[1]} numbers from 0, "
            "no ink, to 1"
        )
    return np.asarray(2.0 * x - 1.0, "float32")[None]
