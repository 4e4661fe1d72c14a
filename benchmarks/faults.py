"""Faults: those found by hand, each a test, and those that are drawn.

What is drawn is killed trainings, damaged files, wrong calls, interrupts, overlapping switches,
tables of real origin, and the seeds of Python's hashes. And what a checkpoint costs.
"""

import argparse
import json
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import npformer as nf
from benchmarks.results_files import COMMIT, RESULTS, ROOT, markdown, write
from npformer.tasks.sources.recipes import RECIPES
from tests.faults.hash_seeds import hash_seeds
from tests.faults.interrupts import interrupts
from tests.faults.kills import Fit, Train, kills
from tests.faults.mutated_files import mutated_files
from tests.faults.overlaps import overlaps
from tests.faults.real_files import real_files
from tests.faults.wrong_calls import wrong_calls

COST_RUNS = 10


PARTS = (
    "checkpoint_cost",
    "listed",
    "mutated_files",
    "wrong_calls",
    "kills",
    "interrupts",
    "overlaps",
    "real_files",
    "hash_seeds",
)

LISTED = {
    "one model, one answer": ["models/trainable/test_one_answer.py"],
    "the page removes nothing": ["learn/play/test_folder.py", "learn/play/test_runs.py"],
    "folders: used or refused": ["interop/test_from_pretrained.py", "interop/test_writers.py"],
    "tokenizers": ["data/tokenizers"],
    "tables, times, series": [
        "data/test_datasets.py",
        "data/test_tables.py",
        "data/test_series.py",
    ],
    "files of models": ["tasks/estimators/test_file.py"],
    "heads of folders": [
        "parity/test_pretrained_heads.py",
        "interop/test_refused_folders.py",
        "interop/test_padded_vocabulary.py",
    ],
    "one seed, one result": [
        "tasks/estimators/test_one_seed.py",
        "cli/test_drawn.py",
        "training/storage/test_drawn.py",
    ],
    "nothing is overwritten": ["faults/test_overwriting.py"],
    "threads, signals, forks": [
        "engine/test_blas.py",
        "engine/test_threads.py",
        "core/test_waiting_signals.py",
        "kernels/test_switch.py",
    ],
    "strangers at the page": ["learn/play/test_strangers.py"],
    "numbers in their tails": [
        "functional/test_activations.py",
        "functional/test_losses.py",
        "functional/test_state_space.py",
        "training/test_weights.py",
    ],
    "every option beside PyTorch": ["parity/test_functional.py", "parity/test_options.py"],
    "habits of other libraries, small ones": ["test_habits.py", "test_bad_input.py"],
}
"""Tests of the faults that were found by hand, by their kind."""


