"""Whether a tokenizer begins and ends texts as tokenizer_config.json says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from npformer.data.tokenizers.tokenizer import token_text

ENDS = {"add_bos_token": ("bos_token", 0), "add_eos_token": ("eos_token", 1)}
"""{setting: (the setting that names its token, 0 for the beginning of texts and 1 for the end)}"""

SPACES = " ", "\u2581", "\u0120"
"""A space, and how SentencePiece and byte-level tokens write it."""


def missing_ends(library: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return which tokens a tokenizer does not add to texts, although the settings say it does."""
    return [
        f"{setting} = {settings[setting]}, and {word!r} is not added"
        for setting, word, is_added in _ends(library, settings)
        if settings[setting] and not is_added
    ]


def additional_ends(library: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return which tokens a tokenizer adds to texts, although the settings say it does not."""
    return [
        f"{setting} = {settings[setting]}, and {word!r} is added"
        for setting, word, is_added in _ends(library, settings)
        if is_added and not settings[setting]
    ]


def _ends(library: Any, settings: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield each setting that is stated, its token, and whether a tokenizer adds that.

    A token that has no name in the settings is not added.
    """
    for setting, (name, end) in ENDS.items():
        word = token_text(settings.get(name))
        if word is not None and settings.get(setting) is not None:
            yield setting, word, library.token_to_id(word) in _added_ids(library)[end]


def _added_ids(library: Any) -> tuple[list[int], list[int]]:
    """Return the ids that are added before a text, and those behind it."""
    encoding = library.encode("a")
    of_text = [i for i, text in enumerate(encoding.sequence_ids) if text is not None]
    if not of_text:  # nothing is left of the text
        return encoding.ids, encoding.ids
    return encoding.ids[: of_text[0]], encoding.ids[of_text[-1] + 1 :]


def contradictory_prefix(library: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return whether a tokenizer.json puts a space before texts, if the settings say otherwise."""
    stated = settings.get("add_prefix_space")
    if not isinstance(stated, bool) or stated == _adds_prefix(library):
        return []
    return [f"add_prefix_space = {stated}, and a space is {'not ' if stated else ''}added"]


def _adds_prefix(library: Any) -> bool:
    """Return whether a space is put before a text that has none."""
    text = "a"
    if library.normalizer is not None:
        text = library.normalizer.normalize_str(text)
    words = [(text, None)]
    if library.pre_tokenizer is not None:
        words = library.pre_tokenizer.pre_tokenize_str(text)
    return bool(words) and words[0][0].startswith(SPACES)
