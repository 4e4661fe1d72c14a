"""On a site without outputs of examples, queries lead first to their page, and no link is dead."""

import re
from html import unescape
from urllib.parse import unquote, urlsplit

import pytest

from tests.needs import NEEDS

pytest.importorskip("sphinx_gallery", reason=NEEDS["sphinx_gallery"])
pytestmark = [pytest.mark.slow, pytest.mark.processes]

FIRST = {
    # Symbols
    "EncoderConfig": "reference/models",
    "nf.fit": "reference/training",
    "nf.Adam": "reference/losses",
    "nf.load": "reference/training",
    "nf.evaluate": "reference/training",
    "nf.gradcheck": "reference/proof",
    "nf.TextClassifier": "reference/estimators",
    "TextClassifier": "reference/estimators",
    "SequenceClassifier": "reference/models",
    "MaskedLanguageModel": "reference/models",
    "LayerNorm": "reference/layers",
    "softmax_backward": "reference/functional",
    "layer_norm_backward": "reference/functional",
    "scaled_dot_product_attention": "reference/functional",
    "from_pretrained": "reference/data",
    "to_onnx": "reference/data",
    "nf.functional.softmax": "reference/functional",
    "fit": "reference/training",
    "schedule": "reference/losses",
    # Concepts
    "attention": "chapters/attention",
    "attention weights": "chapters/attention",
    "multi-head attention": "chapters/attention",
    "self-attention": "chapters/attention",
    "KV cache": "chapters/caches",
    "positional encoding": "chapters/embedding",
    "layer norm": "chapters/layer_norm",
    "softmax": "chapters/softmax",
    "dropout": "chapters/dropout",
    "cross entropy": "chapters/cross_entropy",
    "backpropagation": "chapters/chain_rule",
    "backward": "chapters/chain_rule",
    "residual connection": "chapters/block",
    "masked language model": "chapters/masked_tokens",
    "RoPE": "chapters/rotary",
    "GQA": "chapters/grouped_queries",
    "sliding window": "chapters/window",
    "SwiGLU": "chapters/gates",
    "RMSNorm": "chapters/rms_norm",
    "beam search": "chapters/language_models",
    "learning rate": "chapters/adam",
    "warm-up": "chapters/training",
    "weight decay": "chapters/adam",
    "early stopping": "chapters/training",
    "gradient check": "chapters/finite_differences",
    "softmax backward": "chapters/softmax",
    "layer norm backward": "chapters/layer_norm",
    "gradient of attention": "chapters/attention",
    "padding mask": "chapters/attention",
    "learning rate schedule": "chapters/adam",
    "rotary": "chapters/rotary",
    # Tasks
    "fine-tune BERT": "pretrained",
    "resume training": "resume",
    "class weights": "training",
    "custom layer": "extending",
    "text classification": "your_file",
    "npformer train": "your_file",
    "own layer": "extending",
    "write my own layer": "extending",
    "write your own layer": "extending",
    "how do I write a layer": "extending",
    "resume": "resume",
    "class_weight": "training",
    "patience": "training",
    "llama": "pretrained",
    "save load model": "five_minutes",
    "save model": "five_minutes",
    "overfitting": "chapters/training",
    "confusion matrix": "your_file",
    "ONNX": "onnx",
    "GPU": "gpu",
    # Words of PyTorch and others
    "MultiHeadAttention": "chapters/attention",
    "lr_scheduler": "chapters/adam",
    "past_key_values": "chapters/caches",
    "dataloader": "your_data",
}
EXCERPTS = {
    "nf.fit": "Train a model in place, and keep its best weights.",
    "fit": "Train a model in place, and keep its best weights.",
    "own layer": "How do I add something of my own to a model,",
    "tokens of padding": None,
}
"""What the excerpt of the first result begins with; None: with a whole word of the page."""


@pytest.fixture(scope="module")
def site(whole_site):
    """Return the folder of the site."""
    return whole_site


