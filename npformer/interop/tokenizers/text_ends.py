"""Compare the begin and end of encoded texts with the settings in tokenizer_config.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from npformer.data.tokenizers.tokenizer import token_text

ENDS = {"add_bos_token": ("bos_token", 0), "add_eos_token": ("eos_token", 1)}
"""{setting: (the setting that names its token, 0 for the beginning of texts, 1 for the end)}"""

SPACES = " ", "\u2581", "\u0120"
"""A space, and its representations in SentencePiece and in byte-level tokens."""


def find_missing_ends(library: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return descriptions of tokens that the settings add to texts and a tokenizer does not."""
    return [
        f"{setting} = {settings[setting]}, and {word!r} is not added"
        for setting, word, is_added in _ends(library, settings)
        if settings[setting] and not is_added
    ]


def find_additional_ends(library: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return descriptions of tokens that a tokenizer adds to texts and the settings do not."""
    return [
        f"{setting} = {settings[setting]}, and {word!r} is added"
        for setting, word, is_added in _ends(library, settings)
        if is_added and not settings[setting]
    ]


def _ends(library: Any, settings: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield each setting of `ENDS` in the settings, its token, and whether a tokenizer adds it.

    A setting whose token has no name is skipped.
    """
    for setting, (name, end) in ENDS.items():
        word = token_text(settings.get(name))
        if word is not None and settings.get(setting) is not None:
            yield setting, word, library.token_to_id(word) in _ids_around_text(library)[end]


def _ids_around_text(library: Any) -> tuple[list[int], list[int]]:
    """Return the ids that a tokenizer adds before a text, and those that it adds after it."""
    encoding = library.encode("a")
    text_positions = [i for i, text in enumerate(encoding.sequence_ids) if text is not None]
    if not text_positions:  # the tokenizer removes the text
        return encoding.ids, encoding.ids
    first, last = text_positions[0], text_positions[-1]
    return encoding.ids[:first], encoding.ids[last + 1 :]


def contradictory_prefix(library: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return a description if a tokenizer and its settings differ about a space before texts."""
    setting = settings.get("add_prefix_space")
    if not isinstance(setting, bool) or setting == _adds_prefix(library):
        return []
    problem = "a space is not added" if setting else "a space is added"
    return [f"add_prefix_space = {setting}, and {problem}"]


def _adds_prefix(library: Any) -> bool:
    """Return whether a tokenizer adds a space before a text without one."""
    text = "a"
    if library.normalizer is not None:
        text = library.normalizer.normalize_str(text)
    words = [(text, None)]
    if library.pre_tokenizer is not None:
        words = library.pre_tokenizer.pre_tokenize_str(text)
    return bool(words) and words[0][0].startswith(SPACES)
