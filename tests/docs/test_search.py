"""48 queries lead first to the page that answers them, on a site without outputs of examples."""

import subprocess
import sys

import pytest

from docs.site.pages import ROOT

pytest.importorskip("sphinx_gallery", reason="the site's extra: docs")
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
    # Tasks
    "fine-tune BERT": "pretrained",
    "resume training": "resume",
    "class weights": "training",
    "custom layer": "extending",
    "text classification": "your_file",
    "npformer train": "your_file",
    "ONNX": "onnx",
    "GPU": "gpu",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site."""
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-D", "plot_gallery=0", "docs", str(out)]
    subprocess.run(build, cwd=ROOT, check=True, timeout=900)
    return out


def test_each_query_finds_its_page_first(site, browser):
    page, wrong = browser.new_page(), {}
    for query, wanted in FIRST.items():
        page.goto(f"{(site / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
        page.wait_for_function(
            "!document.querySelector('#search-progress, .search-summary')?.textContent"
            ".startsWith('Searching') && document.querySelector('ul.search li a')"
        )
        found = page.locator("ul.search > li > a").evaluate_all(
            "links => links.slice(0, 3).map((link) => link.getAttribute('href'))"
        )
        if not found[0].startswith(f"{wanted}.html"):
            wrong[query] = found
    page.close()
    assert len(FIRST) >= 40
    assert wrong == {}
