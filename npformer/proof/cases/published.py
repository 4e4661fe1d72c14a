"""Cases of the published snippets that npformer started from."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from npformer.core import Context, Gradients
from npformer.models.published_snippets import (
    AskersSynthesizer,
    BlogFNetBlock,
    KerasFeedForward,
    blog_fnet,
)
from npformer.proof.cases.case import SEEDED, Case, draw, keep, layer
from npformer.proof.gradcheck import gradcheck


def published() -> Iterator[Case]:
    """Yield the cases."""
    x, v = draw(2, 3, 4), draw(2, 3, 2)
    for ffn in ("linear", "conv1d"):
        keras = KerasFeedForward(4, 6, 0.3, ffn=ffn, **SEEDED)
        yield layer(f"{ffn}, dropout", keras, x, training=True)
    block, three = BlogFNetBlock(4, 6, 0.3, **SEEDED), blog_fnet(4, 6, 0.0, 3, **SEEDED)
    name = "BlogFNetBlock"
    yield layer("one block, dropout", block, x, training=True)
    yield layer("applied three times", three, x, title=name, covers=(name,))
    yield _synthesizer("without a batch", x[0], v[0])
    yield _synthesizer("a batch", x, v)
    yield _synthesizer("a batch, padding mask", x, v, keep([3, 1], 3))


def _synthesizer(label: str, x: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> Case:
    """Return a case for a layer of two inputs, as a function of both and of all parameters."""
    made = AskersSynthesizer(3, 4, **SEEDED)
    flat: Any = made.flatten().parameters().flat

    def forward(x: np.ndarray, v: np.ndarray, parameters: np.ndarray) -> tuple[Any, Any]:
        flat[...] = parameters
        y, cache = made.forward((x, v), Context(mask=mask))
        return y, (parameters.copy(), cache)

    def backward(dy: Any, cache: Any) -> tuple[Any, ...]:
        flat[...], forward_cache = cache  # the parameters that forward had
        gradients = Gradients(made)
        dx, dv = made.backward(dy, forward_cache, gradients)
        return dx, dv, gradients.flat

    run = partial(gradcheck, (forward, backward), x, v, flat + 0.3 * draw(*flat.shape, seed=1))
    return Case(f"AskersSynthesizer: {label}", "layers", ("AskersSynthesizer",), run)
