"""The pages of the reference, written from the package's tree each time the site is built."""

import inspect
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

import npformer
from docs.site.line_by_line import chapters
from tests.pairs import NAMES

ROOT = Path(__file__).resolve().parents[2]

ALL = None
LONGEST_VALUE = 60
PARTS: dict[str, tuple[str, str, dict[str, list[str] | None]]] = {
    "functional": (
        "The mathematics",
        "Every formula is a pair: ``y, cache = name(...)`` and ``name_backward(dy, cache)``.",
        {"functional": ALL},
    ),
    "layers": ("Layers", "The formulas, with their parameters.", {"layers": ALL}),
    "mixers": ("Mixers", "The only place where tokens see each other.", {"mixers": ALL}),
    "models": (
        "Models",
        "Configuration, block, encoder, and the models that users call.",
        {
            "models": [
                *("block", "config", "decoder", "encoder", "input_embedding", "next_token"),
                *("sequence_model", "step", "transformer", "wide_sequence_model"),
            ],
            "training/trainable": [
                *("model", "sequence_classifier", "language_model", "masked_language_model"),
                *("encoder_decoder", "text_encoder"),
            ],
        },
    ),
    "estimators": (
        "From samples to answers",
        "A model together with what turns texts, series or pairs into arrays.",
        {
            "tasks/estimators": [
                *("text_classifier", "series_classifier", "text_filler", "filling"),
                *("text_writer", "text_translator", "classifier", "estimator", "scores"),
            ],
        },
    ),
    "losses": (
        "Losses, Adam, schedules",
        "What training minimises, and how.",
        {"models": ["losses"], "optim": ALL},
    ),
    "training": (
        "Training and files",
        "``fit``, its callbacks, evaluation, and files.",
        {
            "training": [
                *("fit", "callbacks", "evaluation", "history", "watchers", "own_loop"),
            ],
            "training/trainable": ["metrics", "prediction_file"],
            "training/storage": ["models", "model_file"],
        },
    ),
    "inspection": (
        "Looking inside",
        "What a model does with one input, as tables and as a page.",
        {"training/inspection": ALL, "tasks/reports": ["report"]},
    ),
    "proof": (
        "Proof",
        "Backward passes checked against finite differences and the complex step.",
        {"proof": ["gradcheck", "central_difference", "complex_step", "rules", "report"]},
    ),
    "museum": (
        "Museum",
        "Bugs as layers, and the invariants that notice them.",
        {"learn/museum": ["bug", "invariants"]},
    ),
    "data": (
        "Data and weights",
        "Data sets, generated tasks, Hugging Face folders, ONNX files, and word vectors.",
        {
            "data": [
                *("dataset", "digits", "generated", "raw_data", "sentences", "series"),
                *("stored", "tables", "vowels"),
            ],
            "interop": [
                *("from_pretrained", "pretrained", "pretrained_encoder", "save_pretrained"),
                *("sentences", "architecture", "family", "families", "huggingface"),
                *("word_vectors", "writers"),
            ],
            "interop/onnx": ["export"],
        },
    ),
    "core": (
        "Core",
        "Arrays, parameters, gradients, and the protocol of a layer.",
        {
            "core": [
                *("layer", "context", "state", "parameters", "gradients", "initializers"),
                *("registry", "arrays", "backend", "padding", "part_generator", "precision"),
                "explained_errors",
            ]
        },
    ),
    "engine": (
        "Engine",
        "What makes the same model fast. Nothing here changes a result.",
        {"core": ["dispatch"], "engine": ["twins", "workspace"]},
    ),
}
"""Page -> title, summary, and its modules: for each folder the names of files, or all of them."""


def modules(parts: dict[str, list[str] | None]) -> list[str]:
    """Return the dotted names of a page's modules."""
    found = []
    for folder, names in parts.items():
        files = (ROOT / "npformer" / folder).glob("*.py")
        here = sorted(file.stem for file in files if file.stem != "__init__")
        found += [f"npformer.{folder.replace('/', '.')}.{name}" for name in (names or here)]
    return found


