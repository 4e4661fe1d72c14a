"""The diagram of the machine: every chapter has a box in it, and the order of chapters holds."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from docs.site import machine
from docs.site.machine import BOXES, DOCS, FILE, HEIGHT, WIDTH, small, whole
from tests.needs import NEEDS

SVG = "{http://www.w3.org/2000/svg}"
CHAPTERS = sorted(file.stem for file in (DOCS / "chapters").glob("*.md"))
ORDER = re.findall(r"^chapters/(\w+)$", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE)
THERE = [chapter for chapter in ORDER if chapter in CHAPTERS]


def text_of(chapter):
    return (DOCS / "chapters" / f"{chapter}.md").read_text("utf-8")


def test_the_file_is_the_diagram_of_today():
    assert FILE.read_text("utf-8") == whole() + "\n", "python -m docs.site.machine"


def test_every_chapter_has_a_box():
    assert set(CHAPTERS) <= {box.chapter for box in BOXES}


def test_every_chapter_with_a_box_has_a_place_in_the_order():
    assert {box.chapter for box in BOXES} == set(ORDER)
    assert len(set(ORDER)) == len(ORDER)


def test_boxes_lie_within_the_picture():
    for box in BOXES:
        assert box.x >= 0
        assert box.x + box.width <= WIDTH
        assert box.y + box.height <= HEIGHT


def test_boxes_are_as_wide_as_their_words():
    for box in BOXES:
        for line in box.label.split("\n"):
            assert 6.4 * len(line) <= box.width - 6, line


def test_boxes_do_not_overlap():
    for i, one in enumerate(BOXES):
        for other in BOXES[:i]:
            beside = one.x >= other.x + other.width or other.x >= one.x + one.width
            below = one.y >= other.y + other.height or other.y >= one.y + one.height
            assert beside or below, (one.label, other.label)


def test_each_box_leads_to_its_chapter():
    tree = ElementTree.fromstring(whole(lambda chapter: f"../{chapter}.html?a&b", style=""))
    targets = [link.get("href") for link in tree.iter(f"{SVG}a")]
    assert targets == [f"../{box.chapter}.html?a&b" for box in BOXES]
    words = ["".join(link.itertext()) for link in tree.iter(f"{SVG}a")]
    assert words == [box.label.replace("\n", "") for box in BOXES]
    assert not ElementTree.fromstring(whole()).findall(f".//{SVG}a")


@pytest.mark.parametrize("chapter", sorted({box.chapter for box in BOXES}))
def test_the_small_one_is_lit_where_the_chapter_stands(chapter):
    tree = ElementTree.fromstring(small(chapter))
    boxes = [box for box in tree.iter(f"{SVG}rect") if box.get("class") == "box lit"]
    lit = [(int(box.get("x")), int(box.get("y"))) for box in boxes]
    assert lit == [(box.x, box.y) for box in BOXES if box.chapter == chapter]
    assert tree.get("aria-label") == tree.find(f"{SVG}title").text
    assert not list(tree.iter(f"{SVG}text"))


@pytest.mark.parametrize(("one", "other"), [p for p in pairwise(ORDER) if p[0] in CHAPTERS])
def test_a_chapter_leads_to_the_next_one(one, other):
    next_chapters = re.findall(r"^- Next: \[[^\]]+\]\((\w+)\.md\)", text_of(one), re.MULTILINE)
    assert next_chapters == [other]


def test_the_first_page_lists_the_chapters_in_their_order():
    page = (DOCS / "what_is_a_transformer.md").read_text("utf-8").split("## Where to go on")[1]
    assert re.findall(r"\]\(chapters/(\w+)\.md\)", page) == ORDER


@pytest.mark.parametrize("chapter", THERE)
def test_a_chapter_needs_only_chapters_before_it(chapter):
    needs = re.findall(r"(?:You need|hapter\suses) .*?\n\n", text_of(chapter), re.DOTALL)
    for earlier in re.findall(r"\]\((\w+)\.md", "".join(needs)):
        assert ORDER.index(earlier) < ORDER.index(chapter), earlier


@pytest.fixture(scope="module")
def small_site(tmp_path_factory):
    """Build a site of one chapter; return its front page, and that of the chapter."""
    testing = pytest.importorskip("sphinx.testing.util", reason=NEEDS["sphinx"])
    folder = tmp_path_factory.mktemp("site")
    source = folder / "source"
    (source / "chapters").mkdir(parents=True)
    (source / "pictures").mkdir()
    (source / "pictures" / machine.FILE.name).write_text(whole(), "utf-8")
    (source / "conf.py").write_text('extensions = ["myst_parser", "docs.site.machine_on_pages"]\n')
    tree = "```{toctree}\nwhat_is_a_transformer\nchapters/softmax\n```\n"
    (source / "index.md").write_text(f"# T\n\n![all](pictures/machine.svg)\n\n{tree}", "utf-8")
    (source / "what_is_a_transformer.md").write_text("# What\n\nIt.\n", "utf-8")
    (source / "chapters" / "softmax.md").write_text("# Softmax\n\nShares.\n", "utf-8")
    app = testing.SphinxTestApp("html", srcdir=source, builddir=folder / "built")
    try:
        app.build()
        front = (app.outdir / "index.html").read_text("utf-8")
        page = (app.outdir / "chapters" / "softmax.html").read_text("utf-8")
    finally:
        app.cleanup()
    return front, page


def test_the_picture_links_to_the_chapters_of_the_site(small_site):
    front, _ = small_site
    assert front.count('<a href="chapters/softmax.html"><rect') == 2
    assert "chapters/linear.html" not in front  # this site has no such page


def test_the_picture_is_above_each_chapter(small_site):
    _, page = small_site
    assert '<a class="machine-here" href="../what_is_a_transformer.html"><svg' in page
    assert page.index("<h1>") < page.index("machine-here") < page.index("Shares.")


def test_the_boxes_of_a_chapter_are_lit(small_site):
    _, page = small_site
    assert page.count("box lit") == 2
