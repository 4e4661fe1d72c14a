"""A language model writes one token: its candidates, and what the cache saves."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.learn.play.state import Now
from npformer.training.generation.choosing import Choice, generators_of
from npformer.training.generation.writing import Window

CANDIDATES = 20


def write(
    now: Now,
    prompt: str,
    temperature: float = 1.0,
    top_p: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the token after a text, the likeliest tokens, and the seconds that both ways take."""
    pipeline: Any = getattr(now.work, "pipeline", None)
    if now.work.kind != "text":
        raise ValueError(f"the task {now.settings.task!r} writes nothing; expected the task 'text'")
    choice = Choice(temperature, top_p=top_p)
    checks.whole("seed", seed, at_least=0)
    checks.text("prompt", prompt)
    ids = pipeline.ids("prompt", prompt)
    if not len(ids):
        raise ValueError("prompt is empty; expected at least one character")
    model = now.plain
    seconds_plain, _ = _timed(lambda: Window(model, [ids], cache=False).logits)
    seconds_cached, logits = _timed(lambda: _behind(model, ids))
    tokenizer = pipeline.tokenizer_
    token = int(choice.draw(logits, generators_of(seed, 1))[0])
    p = Choice(temperature or 1.0).probabilities(logits)[0]
    kept = choice.probabilities(logits)[0] > 0.0
    best = np.argsort(-p, kind="stable")[:CANDIDATES].tolist()
    return {
        "token": tokenizer.decode([token]),
        "text": tokenizer.decode([token]),
        "candidates": [
            {"token": tokenizer.decode([k]), "p": float(p[k]), "kept": bool(kept[k])} for k in best
        ],
        "seconds_cached": seconds_cached,
        "seconds_plain": seconds_plain,
    }


def _behind(model: Any, ids: np.ndarray) -> Any:
    """Return the call for the last token, with those before it in the cache."""
    if len(ids) == 1:
        return Window(model, [ids], cache=True).logits
    cached = Window(model, [ids[:-1]], cache=True)
    cached.logits()
    cached.add(ids[-1:])
    return cached.logits


def _timed(prepared: Any) -> tuple[float, Any]:
    """Return the seconds of a call, after a first one that warms the caches, and its result."""
    prepared()()
    call = prepared()
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found
