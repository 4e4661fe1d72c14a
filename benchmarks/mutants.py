"""Change the package in one small place, run the tests that reach it: does one fail?

A change that no test notices (a survivor) either shows a number, an option or a check that could
silently become wrong, or it changes nothing that matters. Somebody has to read it: verdicts are in
`benchmarks/mutants_read.toml`, and the table shows them.

The tests of a change are those that run the changed statement; if none does (constants, code that
only another process runs), those that run its function, or else any of its file. Fast ones first.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import coverage

from benchmarks.mutations import Mutation, sample
from benchmarks.results_files import ROOT, write

READ = ROOT / "benchmarks" / "mutants_read.toml"
VERDICTS = ("equivalent", "speed only", "message only", "gap", "noticed elsewhere")

IGNORED = ("test_house.py", "test_imports.py", "docs/test_documents.py", "test_import_time.py")
"""Tests of the form of the source, which fail for meaningless changes."""

ANY = ("-m", "")
"""For pytest: also tests that do not run by default."""


def run(arguments):
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="changes to try (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--processes", type=int, default=2, help="changes to try at a time (2)")
    parser.add_argument("--minutes", type=float, default=60, help="start no change after this (60)")
    work = Path(tempfile.gettempdir()) / "npformer-mutants"
    parser.add_argument("--work", type=Path, default=work, help=f"what is known so far ({work})")
    parser.add_argument("--tests", choices=["all", "default"], default="all", help="to run (all)")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    work = options.work / f"{_digest()}-{options.tests}"
    trees = [_copy(work / f"tree-{k}") for k in range(options.processes)]
    tests = Tests(trees, work, ANY if options.tests == "all" else ())
    print(f"{len(tests.seconds)} tests, {time.monotonic() - began:.0f} s", flush=True)
    results = {}

    def judge(numbered):
        k, (mutation, source) = numbered
        if time.monotonic() - began < 60 * options.minutes:
            tree = free.pop()
            try:
                results[mutation] = found = _try(tree, mutation, source, tests, work)
            finally:
                free.append(tree)
            print(
                f"{k + 1:3} {found['result']:<9} {found['seconds']:4.0f} s  {mutation.name[:120]}",
                flush=True,
            )

    free = list(trees)
    with ThreadPoolExecutor(options.processes) as pool:
        chosen = sample(trees[0], options.sample, options.seed)
        list(pool.map(judge, enumerate(chosen)))
    chosen = [mutation for mutation, _ in chosen]
    _report(chosen, results, options, time.monotonic() - began)


# Copies of the tree -----------------------------------------------------------------------------


def _digest():
    """Return a short name for the state of the package and its tests."""
    sha = hashlib.sha256()
    for path in sorted([*ROOT.glob("npformer/**/*"), *ROOT.glob("tests/**/*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            sha.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return sha.hexdigest()[:12]


def _copy(tree):
    """Copy the repository's files, as git lists them, to try changes in the copy."""
    shutil.rmtree(tree, ignore_errors=True)
    listed = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split(
        "\0"
    ):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    return tree


