"""The pages of the reference, written from the package's tree each time the site is built."""

import inspect
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import npformer
from docs.site.leads import pages_of
from npformer.core import Registry

ROOT = Path(__file__).resolve().parents[2]
LINKED = re.compile(r"\]\([./]*(npformer/[\w/]+)\.py\b")

ALL = None
PARTS: dict[str, tuple[str, str, dict[str, list[str] | None]]] = {
    "functional": (
        "The mathematics",
        "Every formula is a pair: ``y, cache = name(...)`` and ``name_backward(dy, cache)``.",
        {"functional": ALL},
    ),
    "layers": ("Layers", "The formulas, with their parameters.", {"layers": ALL}),
    "mixers": (
        "Mixers",
        "The only place where tokens see each other.\n\n.. autodata:: npformer.mixers.MIXERS",
        {"mixers": ALL},
    ),
    "models": (
        "Models",
        "Configuration, block, encoder, and the models that users call.",
        {
            "models": [
                "block",
                "config",
                "decoder",
                "encoder",
                "input_embedding",
                "next_token",
                "sequence_model",
                "step",
                "transformer",
            ],
            "models/trainable": [
                "model",
                "sequence_classifier",
                "language_model",
                "masked_language_model",
                "encoder_decoder",
                "text_encoder",
            ],
        },
    ),
    "estimators": (
        "From samples to answers",
        "A model together with what turns texts, series or pairs into arrays.",
        {
            "tasks/estimators": [
                "text_classifier",
                "series_classifier",
                "text_filler",
                "filling",
                "text_writer",
                "text_translator",
                "classifier",
                "estimator",
                "scores",
            ],
            "tasks/wide": ["bag", "layer", "loss", "model"],
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
            "": ["loop"],
            "training": [
                "fit",
                "callbacks",
                "evaluation",
                "history",
                "watchers",
                "own_loop",
            ],
            "models/trainable": ["metrics", "prediction_file"],
            "training/storage": ["models", "model_file"],
        },
    ),
    "inspection": (
        "Looking inside",
        "What a model does with one input, as tables and as a page.",
        {"training/inspection": ALL, "training": ["step_memory"], "tasks/reports": ["report"]},
    ),
    "proof": (
        "Proof",
        "Backward passes checked against finite differences and the complex step; optimizers,"
        " dropout and masks by what they promise.",
        {
            "proof": ["gradcheck", "central_difference", "complex_step", "rules", "report"],
            "proof/promises": [
                "optimcheck",
                "schedulecheck",
                "optimizer_report",
                "dropoutcheck",
                "maskcheck",
                "evaluationcheck",
                "promise",
                "applicable",
            ],
        },
    ),
    "museum": (
        "Museum",
        "Bugs as layers, and the invariants that notice them.",
        {"learn/museum": ["bug", "invariants", "invariants_of_training", "invariants_of_writers"]},
    ),
    "data": (
        "Data and weights",
        "Data sets, generated tasks, Hugging Face folders, ONNX files, and word vectors.",
        {
            "data": [
                "dataset",
                "digits",
                "generated",
                "masking",
                "pairs",
                "raw_data",
                "sentences",
                "series",
                "stored",
                "tables",
                "vowels",
            ],
            "interop": [
                "from_pretrained",
                "pretrained",
                "pretrained_encoder",
                "save_pretrained",
                "sentences",
                "architecture",
                "family",
                "families",
                "huggingface",
                "word_vectors",
                "writers",
            ],
            "interop/onnx": ["export"],
        },
    ),
    "core": (
        "Core",
        "Arrays, parameters, gradients, and the protocol of a layer.",
        {
            "core": [
                "layer",
                "context",
                "parameters",
                "gradients",
                "initializers",
                "arrays",
                "backend",
                "padding",
                "generators",
                "precision",
                "out_of_memory",
            ],
            "core/support": ["registry"],
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
        package = ".".join(["npformer", *folder.split("/")]).rstrip(".")
        found += [f"{package}.{name}" for name in (names or here)]
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
    rows = []
    for name in npformer.__all__:
        if (place := _place(name)) is None:
            continue
        summary = (inspect.getdoc(getattr(npformer, name)) or "").partition("\n\n")[0]
        if isinstance(getattr(npformer, name), Registry):  # whose docstring is that of all tables
            summary = f"The table of {name.lower()}, by name."
        rows += [f"   * - {place}", f"     - {' '.join(summary.split())}"]
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


def _place(name: str) -> str | None:
    """Return a link to what is called nf.NAME: an entry, a page, or a guide."""
    thing = getattr(npformer, name)
    pages = {module: page for page, (_, _, parts) in PARTS.items() for module in modules(parts)}
    if inspect.ismodule(thing):
        inside = f"{thing.__name__}."
        page = next((page for module, page in pages.items() if f"{module}.".startswith(inside)), "")
        return f":doc:`nf.{name} <{page or f'/{pages_of(thing.__name__)[0]}'}>`"
    if isinstance(thing, Registry):
        return f":py:obj:`nf.{name} <npformer.{name.lower()}.{name}>`"
    if getattr(thing, "__module__", "") in pages:
        return f":py:obj:`nf.{name} <{thing.__module__}.{thing.__qualname__}>`"
    return None


def add_sources(app: Sphinx, env: Any) -> None:
    """Let viewcode show each file to which a page leads, also those that are not described here."""
    if not hasattr(env, "_viewcode_modules"):
        env._viewcode_modules = {}
    shown = env._viewcode_modules
    for page in (ROOT / "docs").rglob("*.md"):
        for file in LINKED.findall(page.read_text("utf-8")):
            module = file.replace("/", ".").removesuffix(".__init__")
            _, described, *_ = shown.get(module) or ("", {})
            if not described:
                shown[module] = ((ROOT / f"{file}.py").read_text("utf-8"), {}, {}, module)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", write)
    app.connect("env-updated", add_sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
