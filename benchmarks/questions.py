"""The runs behind docs/questions/: each part takes some minutes on one core."""

import argparse
import importlib.util
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from benchmarks import questions_causal as in_a_gpt
from benchmarks import questions_depth as depth
from benchmarks import questions_time as times
from benchmarks import questions_training as training
from benchmarks.results_files import RESULTS, machine, show, source_of


@dataclass(frozen=True)
class Part:
    """A run, and the tables that are made of its figures, by the name of their place in a page."""

    about: str
    run: Callable[[Callable[[Any], None]], Any]
    tables: dict[str, Callable[[Any], str]]
    torch: bool = False


FILE = RESULTS / "questions.json"

PARTS = {
    "layouts": Part(
        "a linear map with features last and first",
        times.layouts,
        {"questions layouts": times.layouts_table},
        torch=True,
    ),
    "ablation": Part(
        "all tasks, three mixers, with and without a feed-forward network",
        training.ablation,
        {"questions ablation": training.ablation_table, "questions mixers": training.mixers_table},
    ),
    "collapse": Part(
        "how fast tokens become equal over depth",
        depth.collapse,
        {"questions collapse": depth.collapse_table},
    ),
    "memories": Part(
        "which rows of digits activate hidden units most",
        training.memories,
        {"questions memories": training.memories_table},
    ),
    "recall": Part(
        "looking up values of few and of many keys",
        training.recall,
        {"questions recall": training.recall_table},
    ),
    "steps": Part(
        "the time of a training step with three mixers",
        times.steps,
        {"questions steps": times.steps_table},
    ),
    "causal": Part(
        "Fourier mixing, causal mixers and causal attention on two tasks",
        in_a_gpt.causal,
        {"questions causal": in_a_gpt.causal_table},
    ),
}


def run(words):
    """Run the parts that are asked for; write their figures, tables and pictures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks questions",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:<10} {part.about}" for name, part in PARTS.items()),
    )
    parser.add_argument("--only", default="", help="parts below, separated by commas")
    parser.add_argument(
        "--show", action="store_true", help="run nothing; write tables and pictures again"
    )
    options = parser.parse_args(words)
    chosen = options.only.split(",") if options.only else list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; expected some of {', '.join(PARTS)}")
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1" and not options.show:
        parser.error("set OPENBLAS_NUM_THREADS=1 before: everything here is timed on one core")
    for name in [] if options.show else chosen:
        began = time.perf_counter()
        found = PARTS[name].run(lambda figure: print(figure, flush=True))
        on = machine()
        if PARTS[name].torch and importlib.util.find_spec("torch"):
            on["torch"] = version("torch")
        minutes = round((time.perf_counter() - began) / 60, 1)
        figures = measured()  # again, for another process may have written its part meanwhile
        figures[name] = {"machine": on, "minutes": minutes, "figures": found}
        FILE.write_text(json.dumps(figures, indent=1) + "\n")
    write(measured())


def measured():
    """Return what the results hold, by part."""
    return json.loads(FILE.read_text()) if FILE.is_file() else {}


def write(figures):
    """Write all tables, into the results and into the pages that have a place for them."""
    texts = {
        block: f"{table(figures[name]['figures'])}\n\n{_source(name, figures[name])}\n"
        for name, part in PARTS.items()
        if name in figures
        for block, table in part.tables.items()
    }
    (RESULTS / "questions.md").write_text("\n".join(texts.values()))
    for block, text in texts.items():
        show(block, text)
    try:
        from docs.site import pictures
    except ImportError as error:
        print(f"no pictures: {error}")
    else:
        pictures.main(["questions"])


def _source(name, entry):
    return source_of(f"questions --only {name}", entry["machine"])
