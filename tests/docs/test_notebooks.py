"""Each chapter as a notebook: valid, and its cells are the blocks of the page."""

import json
from types import SimpleNamespace

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site.notebooks import lead_to_it, nodes, notebook
from docs.site.pages import BLOCK, DOCS

nbformat = pytest.importorskip("nbformat", reason=NEEDS["nbformat"])
CHAPTERS = sorted(page.stem for page in (DOCS / "chapters").glob("*.md"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_a_valid_notebook(chapter):
    text = (DOCS / "chapters" / f"{chapter}.md").read_text("utf-8")
    document = json.loads(notebook(text))
    nbformat.validate(document)
    cells = ["".join(cell["source"]) for cell in document["cells"]]
    assert cells[0].startswith(text.splitlines()[0])
    assert not any("<!--" in cell or "](../" in cell for cell in cells)
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    blocks = [match["code"].strip() for match in BLOCK.finditer(text) if not match["source"]]
    assert ["".join(cell["source"]).strip() for cell in code] == blocks  # which test_pasted runs


@pytest.mark.parametrize(("page", "there"), [("chapters/softmax", True), ("training", False)])
def test_a_chapter_leads_to_it_below_its_title(page, there):
    section = nodes.section("", nodes.title(text="Softmax"), nodes.paragraph(text="It turns"))
    lead_to_it(SimpleNamespace(env=SimpleNamespace(docname=page)), section)
    link = "softmax.ipynb" if there else "It turns"
    assert link in section[1].astext()
