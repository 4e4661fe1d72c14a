"""What a model writes: the next token of a text, or one sequence from another."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.learn.play.model_answers import Names, attentions
from npformer.learn.play.state import Now
from npformer.training.generation.choosing import Choice, generators_of
from npformer.training.generation.texts import tokens_to_avoid
from npformer.training.generation.writing import Window

CANDIDATES = 20


def write(
    now: Now, prompt: str, temperature: float = 1.0, top_p: float | None = None, seed: int = 0
) -> dict[str, Any]:
    """Return the token after a text, the likeliest tokens, and the seconds that both ways take."""
    now.work.check_kind("text", "writes nothing; expected the task 'text'")
    model, names = now.plain, now.work.names
    never = [] if names.tokenizer is None else tokens_to_avoid(model, names.tokenizer, [], None)
    choice = Choice(temperature, top_p=top_p, never=never)
    checks.whole("seed", seed, at_least=0)
    ids = now.work.estimator.ids("prompt", prompt)
    if not len(ids):
        raise ValueError("prompt is empty; expected at least one character")
    seconds_plain, _ = _measure(lambda: Window(model, [ids], cache=False).logits)
    seconds_cached, logits = _measure(lambda: _continue(model, ids))
    (drawn,) = choice.draw(logits, generators_of(seed, 1)).tolist()
    p = Choice(temperature or 1.0, never=never).probabilities(logits)[0]
    possible = choice.probabilities(logits)[0] > 0.0
    best = np.argsort(-p, kind="stable")[:CANDIDATES].tolist()
    return {
        "token": _text_behind(names, ids, drawn),
        "candidates": [
            {"token": _text_behind(names, ids, k), "p": float(p[k]), "kept": bool(possible[k])}
            for k in best
        ],
        "seconds_cached": seconds_cached,
        "seconds_plain": seconds_plain,
    }


def _text_behind(names: Names, ids: np.ndarray, id: int) -> str:
    """Return what a token adds to a text; by itself it may have no space."""
    text, longer = names.text(ids), names.text([*ids, id])
    return longer.removeprefix(text) if longer.startswith(text) else names.text([id])


def _continue(model: Any, ids: np.ndarray) -> Any:
    """Return the call for the last token, with those before it in the cache."""
    if len(ids) == 1:
        return Window(model, [ids], cache=True).logits
    cached = Window(model, [ids[:-1]], cache=True)
    cached.logits()
    cached.add(ids[-1:])
    return cached.logits


def _measure(prepared: Any) -> tuple[float, Any]:
    """Return the seconds of a call, after a first one that warms the caches, and its result."""
    prepared()()
    call = prepared()
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def translate(now: Now, source: str) -> dict[str, Any]:
    """Return the tokens of both sides, and the matrices of encoder, decoder and what joins them.

    ``read`` holds the tokens that the decoder read, one for each row of its matrices: the first
    stands for the beginning.
    """
    now.work.check_kind("pair", "has no pairs; expected one of pairs")
    checks.text("source", source)
    x, _, tokens = now.work.arrays(source)
    model = now.plain
    (written,) = model.generate(x)
    target = np.array([[model.begin_id, *written]])[:, : model.decoder_config.max_len]
    words = now.work.names.words(written, targets=True)
    attention_maps = attentions(model, (x, target))
    read = ["begin", *words][: target.shape[1]]
    return {"source": tokens, "target": words, "read": read, "attentions": attention_maps}
