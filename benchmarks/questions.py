"""The runs behind docs/questions/: each part takes at most a few minutes on one core."""

import argparse
import importlib.util
import json
import os
import time
from functools import partial
from importlib.metadata import version

from benchmarks import questions_depth as depth
from benchmarks import questions_fourier as fourier
from benchmarks import questions_gpt as gpts
from benchmarks import questions_time as times
from benchmarks import questions_training as training
from benchmarks.jobs import wanted
from benchmarks.results_files import RESULTS, machine, show, source_of
from npformer.tasks.sources.recipes import RECIPES

FILE = RESULTS / "questions.json"

PARTS = {
    "layouts": times.layouts,
    **{f"ablation {task}": partial(training.ablation, task) for task in RECIPES},
    "collapse": depth.collapse,
    "memories": training.memories,
    "lookup": training.lookup,
    "steps": times.steps,
    **{f"causal {model}": partial(gpts.causal, model) for model in gpts.CAUSAL_MODELS},
    **{f"gpt {model}": partial(gpts.gpt, model) for model in gpts.MODELS},
    "costs": gpts.costs,
    **{f"fourier {task}": partial(fourier.settings, task) for task in fourier.OF_TASK},
}
"""The parts to run. Parts with the same first word make one table."""

ABOUT = {
    "layouts": "a linear map with features last and first",
    "ablation": "all tasks, three mixers, with and without a feed-forward network",
    "collapse": "how fast tokens become equal with depth",
    "memories": "which rows of digits activate hidden units most",
    "lookup": "looking up the values of few and of many keys",
    "steps": "the time of a training step with three mixers",
    "causal": "Fourier mixing, causal mixers and causal attention on two tasks",
    "gpt": "mixers that do not look ahead, on three tasks and on plays",
    "costs": "their times for a step and for a token, and the bytes of their states",
    "fourier": "Fourier mixing and attention, one setting changed at a time",
}

TABLES = {
    "questions layouts": times.layouts_table,
    "questions ablation": training.ablation_table,
    "questions ablation mixers": training.mixers_table,
    "questions collapse": depth.collapse_table,
    "questions memories": training.memories_table,
    "questions lookup": training.lookup_table,
    "questions steps": times.steps_table,
    "questions causal": gpts.causal_table,
    "questions gpt": gpts.gpt_table,
    "questions costs": gpts.costs_table,
    "questions fourier": fourier.settings_table,
}
"""The functions that make tables from figures, by the name of the table's place in a page."""


def run(words):
    """Run the requested parts; write their figures, tables and pictures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks questions",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:<10} {about}" for name, about in ABOUT.items()),
    )
    parser.add_argument(
        "--only", default="", help="parts below, separated by commas; ablation+parity is one task"
    )
    parser.add_argument(
        "--show", action="store_true", help="run nothing; write tables and pictures again"
    )
    options = parser.parse_args(words)
    chosen = [name for name in PARTS if wanted(name, options.only)]
    if not chosen:
        parser.error(f"no part {options.only!r}; expected some of {', '.join(PARTS)}")
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1" and not options.show:
        parser.error("set OPENBLAS_NUM_THREADS=1 first: everything here is timed on one core")
    for name in [] if options.show else chosen:
        began = time.perf_counter()
        found = PARTS[name](lambda figure: print(figure, flush=True))
        on = machine()
        if name == "layouts" and importlib.util.find_spec("torch"):
            on["torch"] = version("torch")
        minutes = round((time.perf_counter() - began) / 60, 1)
        figures = measured()  # read now: another process may have written its part meanwhile
        figures[name] = {"machine": on, "minutes": minutes, "figures": found}
        in_order = {part: figures[part] for part in PARTS if part in figures}
        FILE.write_text(json.dumps(in_order, indent=1) + "\n")
    write(measured())


def measured():
    """Return the stored results, by part."""
    return json.loads(FILE.read_text()) if FILE.is_file() else {}


def together(figures):
    """Return the figures of all parts with the same first word, if none is missing."""
    missing = {name.split()[0] for name in PARTS if name not in figures}
    found = {}
    for name, part in figures.items():
        word = name.split()[0]
        if word not in missing and word in found:
            found[word] = found[word] + part["figures"]
        elif word not in missing:
            found[word] = part["figures"]
    return found


def write(figures):
    """Write all tables to the results and to the pages that have a place for them."""
    on = {name.split()[0]: part["machine"] for name, part in figures.items()}
    found = together(figures)
    texts = {}
    for block, table in TABLES.items():
        word = block.split()[1]
        if word in found:
            source = source_of(f"questions --only {word}", on[word])
            texts[block] = f"{table(found[word])}\n\n{source}\n"
    (RESULTS / "questions.md").write_text("\n".join(texts.values()))
    for block, text in texts.items():
        show(block, text)
    try:
        from docs.site import pictures
    except ImportError as error:
        print(f"no pictures: {error}")
    else:
        if {"collapse", "memories", "fourier"} <= set(found):
            pictures.main(["questions"])
