"""From one sequence to another: what the model writes, and its three attentions."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.core.inputs import Inputs
from npformer.layers import CrossAttention
from npformer.learn.play.questions.tensors import tensor
from npformer.learn.play.state import Now
from npformer.mixers import Mixer
from npformer.training.inspection.explain import matrices_of
from npformer.training.inspection.trace import trace


def translate(now: Now, source: str) -> dict[str, Any]:
    """Return the tokens of both sides, and the matrices of encoder, decoder and what joins them.

    ``read`` holds the tokens that the decoder read, one for each row of its matrices: the first
    stands for the beginning.
    """
    if now.work.kind != "pair":
        raise ValueError(f"the task {now.settings.task!r} has no pairs; expected one of pairs")
    checks.text("source", source)
    pipeline: Any = getattr(now.work, "pipeline", None)
    _, x = pipeline._read([source])
    if x.shape[1] < 2:
        raise ValueError("source is empty; expected at least one letter")
    model = now.plain
    (written,) = model.generate(x)
    target = np.array([[model.begin_id, *written]])
    given: Inputs = (x, target[:, : model.decoder_config.max_len])
    of_source, of_target = pipeline.tokenizers_
    found: dict[str, list[dict[str, Any]]] = {"encoder": [], "decoder": [], "cross": []}
    for call in trace(model, given):
        if isinstance(call.layer, Mixer | CrossAttention):
            part = "cross" if isinstance(call.layer, CrossAttention) else call.name.split(".")[0]
            matrices = np.asarray(to_numpy(matrices_of(call)))
            shown = {"layer": call.name, "kind": type(call.layer).__name__}
            found[part].append(shown | {"heads": tensor(call.name, matrices)})
    return {
        "source": [*of_source.tokens(x[0, :-1].tolist()), "end"],
        "target": of_target.tokens(written),
        "read": ["begin", *of_target.tokens(written)],
        "attentions": found,
    }