def run(words):
    """Run the requested parts, and write one table with the latest results of each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks faults", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="run this part; the table keeps the others")
    parser.add_argument("--kills", type=int, default=500, help="half of fit, half of the program")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=3_000)
    parser.add_argument("--interrupts", type=int, default=600)
    parser.add_argument("--switches", type=int, default=3_000, help="entered and left")
    parser.add_argument("--tables", type=int, default=6_000, help="of real origin, rebuilt")
    parser.add_argument("--seed", type=int, help="of what is drawn (a new one, which is printed)")
    parser.add_argument("--at-once", type=int, default=2, help="trainings killed side by side")
    parser.add_argument("--processes", type=int, default=8, help="with other hashes")
    chosen = parser.parse_args(words)
    seed = secrets.randbelow(1 << 31) if chosen.seed is None else chosen.seed
    measure = {
        "checkpoint_cost": checkpoint_cost,
        "listed": listed,
        "mutated_files": lambda: mutated_files(chosen.files, seed),
        "wrong_calls": lambda: wrong_calls(chosen.calls, seed),
        "kills": lambda: many_kills(chosen.kills, seed, chosen.at_once),
        "interrupts": lambda: interrupts(chosen.interrupts, seed),
        "overlaps": lambda: overlaps(chosen.switches, seed),
        "real_files": lambda: real_files(chosen.tables, seed),
        "hash_seeds": lambda: hash_seeds(chosen.processes, seed),
    }
    earlier = RESULTS / "faults.json"
    figures = json.loads(earlier.read_text())["figures"] if earlier.exists() else {}
    for part in [chosen.only] if chosen.only else PARTS:
        figures[part] = {**measure[part](), "commit": COMMIT, "seed": seed}
        print(part, figures[part], flush=True)
    earlier.write_text(json.dumps({"figures": figures}))  # until all parts are done
    if set(figures) == set(PARTS):
        write("faults", figures, table(figures))


def listed():
    """Run the tests of the faults that were found by hand; return how many passed and failed."""
    found = {}
    for kind, files in LISTED.items():
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        command += [f"tests/{file}" for file in files]
        made = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        counts = {
            word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", made.stdout)
        }
        if not counts.get("passed"):
            raise SystemExit(f"no test ran:\n{made.stdout}{made.stderr}")
        found[kind] = {
            "tried": sum(counts.values()),
            "failed": sum(counts.values()) - counts["passed"],
        }
    return found


def many_kills(n, seed, at_once):
    """Kill trainings of both kinds, several at a time; return the totals of what happened."""
    found = {}
    for victim in (Fit, Train):
        shares = [n // 2 // at_once + (k < n // 2 % at_once) for k in range(at_once)]
        with ThreadPoolExecutor(at_once) as pool:
            seeds = range(seed, seed + at_once)
            parts = list(pool.map(kills, shares, seeds, [victim() for _ in shares]))
        names = sorted({name for part in parts for name in part} - {"problems"})
        found[victim.name] = {name: sum(part.get(name, 0) for part in parts) for name in names}
        found[victim.name]["problems"] = [each for part in parts for each in part["problems"]]
    return found


def checkpoint_cost():
    """Return the time of a digits run with a checkpoint every epoch, divided by that without."""
    recipe = RECIPES["digits"]
    dataset = recipe.load("stratified", 0)

    def seconds(folder):
        model, options = recipe.model(dataset), {"epochs": 10, "progress": False}
        began = time.perf_counter()
        validation = dataset.validation
        nf.fit(model, dataset.train, validation=validation, checkpoint=folder, **options)
        return time.perf_counter() - began

    ratios = []
    for k in range(COST_RUNS):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            pair = [lambda: seconds(None), lambda folder=folder: seconds(folder)]
            times = [each() for each in (pair if k % 2 else reversed(pair))]
            without, with_ = times if k % 2 else reversed(times)
        ratios.append(with_ / without)
    return {"median": statistics.median(ratios), "ratios": ratios}


def table(figures):
    """Return what was tried and what failed, one row each."""
    kills_, files, calls = (figures[name] for name in ("kills", "mutated_files", "wrong_calls"))
    rows, by_hand = [], figures["listed"]
    for kind in LISTED:
        found = by_hand[kind]
        rows.append((kind, found["tried"], found["failed"], "found by hand", by_hand["commit"]))
    for victim in (Fit, Train):
        found = kills_[victim.name]
        detail = f"{found['lost']} lost, {found['different']} not equal bit for bit"
        said = f"{found['runs']} trainings continued to their end: {detail}"
        rows.append(
            (
                f"kills of `{victim.name}`",
                found["kills"],
                found["lost"] + found["different"],
                said,
                kills_["commit"],
            )
        )
    said = (
        f"{files['refused']} refused in words, {files['consistent lies']} loaded as they say; at "
        f"most {files['largest peak in MB']:.1f} MB, {files['longest wait in ms'] / 1e3:.1f} s a "
        "file"
    )
    rows.append(("mutated files", files["tried"], files["failed"], said, files["commit"]))
    failed = calls["raw"] + calls["silent"] + calls["hang"]
    said = f"{calls['words']} refused in words, {calls['right']} right"
    rows.append(("wrong calls", calls["calls"], failed, said, calls["commit"]))
    rows += [interrupts_row(figures["interrupts"]), overlaps_row(figures["overlaps"])]
    rows += [real_files_row(figures["real_files"]), hash_seeds_row(figures["hash_seeds"])]
    cost = figures["checkpoint_cost"]
    drawn = [figures[name] for name in PARTS if name not in ("checkpoint_cost", "listed")]
    ratios = cost["ratios"]
    return (
        f"{markdown(('what', 'tried', 'failed', '', 'commit'), rows, left=5)}\n\n"
        f"Seeds: {', '.join(str(each.get('seed', 0)) for each in drawn)}.\n\n"
        f"A digits run with a checkpoint every epoch takes {cost['median']:.3f} of the time of "
        f"one without (median of {len(ratios)} interleaved pairs, from {min(ratios):.3f} to "
        f"{max(ratios):.3f}; commit {cost['commit']})."
    )


def interrupts_row(figures):
    """Return the row of calls that were interrupted, and then made again."""
    failed = sum(figures[how] for how in ("raw", "silent", "lost", "hang"))
    words = (
        f"{figures['running']} came while the call ran; {figures['raw']} later calls raw, "
        f"{figures['silent']} with other bits, {figures['lost']} other threads of BLAS"
    )
    return "interrupts", figures["interrupts"], failed, words, figures["commit"]


def overlaps_row(figures):
    """Return the row of switches that three threads enter and leave in a drawn order."""
    words = "each thread has what it asked for, and predicts with it"
    return "overlapping switches", figures["steps"], figures["silent"], words, figures["commit"]


def real_files_row(figures):
    """Return the row of tables of real origin."""
    failed = figures["silent"] + figures["raw"]
    words = f"{figures['right']} read, {figures['words']} refused in words"
    return "tables of real origin", figures["tried"], failed, words, figures["commit"]


def hash_seeds_row(figures):
    """Return the row of trainings in processes with other hashes."""
    words = "trained and resumed with other seeds of Python's hashes, equal bit for bit"
    return "other hashes", figures["trainings"], figures["silent"], words, figures["commit"]
