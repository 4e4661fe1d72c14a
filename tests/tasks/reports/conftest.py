"""A reader of reports, which also checks that they are well-formed and need nothing else."""

import base64
import re
import struct
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

VOID = {"meta", "img", "br", "wbr", "hr", "link", "input"}


class Page(HTMLParser):
    """The parts of an HTML file.

    Attributes
    ----------
    tags : list of (tag, attributes)
    text : str
        All that is read, one text a line.
    tables : list of lists of rows of cells
    """

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.tables, self.open, self._texts = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == [], f"{self.open} are not closed"
        self.text = "\n".join(self._texts)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open or not data.strip():
            return
        self._texts.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data

    def of(self, tag, **wanted):
        """Return the attributes of all elements of a tag, with those wanted."""
        attributes_of_tag = [attributes for name, attributes in self.tags if name == tag]
        return [
            a
            for a in attributes_of_tag
            if all(a.get(key) == value for key, value in wanted.items())
        ]

    def table_after(self, *head):
        """Return the rows of all tables with this head."""
        return [rows[1:] for rows in self.tables if rows[0][: len(head)] == list(head)]


def pixels(address):
    """Return the colour indices of a picture, and its colours, from the PNG in its address."""
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    chunks = {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert zlib.crc32(name + body) == check
        chunks[name] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, kind) == (8, 3)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), "uint8").reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:], np.frombuffer(chunks[b"PLTE"], "uint8").reshape(-1, 3)


def read(path):
    """Return a report, after checking that it has nothing from outside and no script."""
    html = path.read_text("utf-8")
    page = Page(html)
    assert html.startswith("<!doctype html>")
    assert not {"script", "link", "iframe", "object", "embed", "base"} & {t for t, _ in page.tags}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "data", "action"):
            address = attributes.get(name, "#")
            assert address.startswith(("#", "data:image/png;base64,"))
            assert not address.startswith("#") or address[1:] in html
    assert re.findall(r"https?:|//[a-z]|@import|url\(", re.sub(r"base64,[^\"]*", "", html)) == []
    return page


@pytest.fixture
def shown(tmp_path):
    """Write a report and read it."""
    import npformer as nf

    def make(model, x, y, mask=None, **options):
        path = tmp_path / "report.html"
        assert nf.report(model, x, y, mask, path=path, overwrite=True, **options) == path
        return read(path)

    return make
