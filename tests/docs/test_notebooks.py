"""Each chapter as a notebook: valid, and its cells run one after the other."""

import json

import pytest

pytest.importorskip("sphinx", reason="the site's extra: docs")

from docs.site.notebooks import notebook
from docs.site.pages import DOCS

nbformat = pytest.importorskip("nbformat", reason="a notebook's schema: the extra test")
CHAPTERS = sorted(page.stem for page in (DOCS / "chapters").glob("*.md"))
QUICK = ("softmax", "layer_norm", "rotary", "window", "chain_rule")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_a_valid_notebook(chapter):
    text = (DOCS / "chapters" / f"{chapter}.md").read_text("utf-8")
    made = json.loads(notebook(text))
    nbformat.validate(made)
    cells = ["".join(cell["source"]) for cell in made["cells"]]
    assert cells[0].startswith(text.splitlines()[0])
    assert not any("<!--" in cell or "](../" in cell for cell in cells)
    kinds = [cell["cell_type"] for cell in made["cells"]]
    assert kinds.count("code") >= 3


@pytest.mark.parametrize("chapter", QUICK)  # test_pages runs the blocks of all
def test_its_cells_run(chapter, monkeypatch, tmp_path):
    made = json.loads(notebook((DOCS / "chapters" / f"{chapter}.md").read_text("utf-8")))
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for cell in made["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{chapter}, {cell['id']}", "exec"), names)
    assert callable(names["nf"].fit)  # all cells have run, in one namespace
