"""One token is changed: how far does the output of each token move, in each layer?"""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.learn.play.questions.digit import picture
from npformer.learn.play.state import Now
from npformer.models import EncoderBlock
from npformer.training.inspection.trace import Trace, trace


def edit(
    now: Now, position: int, to: Any, text: str | None = None, image: Any = None
) -> dict[str, Any]:
    """Return the largest change of each token's output, for each layer: (layers, tokens)."""
    if (text is None) == (image is None):
        raise ValueError("both or neither of text and image are given; expected one of the two")
    if image is not None:
        before = picture(now, image)
        mask: Any = None
        i = checks.whole("position", position, at_least=0, at_most=before.shape[1] - 1)
        changed = [[*row] for row in image]
        changed[i] = to
        after, tokens = picture(now, changed), [f"row {k + 1}" for k in range(before.shape[1])]
    else:
        checks.text("text", text)
        checks.text("to", to)
        before, mask, tokens = now.work.arrays(str(text))
        i = checks.whole("position", position, at_least=0, at_most=len(tokens) - 1)
        after, _, others = now.work.arrays(to)
        if len(others) != 1:
            raise ValueError(f"to is {to!r}, which is {len(others)} tokens; expected one token")
        new = before.copy()
        new[0, i] = after[0, 0]
        after = new
    model = now.plain
    outputs = [_of_blocks(trace(model, x, mask)) for x in (before, after)]
    moved = [np.abs(b - a).max(axis=-1)[0] for a, b in zip(*outputs, strict=True)]
    return {"moved": [[float(x) for x in row[: len(tokens)]] for row in moved], "tokens": tokens}


def _of_blocks(calls: Trace) -> list[np.ndarray]:
    """Return the outputs of the blocks."""
    return [
        to_numpy(call.outputs()[0]).astype("float64")
        for call in calls
        if isinstance(call.layer, EncoderBlock)
    ]