def _pytest(tree, wishes, *options, with_coverage=(), limit=3600.0):
    """Run tests in a copy; return the exit status (None if time ran out) and the output."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(wishes, file)
        file.flush()
        environment = os.environ | {"PYTHONPATH": str(tree), "NPFORMER_MUTANTS": file.name}
        command = [sys.executable, *with_coverage, "-m", "pytest", "-q"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "benchmarks.mutants_plugin"]
        process = subprocess.Popen(
            [*command, *options],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:  # also processes that tests have started
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, printed


# Which tests ------------------------------------------------------------------------------------


class Tests:
    """Which tests run which lines, and how long each takes."""

    def __init__(self, trees, work, which):
        data, notes = work / "coverage", work / "tests.json"
        if not notes.exists():
            self._record(trees, work, data, notes, which)
        self.data = coverage.CoverageData(str(data))
        self.data.read()
        self.tree = Path(json.loads(notes.read_text())["tree"])
        self.seconds = json.loads(notes.read_text())["seconds"]
        for tree in trees:  # otherwise every change would seem to be noticed
            fast = sorted(self.seconds, key=self.seconds.get)[:100]
            status, printed = _pytest(tree, {"only": fast}, *ANY, *_files(fast))
            if status != 0:
                raise SystemExit(f"tests fail without a change:\n{printed}")

    def _record(self, trees, work, data, notes, which):
        """Run the tests once in the first tree, each process a part of them."""
        print("running the tests once, to see what each of them runs", flush=True)
        ignored = [f"--ignore=tests/{name}" for name in IGNORED]

        def part(k):
            wishes = {"shard": [k, len(trees)], "record": str(work / f"part-{k}.json")}
            coverage = ["-m", "coverage", "run", "--source", "npformer"]
            coverage += ["--data-file", str(work / f"coverage.{k}")]
            return _pytest(trees[0], wishes, *ignored, *which, with_coverage=coverage)

        with ThreadPoolExecutor(len(trees)) as pool:
            printed = list(pool.map(part, range(len(trees))))
        found = {}
        for k in range(len(trees)):
            found |= json.loads((work / f"part-{k}.json").read_text())
        for status, text in printed:
            print(text.strip().splitlines()[-1], f"(status {status})", flush=True)
        both = coverage.Coverage(data_file=str(data))
        both.combine([str(work / f"coverage.{k}") for k in range(len(trees))])
        both.save()
        seconds = {name: test["seconds"] for name, test in found.items() if test["passed"]}
        notes.write_text(json.dumps({"tree": str(trees[0]), "seconds": seconds}))

    def of(self, mutation):
        """Return the tests that may notice a change, fast ones first, and how they were chosen."""
        by_line = self.data.contexts_by_lineno(str(self.tree / mutation.file))
        ways = {
            "statement": mutation.lines,
            "function": mutation.of_function,
            "file": by_line,
        }
        for why, lines in ways.items():
            found = {test for line in lines for test in by_line.get(line, ())} & set(self.seconds)
            if found:
                return sorted(found, key=self.seconds.get), why
        return [], "none"


def _files(tests):
    """Return the files of some tests."""
    return sorted({name.partition("::")[0] for name in tests})


# One change -------------------------------------------------------------------------------------


def _result(status):
    """Return what became of a change, by the exit status of its tests."""
    if status is None:
        return "time out"
    return "survived" if status == 0 else "killed"


def _try(tree, mutation: Mutation, source, tests, work):
    """Return the tests' result for a change; results are kept for the next run."""
    kept = work / f"{hashlib.sha256(mutation.name.encode()).hexdigest()[:16]}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    chosen, why = tests.of(mutation)
    file = tree / mutation.file
    before = file.read_text("utf-8")
    cached = Path(importlib.util.cache_from_source(str(file)))
    seconds = sum(tests.seconds[name] for name in chosen)
    began, status, printed = time.monotonic(), 0, ""
    try:
        file.write_text(source, "utf-8")
        cached.unlink(missing_ok=True)
        if chosen:
            limit = 60.0 + 4.0 * seconds
            status, printed = _pytest(
                tree, {"only": chosen}, "-x", *ANY, *_files(chosen), limit=limit
            )
    finally:
        file.write_text(before, "utf-8")
        cached.unlink(missing_ok=True)
    if status == 5:
        raise SystemExit(f"pytest found none of {len(chosen)} tests:\n{printed}")
    by = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
    found = {
        "result": _result(status) if chosen else "no test",
        "tests": len(chosen),
        "chosen by": why,
        "seconds": time.monotonic() - began,
        "noticed by": by[0][:200] if by else "",
    }
    kept.write_text(json.dumps(found))
    return found


# The table --------------------------------------------------------------------------------------


def _verdicts():
    """Return the verdicts on survivors: {name of the change: (verdict, why)}."""
    if not READ.exists():
        return {}
    found = {}
    for entry in tomllib.loads(READ.read_text("utf-8")).get("read", []):
        if entry["verdict"] not in VERDICTS:
            raise SystemExit(f"{READ.name}: {entry['verdict']!r}; expected one of {VERDICTS}")
        found[entry["change"]] = entry["verdict"], entry["why"]
    return found


def _report(chosen, results, options, seconds):
    verdicts = _verdicts()
    unread = ("not read", "")
    survivors = [
        m for m in chosen if m in results and results[m]["result"] in ("survived", "no test")
    ]
    survivors.sort(
        key=lambda m: ((*VERDICTS, "not read").index(verdicts.get(m.name, unread)[0]), m.name)
    )
    counts = {
        word: sum(found["result"] == word for found in results.values())
        for word in ("killed", "time out", "survived", "no test")
    }
    counted = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    lines = [
        f"{len(results)} of a sample of {len(chosen)} changes (seed {options.seed}): {counted}. "
        f"{seconds / 60:.0f} minutes with {options.processes} processes.",
        "",
    ]
    if survivors:
        lines += ["| survivor | line | change | tests | verdict |", "|---|---:|---|---:|---|"]
    for m in survivors:
        verdict, why = verdicts.get(m.name, unread)
        change = f"`{m.was}` → `{m.now}`".replace("|", "\\|")
        place = f"{m.file.removeprefix('npformer/')}, {m.function or 'module'}"
        said = f"{verdict}: {why}" if why else verdict
        lines.append(f"| {place} | {m.lines.start} | {change} | {results[m]['tests']} | {said} |")
    figures = [
        {
            "change": m.name,
            "line": m.lines.start,
            **results[m],
            "verdict": verdicts.get(m.name, unread)[0],
        }
        for m in chosen
        if m in results
    ]
    write("mutants", figures, "\n".join(lines).rstrip(), sample=options.sample, seed=options.seed)
