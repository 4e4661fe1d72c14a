"""The glossary: words in their order, each with a page; whole entries have a file as well."""

import re

import pytest

from docs.site.pages import DOCS

TEXT = (DOCS / "glossary.md").read_text("utf-8")
ENTRIES = {
    found[1]: found[2]
    for found in re.finditer(r"^\*\*(.+?)\.\*\* (.+?)(?=\n\n|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")


def test_the_words_are_in_their_order():
    words = [word.casefold() for word in ENTRIES]
    assert words == sorted(words)
    assert len(words) > 140


@pytest.mark.parametrize("word", ENTRIES)
def test_a_word_has_a_meaning_and_a_page(word):
    entry = " ".join(ENTRIES[word].split())
    links = LINK.findall(entry)
    file = links.pop() if "/npformer/" in links[-1] else ""
    assert re.search(r"\.md(#|$)", links[-1])
    assert (DOCS / (file or links[-1].partition("#")[0])).is_file()
    meaning = re.sub(r"\[(Chapter|Page)\].*", "", entry).replace("et al.", "et al")
    sentences = re.findall(r"\.(?= |$)", meaning.strip())
    assert len(sentences) == (2 if file else 1), meaning
