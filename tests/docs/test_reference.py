"""The reference: all that `import npformer as nf` offers, as docstrings mean it, with ways on."""

import pickle
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site.docstrings import is_internal
from docs.site.leads import DOCS, PAGES, pages_of
from docs.site.pages import ROOT
from docs.site.reference import PARTS, _index, add_sources, modules
from docs.site.search import PUBLIC, texts
from npformer.training.batches import Task

DOCUMENTED = [module for _, _, rooms in PARTS.values() for module in modules(rooms)]

CONF = """
import sys
sys.path.insert(0, {source!r})
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "docs.site.docstrings",
              "docs.site.typeset"]
default_role = "py:obj"
smartquotes = False
autodoc_default_options = {{"members": True}}
napoleon_use_rtype = False
python_use_unqualified_type_names = True
"""
STORED = '''
class Samples:
    """Samples."""

    @property
    def length(self) -> int:
        """Of one."""
'''
SMALL = '''
LIMIT = 3
"""Of no interest."""

def train(model, data, *misplaced, lr=None, schedule=None):
    """Train, with y_t = sum_{j=0}^t k_j x_{t-j}. See docs/training.md, and `Samples.kept`.

    Parameters
    ----------
    model : object
        What turns once in 2 pi base^(1 - 2 / d_head) tokens.
    data : Samples, or array, shape (n, length)
        Many.
    lr, schedule : optional
        Settings of Adam.
    classes_ : array
        Sorted.
    """
'''


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Build a small reference; return the page of a function."""
    source = tmp_path_factory.mktemp("source")
    (source / "conf.py").write_text(CONF.format(source=str(source)))
    (source / "index.rst").write_text("Home\n====\n\n.. toctree::\n   :glob:\n\n   *\n   */*\n")
    (source / "training.rst").write_text("Training\n========\n")
    (source / "reference").mkdir()
    for name, text in (("stored_here", STORED), ("small_here", SMALL)):
        (source / f"{name}.py").write_text(text)
        rst = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n"
        (source / "reference" / f"{name}.rst").write_text(rst)
    build = [sys.executable, "-m", "sphinx", "-W", "-q", str(source), str(source / "out")]
    subprocess.run(build, cwd=ROOT, check=True, timeout=120)
    tree = source / "out" / ".doctrees" / "reference" / "small_here.doctree"
    entries = dict(texts(pickle.loads(tree.read_bytes())))
    return (source / "out" / "reference" / "small_here.html").read_text("utf-8"), entries


def test_every_public_name_is_described():
    missing = [name for place, name in PUBLIC.items() if place.rpartition(".")[0] not in DOCUMENTED]
    assert missing == [
        "npformer.optim.Schedule",  # a type, which has no place of its own
        "npformer.TwoInputLayer",  # whose module has attributes with very common names
    ]
    assert len(PUBLIC) > 200


@pytest.mark.parametrize(
    "line",
    [
        ":doc:`nf.functional <functional>`",
        ":doc:`nf.interop <data>`",
        ":doc:`nf.distributed </ranks>`",
        ":py:obj:`nf.MIXERS <npformer.mixers.MIXERS>`",
        ":py:obj:`nf.fit <npformer.training.fit.fit>`",
        "The table of mixers, by name.",
    ],
)
def test_the_first_page_links_to_public_names(line):
    assert line in _index()


def test_the_first_page_has_no_other_tables():
    assert "table of sgd" not in _index()


def test_a_file_that_a_page_leads_to_has_a_page_of_its_source():
    described = ("code", {"Training": ("class", 1, 2)}, {}, "npformer.training.loop")
    env = SimpleNamespace(_viewcode_modules={"npformer.training.loop": described})
    add_sources(None, env)
    assert env._viewcode_modules["npformer.training.loop"] is described
    code, *_ = env._viewcode_modules["npformer.functional"]
    assert code == (ROOT / "npformer" / "functional" / "__init__.py").read_text("utf-8")


def test_a_capitalised_name_links_to_its_class(page):
    html, _ = page
    links = re.findall(r'<a [^>]*title="(stored_here[^"]*)"', html)
    assert links == ["stored_here.Samples"] * 2  # Samples.kept has no entry: its class has


def test_a_word_of_a_type_has_no_link(page):
    html, _ = page
    assert "shape (n, length)" in re.sub("<[^>]+>", "", html)


def test_a_path_of_a_page_is_a_link(page):
    assert 'href="../training.html"><span class="doc">Training: what fit can do</span>' in page[0]


@pytest.fixture
def text(page):
    """Return the page without its markup."""
    html, _ = page
    return re.sub("<[^>]+>", "", html)


def test_parameters_are_described_once(text):
    assert "lr, schedule (optional)\u00a0\u2013 Settings of Adam." in text
    assert text.count("Settings of Adam.") == 1
    assert "classes_ (array)" in text
    assert "train(model, data, *, lr=None, schedule=None)" in text


def test_internal_names_are_left_out(text):
    assert "LIMIT" not in text
    assert is_internal(None, "class", "samples", Task.samples, False, None)


def test_formulas_are_set_also_those_of_parameters(page):
    set_ = re.sub(r"<(su[bp])>(.*?)</\1>", r"\1{\2}", page[0])
    assert "ysub{t} = \u2211sub{j=0}sup{t} ksub{j} xsub{t\u2212j}" in set_
    assert "2 \u03c0 basesup{1 \u2212 2 / d_head} tokens" in set_


def test_an_excerpt_is_that_of_an_entry(page):
    entry = page[1]["small_here.train"]
    assert entry.startswith("Train, with")
    assert "data (Samples, or array" in entry  # once
    assert entry.endswith("Sorted.")


def test_every_module_leads_to_a_page_about_it():
    pages_by_module = {module: pages_of(module) for module in DOCUMENTED}
    assert {module for module, pages in pages_by_module.items() if not pages} == {
        "npformer.functional.broadcasting",
        "npformer.core.out_of_memory",
    }
    for pages in pages_by_module.values():
        assert all((DOCS / f"{page}.md").is_file() for page in pages)


def test_the_table_of_pages_names_modules_that_are_described():
    shown = [f"{module}." for module in ("npformer.training.distributed", *DOCUMENTED)]
    for names in PAGES.values():
        for name in names.split():
            assert any(
                name_of_module.startswith(f"npformer.{name}.") for name_of_module in shown
            ), name


def test_the_nearest_page_comes_first():
    assert pages_of("npformer.mixers.attention") == ["chapters/attention", "mixers"]
    assert pages_of("npformer.interop.onnx.export") == ["onnx"]
    assert "extending" in pages_of("npformer.models.config")
