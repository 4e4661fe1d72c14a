"""The glossary: words in their order, each with two sentences, a page and a file that exist."""

import re

import pytest

from docs.site.pages import DOCS, ROOT

TEXT = (DOCS / "glossary.md").read_text("utf-8")
ENTRIES = {
    found[1]: found[2]
    for found in re.finditer(r"^\*\*(.+?)\.\*\* (.+?)(?=\n\n|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")


def test_the_words_are_in_their_order():
    words = [word.casefold() for word in ENTRIES]
    assert words == sorted(words)
    assert len(words) > 45


@pytest.mark.parametrize("word", ENTRIES)
def test_a_word_has_a_meaning_a_page_and_a_file(word):
    entry = " ".join(ENTRIES[word].split())
    *_, page, file = LINK.findall(entry)
    assert page.endswith(".md") or ".md#" in page
    assert (DOCS / file).resolve().is_relative_to(ROOT / "npformer")
    assert (DOCS / file).is_file()
    meaning = re.sub(r"\[(Chapter|Page)\].*", "", entry).replace("et al.", "et al")
    sentences = re.findall(r"\.(?= |$)", meaning.strip())
    assert len(sentences) == 2, meaning
