"""What can be copied from a page runs in a fresh Python.

test_pages runs the blocks of each page in order, which is what its copy buttons copy: a block with
those above it. Here each quotation of the package is pasted alone.
"""

import shutil

import pytest

from docs.site.pages import BLOCK, DOCS, ROOT, pages

QUOTED = [
    pytest.param(found["code"], id=f"{page.relative_to(DOCS)}-{found['names']}")
    for page in pages()
    for found in BLOCK.finditer(page.read_text("utf-8"))
    if found["source"]
]


@pytest.mark.parametrize("code", QUOTED)
def test_a_quotation_runs_alone(code):
    names = {"__name__": "pasted"}
    before = {*names, "__builtins__"}
    exec(compile(code, "pasted", "exec"), names)
    assert {*names} - before


COPIED = """
() => [...document.querySelectorAll(".highlight-python pre")].map((pre, k) => {
  pre.id = `block-${k}`;
  const trigger = document.createElement("button");
  trigger.setAttribute("data-clipboard-target", `#${pre.id}`);
  return window.given.text(trigger);
})
"""


def test_a_copy_button_copies_what_a_block_goes_on_from(browser, tmp_path):
    pytest.importorskip("sphinx_copybutton", reason="the site's extra: docs")
    shutil.copy(ROOT / "docs" / "_static" / "copy.js", tmp_path)
    block = '<div class="highlight-python"><pre>{}</pre></div>'
    body = (
        block.format("a = 1\n") + "<p>text</p><!-- source: x.py f -->" + block.format("def f():\n")
    )
    # As sphinx-copybutton calls it when the page has loaded, with a function of its own.
    button = """<script>
      window.ClipboardJS = class { constructor(buttons, options) { window.given = options; } };
      addEventListener("DOMContentLoaded", () => new ClipboardJS(".copybtn", { text: (t) =>
        document.querySelector(t.getAttribute("data-clipboard-target")).textContent }));
    </script><script src="copy.js" defer></script>"""
    text = f"{button}{body}{block.format('print(a)')}"
    (tmp_path / "page.html").write_text(text, "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate(COPIED) == ["a = 1\n", "def f():\n", "a = 1\n\nprint(a)"]
    page.close()
