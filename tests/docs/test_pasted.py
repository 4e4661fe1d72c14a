"""What can be copied from a page runs in a fresh Python, and prints what the page shows.

A block is pasted as its copy button copies it: with the blocks that it goes on from. A quotation of
the package is pasted alone.
"""

import re
import shutil

import pytest

from docs.site import pages as site_pages
from docs.site.copied import copied, needed
from docs.site.pages import BLOCK, DOCS, ROOT, lacks, pages, same
from tests.docs.test_pages import SLOW

TEXTS = {page.relative_to(DOCS).as_posix(): page.read_text("utf-8") for page in pages()}
TEXTS["README.md"] = (ROOT / "README.md").read_text("utf-8")
OWN = {
    name: blocks
    for name, text in TEXTS.items()
    if (blocks := [found for found in BLOCK.finditer(text) if not found["source"]])
}
"""The blocks of each page that has any, without quotations."""
QUOTED = [
    pytest.param(found["code"], id=f"{name}-{found['names']}")
    for name, text in TEXTS.items()
    for found in BLOCK.finditer(text)
    if found["source"]
]
LONG = [*SLOW, "README.md", "chapters/masked_tokens.md"]
ALONE = [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in OWN]


@pytest.mark.parametrize("code", QUOTED)
def test_a_quotation_runs_alone(code):
    names = {"__name__": "pasted"}
    before = {*names, "__builtins__"}
    exec(compile(code, "pasted", "exec"), names)
    assert {*names} - before


@pytest.mark.parametrize("name", ALONE)
def test_a_block_runs_with_what_its_button_copies_and_prints_what_the_page_shows(name):
    blocks = OWN[name]
    for k, above in enumerate(needed([block["code"] for block in blocks])):
        if any(lacks(blocks[j]) for j in [*above, k]):
            continue
        steps = "".join(f"```python\n{blocks[j]['code']}```\n\n- {j}\n" for j in [*above, k])
        printed = BLOCK.findall(site_pages.rewritten(steps, f"{name}, block {k}"))[-1][-1]
        assert same(printed, blocks[k]["printed"] or ""), (k, above)


@pytest.mark.parametrize("name", OWN)
def test_each_name_of_a_block_is_made_by_what_its_button_copies(name):
    assert len(copied([block["code"] for block in OWN[name]])) == len(OWN[name])


def test_a_block_goes_on_from_the_last_that_makes_a_name():
    above = needed(
        [
            "import numpy as np\nrng = np.random.default_rng(0)",
            "x = 1",
            "x = 2\ndef f(y):\n    return x + y",
            "rng.normal()",
            "print([f(z) for z in range(3)])",
            "z = rng.normal()",
        ]
    )
    assert above == [[], [], [], [0], [2], [0]]
    with pytest.raises(ValueError, match="no block above makes lost, x"):
        needed(["def f():\n    return lost + x\n", "x = 1"])


def test_only_code_that_runs_is_offered_to_be_copied():
    """A fence of `py` is an excerpt: it has no button, and a word of the text says what it is."""
    conf = (DOCS / "conf.py").read_text("utf-8")
    kinds = re.search(r"copybutton_selector = .* in \((.*?)\)", conf)[1]
    assert kinds == '"python", "Python", "sh"'
    found = {kind for text in TEXTS.values() for kind in re.findall(r"^ *```(\w.*)$", text, re.M)}
    assert {kind.partition(" needs=")[0] for kind in found} <= {"python", "py", "sh", "text", "csv"}


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore:.*is deprecated. Check CHANGES")  # MyST on a newer Sphinx
def test_each_button_of_a_page_copies_what_was_tested(browser, tmp_path):
    for extra in ("sphinx_copybutton", "myst_parser"):
        pytest.importorskip(extra, reason="the site's extra: docs")
    from sphinx.application import Sphinx

    (tmp_path / "_static").mkdir()
    shutil.copy(DOCS / "_static" / "copy.js", tmp_path / "_static")
    conf = (
        'extensions = ["myst_parser", "sphinx_copybutton", "docs.site.copied"]\n'
        'myst_enable_extensions = ["dollarmath"]\nhtml_static_path = ["_static"]\n'
        'html_js_files = [("copy.js", {"defer": "defer", "priority": 900})]\n'
        'copybutton_selector = "div.highlight-python pre"\n'
        'suppress_warnings = ["myst.xref_missing", "image.not_readable"]\n'
    )
    (tmp_path / "conf.py").write_text(conf)
    text = re.sub(r"^!\[.*\n", "", TEXTS["chapters/attention.md"], flags=re.MULTILINE)
    (tmp_path / "index.md").write_text(text, "utf-8")
    out = tmp_path / "out"
    app = Sphinx(tmp_path, tmp_path, out, out, "html", status=None)
    app.build()
    alone = [found["code"].strip() for found in BLOCK.finditer(text) if found["source"]]
    own = copied([found["code"] for found in OWN["chapters/attention.md"]])
    page = browser.new_page()
    page.add_init_script(
        "window.copied = []; addEventListener('copy', (event) => copied.push(event.target.value))"
    )
    page.goto((out / "index.html").as_uri())
    for button in page.query_selector_all(".highlight-python .copybtn"):
        button.dispatch_event("click")
    found = [each.strip() for each in page.evaluate("copied")]
    page.close()
    assert sorted(found) == sorted([*alone, *own])
