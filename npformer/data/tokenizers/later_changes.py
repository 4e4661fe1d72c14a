"""What the ids to come may still change in a decoded text, by the steps of its decoder.

The steps of Hugging Face's ``tokenizers`` are sure to leave what is written as it is, to change the
end of it in a way that is known, or neither; then nothing of a text is sure before its last id.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
"""A token of the step ByteFallback: a byte of a character that is not in the vocabulary."""

CUT_CHARACTER = "\ufffd"
"""What bytes become that are no whole character."""

OF_TOKENS = "WordPiece", "Metaspace", "CTC", "Strip", "Replace", "ByteFallback"
"""Steps that make of each token what it is by itself, by whether it is the first, and by those
right before it; of bytes also by those that follow, until one is none."""


@dataclass(frozen=True)
class LaterChanges:
    """What later ids may change at the end of a text.

    Attributes
    ----------
    anything : bool
        Any part of it.
    cut_character : bool
        Its last character, if its bytes are not complete.
    bytes : bool
        The tokens of bytes that it ends with: if a byte that follows makes them invalid, all of
        them are.
    last_token : bool
        The last token, in which the end of a word becomes a space if another token follows.
    """

    anything: bool = False
    cut_character: bool = False
    bytes: bool = False
    last_token: bool = False


def later_changes(decoder: Any) -> LaterChanges:
    """Return what the steps of a decoder leave open; `decoder` is that of a tokenizer, or None."""
    steps = [] if decoder is None else _steps(json.loads(decoder.__getstate__()))
    kinds = [step["type"] for step in steps]
    if kinds == ["BPEDecoder"]:
        return LaterChanges(last_token=True)
    if kinds in (["ByteLevel"], ["ByteLevel", "Fuse"]):
        return LaterChanges(cut_character=True)
    joined = kinds.index("Fuse") if "Fuse" in kinds else len(kinds)
    sure = all(map(_keeps_tokens, steps[:joined])) and all(map(_keeps_text, steps[joined:]))
    if not sure or not _keeps_bytes(steps[:joined]):
        return LaterChanges(anything=True)
    return LaterChanges(bytes="ByteFallback" in kinds)


def _steps(decoder: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a decoder, those of sequences one by one."""
    if decoder["type"] != "Sequence":
        return [decoder]
    return [step for part in decoder["decoders"] for step in _steps(part)]


def _keeps_tokens(step: dict[str, Any]) -> bool:
    """Return whether a step leaves tokens as they are, whatever follows that is not a byte."""
    return step["type"] in OF_TOKENS


def _keeps_text(step: dict[str, Any]) -> bool:
    """Return whether a step of a whole text leaves its beginning as it is, whatever follows."""
    if step["type"] == "Strip":
        return bool(step["stop"] == 0)
    if step["type"] == "Replace":
        return len(step["pattern"].get("String", "")) == 1
    return bool(step["type"] == "Fuse")


def _keeps_bytes(steps: list[dict[str, Any]]) -> bool:
    """Return whether tokens of bytes are still told by their names when they become characters.

    Before that, spaces alone may be put in: no name has one.
    """
    kinds = [step["type"] for step in steps]
    before = steps[: kinds.index("ByteFallback")] if "ByteFallback" in kinds else []
    return all(step["type"] == "Replace" and step["content"] == " " for step in before)


def common_beginning(one: str, other: str) -> str:
    """Return the beginning that two texts have in common."""
    for i, (letter, other_letter) in enumerate(zip(one, other, strict=False)):
        if letter != other_letter:
            return one[:i]
    return one[: len(other)]
