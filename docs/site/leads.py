"""Which chapters and guides an entry of the reference leads to."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from docs.site.line_by_line import chapters
from tests.pairs import NAMES

DOCS = Path(__file__).resolve().parents[1]

PAGES = {
    "chapters/activations": "functional.normal layers.activation",
    "chapters/adam": "optim",
    "chapters/attention": "functional.averaging functional.heads mixers.averaging",
    "chapters/block": "models.config models.encoder",
    "chapters/rotary": "mixers.general_attention models.config",
    "chapters/grouped_queries": "mixers.general_attention models.config",
    "chapters/window": "mixers.general_attention mixers.window_state models.config",
    "chapters/caches": "layers.state mixers.attention_state",
    "chapters/causal_fourier": "functional.causal_convolution functional.state_space"
    " mixers.long_convolution mixers.state_space",
    "chapters/chain_rule": "core.gradients core.layer layers.sequential",
    "chapters/cross_entropy": "functional.losses models.losses",
    "chapters/decoder": "models.transformer models.trainable.encoder_decoder",
    "chapters/embedding": "core.padding models.input_embedding",
    "chapters/finite_differences": "proof",
    "chapters/fourier": "functional.hartley functional.linear_mixing"
    " mixers.linear_mixing mixers.whole_sequence",
    "chapters/gates": "functional.gated layers.gated",
    "chapters/initialization": "core.initializers",
    "chapters/language_models": "models.next_token models.trainable.language_model",
    "chapters/linear": "functional.conv1d functional.sums layers.conv1d layers.time_distributed",
    "chapters/masked_tokens": "tasks.estimators.filling tasks.estimators.text_filler"
    " models.trainable.masked_language_model",
    "chapters/pooling": "models.sequence_model models.trainable.sequence_classifier",
    "chapters/synthesizers": "functional.dense_synthesizer functional.factorized_dense_synthesizer"
    " functional.factorized_random_synthesizer functional.mixture functional.random_synthesizer"
    " mixers.dense_synthesizer mixers.mixture mixers.random_synthesizer",
    "chapters/training": "loop training.fit training.history training.watchers",
    "questions/feed_forward": "layers.feed_forward",
    "mixers": "mixers",
    "training": "interop.word_vectors optim.layer_decay training.fit models.trainable.metrics",
    "your_data": "core.context data models.step training.callbacks training.evaluation"
    " training.storage models.trainable.prediction_file models.trainable.sequence_classifier",
    "resume": "core.generators training.fit training.own_loop",
    "your_file": "data.series data.tables tasks.wide"
    " tasks.estimators.classifier tasks.estimators.estimator"
    " tasks.estimators.scores tasks.estimators.series_classifier tasks.estimators.text_classifier",
    "writing": "interop.writers tasks.estimators.text_translator tasks.estimators.text_writer",
    "pretrained": "interop.architecture interop.families interop.family interop.from_pretrained"
    " interop.huggingface interop.pretrained interop.pretrained_encoder interop.save_pretrained"
    " interop.sentences interop.writers models.trainable.text_encoder",
    "onnx": "interop.onnx",
    "ranks": "training.distributed",
    "gpu": "core.arrays core.backend core.precision",
    "performance": "core.dispatch engine training.step_memory",
    "look_inside": "tasks.reports training.inspection",
    "museum": "learn.museum",
    "check_your_layer": "proof.gradcheck proof.report",
    "beyond_gradients": "proof.promises",
    "extending": "core.support.registry models.config",
    "extending/layer": "core.context core.layer core.parameters",
    "extending/loss": "models.losses",
    "extending/mixer": "mixers.averaging mixers.mixer",
    "extending/model": "training.fit models.trainable.model",
}
"""Page -> the modules, or folders of modules, that it is about."""


def pages_of(module: str) -> list[str]:
    """Return the pages about a module: a chapter of its name, then those about the least else."""
    short = module.removeprefix("npformer.")
    own = f"chapters/{short.rpartition('.')[2]}"
    found = {own: 0} if (DOCS / f"{own}.md").exists() else {}
    for page, all_of in PAGES.items():
        holding = [each for each in all_of.split() if f"{short}.".startswith(f"{each}.")]
        if holding and page not in found:
            found[page] = -max(map(len, holding))
    return sorted(found, key=lambda page: (page != own, found[page]))


def link_to(page: str) -> str:
    """Return a link to a page by its title: the search shows the text of links before they lead."""
    title = (DOCS / f"{page}.md").read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return f"{'chapter ' * page.startswith('chapters/')}:doc:`{title} </{page}>`"


def lead_on(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Say above the parameters of an entry which pages are about it, and where its lines are."""
    if what not in ("class", "exception", "function"):
        return
    module, _, last = name.rpartition(".")
    pair = last.removesuffix("_backward")
    if module.startswith("npformer.functional.") and pair in NAMES:
        found = [f"chapters/{each}" for each, names in chapters().items() if pair in names]
        links = [f":doc:`line by line </line_by_line/{pair}>`"]
    else:
        found, links = pages_of(module), []
    links = [link_to(page) for page in found] + links
    if links:
        k = next((k for k, line in enumerate(lines) if line.startswith((":", ".. "))), len(lines))
        lines[k:k] = ["", f"See: {', '.join(links)}.", ""]
