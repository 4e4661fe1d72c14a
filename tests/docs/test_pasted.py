"""What can be copied from a page runs in a fresh Python, and prints what the page shows.

A block is pasted as its copy button copies it: with the blocks that it goes on from. A quotation of
the package is pasted alone.
"""

import re
import shutil
import subprocess
import sys

import pytest

from docs.site import pages as site_pages
from docs.site.copied import copied, needed
from docs.site.pages import BLOCK, DOCS, ROOT, lacks, pages, same, source
from tests.needs import NEEDS

TEXTS = {page.relative_to(DOCS).as_posix(): page.read_text("utf-8") for page in pages()}
TEXTS["README.md"] = (ROOT / "README.md").read_text("utf-8").replace("epochs=20", "epochs=2")
FOUND = {name: [*BLOCK.finditer(text)] for name, text in TEXTS.items()}
OWN = {name: [block for block in matches if not block["source"]] for name, matches in FOUND.items()}
QUOTED = [
    pytest.param(block, id=f"{name}-{block['names']}")
    for name, matches in FOUND.items()
    for block in matches
    if block["source"]
]
LONG = [
    "check_your_layer.md",
    "hand_written_transformers.md",
    "chapters/decoder.md",
    "chapters/training.md",
    "chapters/language_models.md",
    "chapters/initialization.md",
    "what_is_a_transformer.md",
    "five_minutes.md",
    "sklearn.md",
    "your_file.md",
    "writing.md",
    "extending/model.md",
    "chapters/block.md",
    "resume.md",
    "pretrained.md",
    "training.md",
    "chapters/adam.md",
    "your_data.md",
    "chapters/masked_tokens.md",
    "chapters/attention.md",
    "chapters/dropout.md",
]
"""Pages whose blocks take some seconds together."""
ALONE = [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in OWN if OWN[name]]


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quotation_is_that_of_today(quoted):
    assert quoted["code"] == source(quoted["file"], quoted["names"].split())


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quotation_runs_alone(quoted):
    names = {"__name__": "pasted"}
    before = {*names, "__builtins__"}
    exec(compile(quoted["code"], "pasted", "exec"), names)
    assert {*names} - before


@pytest.mark.parametrize("name", ALONE)
def test_a_block_prints_what_the_page_shows_with_what_its_button_copies(name):
    blocks = OWN[name]
    chains = [[*above, k] for k, above in enumerate(needed([block["code"] for block in blocks]))]
    chains = [chain for chain in chains if not any(lacks(blocks[k]) for k in chain)]
    for chain in chains:
        if any(chain == longer[: len(chain)] for longer in chains if longer is not chain):
            continue  # these blocks run as the beginning of more
        steps = "".join(f"```python\n{blocks[k]['code']}```\n\n- {k}\n" for k in chain)
        matches = BLOCK.findall(site_pages.rewritten(steps, f"{name}, blocks {chain}"))
        wrong = [
            chain[:n]
            for n, (k, (*_, printed)) in enumerate(zip(chain, matches, strict=True), 1)
            if chain[:n] in chains and not same(printed, blocks[k]["printed"] or "")
        ]
        assert wrong == [] or name == "README.md"


def test_each_name_in_a_block_is_made_by_what_its_button_copies():
    above = [needed([block["code"] for block in blocks]) for blocks in OWN.values()]  # or it raises
    assert sum(map(len, above)) > 400


def test_a_block_goes_on_from_the_last_that_makes_a_name():
    first, last = "import numpy as np\nx = 1", "x = 2\ndef f(y):\n    return x + y"
    assert needed([first, last, "print([f(z) for z in (1, 2)])", "np.pi"]) == [[], [], [1], [0]]
    assert needed([first, "y = x", "y"]) == [[], [0], [0, 1]]
    assert needed(['@len.register("glu")\nclass A: pass', 'print("glu(a=1)")']) == [[], [0]]
    with pytest.raises(ValueError, match="no block above makes lost, x"):
        needed(["def f():\n    return lost + x\n", "x = 1"])


def test_only_code_that_runs_is_offered_to_be_copied():
    """A fence of `py` is an excerpt."""
    conf = (DOCS / "conf.py").read_text("utf-8")
    assert re.search(r"copybutton_selector.* in \((.*?)\)", conf)[1] == '"python", "Python", "sh"'
    kinds = {kind for text in TEXTS.values() for kind in re.findall(r"^ *```(\w.*)$", text, re.M)}
    assert {kind.partition(" needs=")[0] for kind in kinds} <= {"python", "py", "sh", "text", "csv"}


CONF = """
extensions = ["myst_parser", "sphinx_copybutton", "docs.site.copied"]
html_static_path = ["_static"]
html_js_files = [("copy.js", {"defer": "defer", "priority": 900})]
copybutton_selector = "div.highlight-python pre"
"""


@pytest.mark.browser
def test_each_button_of_a_page_copies_what_was_tested(browser, tmp_path):
    for extra in ("sphinx_copybutton", "myst_parser"):
        pytest.importorskip(extra, reason=NEEDS[extra])
    name = "chapters/attention.md"
    shutil.copytree(DOCS / "_static", tmp_path / "_static")
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text(TEXTS[name], "utf-8")
    out = tmp_path / "out"
    build = [sys.executable, "-m", "sphinx", "-q", str(tmp_path), str(out)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    page = browser.new_page()
    listen = "addEventListener('copy', (event) => copied.push(event.target.value))"
    page.add_init_script(f"window.copied = []; {listen}")
    page.goto((out / "index.html").as_uri())
    for button in page.query_selector_all(".highlight-python .copybtn"):
        button.dispatch_event("click")
    copies = [block.strip() for block in page.evaluate("copied")]
    page.close()
    alone = [block["code"].strip() for block in FOUND[name] if block["source"]]
    assert sorted(copies) == sorted([*alone, *copied([block["code"] for block in OWN[name]])])