def results(page, site, query):
    """Search; return the results."""
    page.goto(f"{(site / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
    page.wait_for_function(
        "!document.querySelector('#search-progress, .search-summary')?.textContent"
        ".startsWith('Searching') && document.querySelector('ul.search li a')"
    )
    return page.locator("ul.search > li")


def test_each_query_finds_its_page_first(site, browser):
    page = browser.new_page()
    wrong = {}
    for query, expected in FIRST.items():
        links = [
            link.get_attribute("href")
            for link in results(page, site, query).locator("> a").all()[:3]
        ]
        if not links[0].startswith(f"{expected}.html"):
            wrong[query] = links
    page.close()
    assert len(FIRST) >= 60
    assert wrong == {}


@pytest.fixture
def titles(site, browser):
    """Return the titles of the first 20 results for "attention", by address."""
    page = browser.new_page()
    links = results(page, site, "attention").locator("> a")
    links.nth(19).wait_for()
    first = links.all()[:20]
    titles_by_address = {link.get_attribute("href"): link.text_content() for link in first}
    page.close()
    return titles_by_address


def test_a_place_is_one_result(titles):
    assert len(titles) == 20


def test_a_section_is_called_by_its_heading(titles):
    assert titles["chapters/attention.html#the-blockwise-way"] == "Attention > The blockwise way"


SECTIONS = {
    "The blockwise way": "chapters/attention.html#the-blockwise-way",
    "what a batch knows": "chapters/training.html#what-a-batch-knows",
    "Warm-up and decay": "chapters/training.html#warm-up-and-decay",
    "When it does not learn": "chapters/training.html#when-it-does-not-learn",
    "overfitting": "chapters/training.html#over-fitting",
}


@pytest.mark.parametrize("query", SECTIONS)
def test_a_heading_of_a_chapter_leads_to_its_section(site, browser, query):
    page = browser.new_page()
    first = results(page, site, query).locator("> a").first.get_attribute("href")
    page.close()
    assert first == SECTIONS[query]


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("fit", "nf.fit"),
        ("EncoderConfig", "nf.EncoderConfig"),
        ("softmax_backward", "nf.functional.softmax_backward"),
    ],
)
def test_a_result_has_the_name_that_users_write(site, browser, query, title):
    page = browser.new_page()
    titles = results(page, site, query).locator("> a").all_text_contents()
    page.close()
    assert titles[0] == title


def test_an_excerpt_cuts_no_word(site, browser):
    page = browser.new_page()
    for query, beginning in EXCERPTS.items():
        results_of_query = results(page, site, query)
        first = results_of_query.first
        excerpt = first.locator("p.context").text_content()
        address = first.locator("a").get_attribute("href").partition("#")[0]
        if beginning is not None:
            assert excerpt.startswith(beginning)
            if "fit" in query:  # one result, and called by its name
                named = results_of_query.get_by_text("nf.fit", exact=True)
                assert named.count() == 1
            continue
        words_of_page = re.sub("<[^>]+>", " ", (site / address).read_text("utf-8")).split()
        words = excerpt.removeprefix("... ").removesuffix("\u00a0...").split()
        assert words[0] in words_of_page
        assert words[-1] in words_of_page
    page.close()


def dead_links(site):
    """Return (page, link) for each link within a site to a file or an anchor that is not there."""
    pages = {page.resolve(): page.read_text("utf-8") for page in site.rglob("*.html")}
    places = {
        page: {unescape(name) for name in re.findall(r'\s(?:id|name)="([^"]+)"', text)}
        for page, text in pages.items()
    }
    dead = []
    for page, text in pages.items():
        for link in sorted(set(re.findall(r'\s(?:href|src)="([^"]*)"', text))):
            address = urlsplit(unescape(link))
            if address.scheme or address.netloc:
                continue
            there = (page.parent / unquote(address.path)).resolve() if address.path else page
            known = places.get(there, {unquote(address.fragment)})
            if not there.exists() or (address.fragment and unquote(address.fragment) not in known):
                dead.append((page.relative_to(site.resolve()).as_posix(), link))
    return dead


def test_no_link_of_the_site_is_dead(site, tmp_path):
    assert dead_links(site) == []
    (tmp_path / "a.html").write_text('<a href="b.html#there"> <a href="c.html"> <a href="#no">')
    (tmp_path / "b.html").write_text('<p id="there"> <a href="https://there"> <a href="a.html">')
    assert dead_links(tmp_path) == [("a.html", "#no"), ("a.html", "c.html")]