def write(app: Sphinx) -> None:
    """Write docs/reference/."""
    folder = Path(app.srcdir) / "reference"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for page, (title, text, parts) in PARTS.items():
        lines = [title, "=" * len(title), "", text, ""]
        for module in modules(parts):
            short = module.removeprefix("npformer.")
            lines += [short, "-" * len(short), "", f".. automodule:: {module}", ""]
        (folder / f"{page}.rst").write_text("\n".join(lines), "utf-8")
    (folder / "index.rst").write_text(_index(), "utf-8")


def _index() -> str:
    """Return the first page: what ``import npformer as nf`` offers."""
    documented = {module for _, _, parts in PARTS.values() for module in modules(parts)}
    rows = []
    for name in npformer.__all__:
        thing = getattr(npformer, name)
        module = getattr(thing, "__module__", "")
        if not callable(thing) or module not in documented:
            continue
        summary = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
        rows += [f"   * - :py:obj:`nf.{name} <{module}.{thing.__qualname__}>`", f"     - {summary}"]
    return "\n".join(
        [
            "Reference",
            "=========",
            "",
            "Written from the docstrings. ``[source]`` beside a name leads to its code.",
            "",
            ".. toctree::",
            "   :maxdepth: 1",
            "",
            *(f"   {page}" for page in PARTS),
            "",
            "What ``import npformer as nf`` offers",
            "-------------------------------------",
            "",
            ".. list-table::",
            "",
            *rows,
            "",
        ]
    )


def keep_formulas(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Make indented text below a paragraph a literal block, so that a formula keeps its lines.

    Of several names in a line, Sphinx would take the last as the name and the others as the type,
    and what stands before a colon in a constant's first line as its type.
    """
    several = re.compile(r"^\s*\w+(?:, \w+)+ : ")
    lines[:] = [
        line.replace(", ", ",\N{ZERO WIDTH SPACE}", line.partition(" : ")[0].count(", "))
        if several.match(line)
        else line
        for line in lines
    ]
    if what in ("attribute", "property", "data") and lines:
        lines[0] = re.sub(r": ", " \N{EN DASH} ", lines[0])
    for k in range(len(lines) - 3, -1, -1):
        line, between, following = lines[k : k + 3]
        indent = len(line) - len(line.lstrip())
        if not line.strip() or between.strip() or not following.startswith(" " * (indent + 4)):
            continue
        if line.endswith("::"):
            continue
        if line.endswith(":"):
            lines[k] += ":"
        else:
            lines[k + 1 : k + 1] = ["", " " * indent + "::"]


def lead_to_chapter(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Say below a formula or a layer which chapter derives it, and where its lines are."""
    module, _, last = name.rpartition(".")
    pair = last.removesuffix("_backward")
    if module.startswith("npformer.functional.") and pair in NAMES:
        found = [each for each, names in chapters().items() if pair in names]
        links = [f":doc:`line by line </line_by_line/{pair}>`"]
    elif what == "class" and module.startswith(("npformer.layers.", "npformer.optim.")):
        chapter = module.rpartition(".")[2]
        found = [chapter] * (ROOT / "docs" / "chapters" / f"{chapter}.md").exists()
        links = []
    else:
        return
    links = [f"chapter :doc:`/chapters/{each}`" for each in found] + links
    if links:
        lines += ["", f"See: {', '.join(links)}.", ""]


def drop_long_value(app: Sphinx, domain: str, kind: str, content: nodes.Element) -> None:
    """Show a constant's value only if it fits on a line; a table of builders says nothing here."""
    for signature in content.parent.findall(addnodes.desc_signature):
        for note in list(signature.findall(addnodes.desc_annotation)):
            if note.astext().startswith(" = ") and len(note.astext()) > LONGEST_VALUE:
                signature.remove(note)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them, and read docstrings before napoleon does."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", keep_formulas, priority=100)
    app.connect("autodoc-process-docstring", lead_to_chapter, priority=900)  # after napoleon
    app.connect("object-description-transform", drop_long_value)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
