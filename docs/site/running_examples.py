"""The running example of a chapter, for the pages of the pairs that it has numbers for.

The numbers are read from the chapter, by running its blocks up to the end of the example.
"""

import contextlib
import io
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from docs.site.copied import copied
from docs.site.pages import BLOCK

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
RUNNING: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    **dict.fromkeys(("relu", "gelu", "silu", "tanh", "sigmoid"), ("activations", "x", "dy", {})),
    **dict.fromkeys(("fourier_mixing", "hartley_mixing"), ("fourier", "X", "dY", {})),
    **dict.fromkeys(
        ("causal_convolution", "short_convolution"), ("causal_fourier", "x k", "dy", {})
    ),
    **dict.fromkeys(
        ("mean_pooling", "max_pooling"),
        ("pooling", "x", "dy", {"mask": np.array([[True, False]])}),
    ),
    "softmax": ("softmax", "x", "dy", {}),
    "layer_norm": ("layer_norm", "x gamma beta", "dy", {}),
    "rms_norm": ("rms_norm", "x gamma", "dy", {}),
    "linear": ("linear", "x W b", "dy", {}),
    "rotary": ("rotary", "x", "dy", {"positions": np.arange(3)}),
    "gated": ("gates", "x W_gate W_up W_down", "dy", {"activation": "sigmoid"}),
    "embedding": ("embedding", "ids table", "dy", {}),
    "dropout": ("dropout", "x", "dy", {"rate": 0.5, "generator": 1}),
    "softmax_cross_entropy": ("cross_entropy", "logits labels", "1.0", {}),
    "scaled_dot_product_attention": ("attention", "query key value", "dY", {}),
    "blockwise_attention": ("attention", "query key value", "dY", {"block": 1}),
    "attention_scores": ("attention", "query key", "dS", {}),
    "average": ("attention", "S value", "dY", {}),
    "random_synthesizer": ("synthesizers", "value R", "dY", {}),
}
"""Pairs with the running example of a chapter: the chapter, its names for the inputs and for dy,
and options, of which a generator is a seed."""
EXAMPLE = re.compile(r"^## A \d x \d example\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)


@cache
def names_of_example(chapter: str) -> dict[str, Any]:
    """Return what the names of a chapter's running example stand for."""
    text = (CHAPTERS / f"{chapter}.md").read_text("utf-8")
    part = EXAMPLE.search(text)
    assert part
    above, own = (
        [found["code"] for found in BLOCK.finditer(each) if not found["source"]]
        for each in (text[: part.start()], part[1])
    )
    names: dict[str, Any] = {"__name__": "__main__"}
    with np.printoptions(), contextlib.redirect_stdout(io.StringIO()):
        exec(copied([*above, "\n".join(own)])[-1], names)
    return names


def running_example(pair: str) -> tuple[list[Any], dict[str, Any], Any]:
    """Return inputs, options and dy for a pair that `RUNNING` has."""
    chapter, words, dy, options = RUNNING[pair]
    known = names_of_example(chapter) | {"1.0": np.float64(1.0)}
    if "generator" in options:
        options = options | {"generator": np.random.default_rng(options["generator"])}
    return [known[each] for each in words.split()], options, known[dy]
