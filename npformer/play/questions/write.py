"""A language model writes one token: its candidates, and what the cache saves."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.generation.choosing import Choice, generators_of
from npformer.generation.writing import Window
from npformer.play.state import Now

CANDIDATES = 20


def write(
    now: Now,
    prompt: str,
    temperature: float = 1.0,
    top_p: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the token behind a text, the likeliest tokens, and the seconds of both ways."""
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
    before, last = (ids[:-1], ids[-1:]) if len(ids) > 1 else (ids, None)
    cached = Window(model, [before], cache=True)
    logits = cached.logits()  # of the tokens before, which the cache keeps
    if last is not None:
        cached.add(last)
    seconds_cached, logits = _timed(cached.logits) if last is not None else (0.0, logits)
    seconds_plain, _ = _timed(Window(model, [ids], cache=False).logits)
    tokenizer = pipeline.of_tokenizer
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


def _timed(call: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found
