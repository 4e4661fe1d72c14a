"""What later ids can still change in a decoded text; it depends on the steps of the decoder.

Some steps of Hugging Face's ``tokenizers`` never change text that has been decoded, some change its
end in a known way. With any other step no part of a text is certain before its last id.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
"""A byte of a character that is not in the vocabulary, as a token for the step ByteFallback."""

CUT_CHARACTER = "\ufffd"
"""Stands for bytes that are not a complete character."""

TOKEN_STEPS = "WordPiece", "Metaspace", "CTC", "Strip", "Replace", "ByteFallback"
"""Steps whose result for a token depends only on the token, on whether it is the first, and on the
tokens right before it; for bytes also on the bytes that follow."""


@dataclass(frozen=True)
class LaterChanges:
    """What later ids can change at the end of a text.

    Attributes
    ----------
    anything : bool
        Any part of it.
    cut_character : bool
        Its last character, if its bytes are not complete.
    bytes : bool
        The bytes at its end: if the next byte makes them invalid, it invalidates all of them.
    last_token : bool
        Its last token, whose mark for the end of a word becomes a space if a token follows.
    """

    anything: bool = False
    cut_character: bool = False
    bytes: bool = False
    last_token: bool = False


def later_changes(decoder: Any) -> LaterChanges:
    """Return what later ids can change, given the decoder of a tokenizer, or None without one."""
    steps = [] if decoder is None else _steps(json.loads(decoder.__getstate__()))
    step_types = [step["type"] for step in steps]
    if step_types == ["BPEDecoder"]:
        return LaterChanges(last_token=True)
    if step_types in (["ByteLevel"], ["ByteLevel", "Fuse"]):
        return LaterChanges(cut_character=True)
    fuse = step_types.index("Fuse") if "Fuse" in step_types else len(step_types)
    token_steps, text_steps = steps[:fuse], steps[fuse:]
    tokens_are_certain = all(map(_keeps_tokens, token_steps)) and _keeps_bytes(token_steps)
    text_is_certain = all(map(_keeps_text, text_steps))
    if not tokens_are_certain or not text_is_certain:
        return LaterChanges(anything=True)
    return LaterChanges(bytes="ByteFallback" in step_types)


def _steps(decoder: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a decoder; sequences are flattened."""
    if decoder["type"] != "Sequence":
        return [decoder]
    steps = []
    for inner_decoder in decoder["decoders"]:
        steps += _steps(inner_decoder)
    return steps


def _keeps_tokens(step: dict[str, Any]) -> bool:
    """Return whether no later token, except a byte, changes what a step makes of a token."""
    return step["type"] in TOKEN_STEPS


def _keeps_text(step: dict[str, Any]) -> bool:
    """Return whether no later text changes what a step makes of the beginning of a text."""
    if step["type"] == "Strip":
        return bool(step["stop"] == 0)
    if step["type"] == "Replace":
        return len(step["pattern"].get("String", "")) == 1
    return bool(step["type"] == "Fuse")


def _keeps_bytes(steps: list[dict[str, Any]]) -> bool:
    """Return whether tokens of bytes reach the step ByteFallback with their names unchanged.

    Steps before it may only insert spaces, because no name of a byte has one.
    """
    step_types = [step["type"] for step in steps]
    if "ByteFallback" not in step_types:
        return True
    earlier_steps = steps[: step_types.index("ByteFallback")]
    return all(step["type"] == "Replace" and step["content"] == " " for step in earlier_steps)


def common_beginning(one: str, other: str) -> str:
    """Return the beginning that two texts have in common."""
    for i, (character, other_character) in enumerate(zip(one, other, strict=False)):
        if character != other_character:
            return one[:i]
    return one[: len(other)]
