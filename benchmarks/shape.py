"""The package's shape: modules at import, the way from `fit` to Adam's update, lines by room."""

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import time
import tokenize
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np

import npformer as nf
from benchmarks.results_files import COMMIT, RESULTS, ROOT, markdown, write

PACKAGE = Path(nf.__file__).parent
FILE = RESULTS / "shape.json"

ROOMS = (
    "core",
    "functional",
    "layers",
    "mixers",
    "models",
    "optim",
    "proof",
    "data",
    "engine",
    "training",
    "interop",
    "tasks",
    "learn",
    "cli",
)
"""From the ground up: a file calls into rooms below its own."""

MODULES = "modules loaded by `import npformer`"
WAYS = {"kernels off": True, "default": False}
MOST = {
    MODULES: 120,
    "kernels off: files": 50,
    "kernels off: lines": 600,
    "kernels off: engine files": 0,
    "kernels off: upward hops": 10,
    "default: files": 65,
    "default: lines": 1110,
}
"""What `--check` allows."""

NOT_CODE = {
    getattr(tokenize, name)
    for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")
}


def lines_of_code(file: Path) -> int:
    """Return how many lines of code a file has: no docstrings, comments, imports, blank lines."""
    text = file.read_text("utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        string = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if string or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - left_out)


def lines_by_room(package=PACKAGE):
    """Return {room: lines of code} of a package's folders and files."""
    found = Counter()
    for file in sorted(package.rglob("*.py")):
        found[file.relative_to(package).with_suffix("").parts[0]] += lines_of_code(file)
    return dict(found)


def run_by(call, package=PACKAGE, until=None):
    """Return what of a package a call runs: {(file, line)}, and its calls {(caller, callee)}.

    Caller and callee are files; what lies between them outside the package is passed over. With
    `until`, a function, nothing counts after it has returned.
    """
    root, lines, calls = f"{package}{os.sep}", set(), set()

    def own(frame):
        name = frame.f_code.co_filename
        return Path(name.removeprefix(root)).as_posix() if name.startswith(root) else None

    def trace(frame, event, _):
        if (file := own(frame)) is None:
            return None
        if event == "line":
            lines.add((file, frame.f_lineno))
        elif event == "call":
            caller = frame.f_back
            while caller is not None and own(caller) is None:
                caller = caller.f_back
            if caller is not None:
                calls.add((own(caller), file))
        elif event == "return" and until and frame.f_code is until.__code__:
            sys.settrace(None)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines, calls


def upward(calls, rooms=ROOMS):
    """Return the calls from a room into a higher one; what is in no room is above them all."""
    return {pair for pair in calls if height(pair[0], rooms) < height(pair[1], rooms)}


def height(file, rooms=ROOMS):
    """Return which room a file is in, counted from the ground."""
    room = file.removesuffix(".py").partition("/")[0]
    return rooms.index(room) if room in rooms else len(rooms)


def way(plain):
    """Return what `fit` runs until Adam's update, of two layers; imports come before."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((8, 6, 4), dtype=np.float32), rng.integers(0, 3, 8)
    config = nf.EncoderConfig(d_model=16, n_layers=2, n_heads=2, d_ff=32, max_len=6)

    def fit(model):
        nf.fit(model, (x, y), epochs=1, batch_size=8, seed=0, progress=False)

    options = {"n_classes": 3, "n_features": 4, "pooling": "mean", "seed": 0}
    with nf.use_kernels(False) if plain else nullcontext():
        fit(nf.SequenceClassifier(config, **options))
        model = nf.SequenceClassifier(config, **options)
        return run_by(lambda: fit(model), until=nf.Adam.step)


def modules():
    """Return how many of its own modules `import npformer` loads."""
    script = "import npformer, sys; print(sum(m.split('.')[0] == 'npformer' for m in sys.modules))"
    command = [sys.executable, "-c", script]
    return int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)


def seconds_of_tests():
    """Run the tests as README's second command does, and return how long they take."""
    readme = (ROOT / "README.md").read_text("utf-8")
    command = re.findall(r"^python -m pip install .*&& (.*pytest.*)$", readme, re.MULTILINE)[0]
    began = time.perf_counter()
    subprocess.run([sys.executable, *command.split()[1:]], cwd=ROOT, check=True)
    return {"command": command, "seconds": round(time.perf_counter() - began), "commit": COMMIT}


def run(words):
    """Print the shape, and write it if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shape", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if there is too much")
    parser.add_argument("--tests", action="store_true", help="run the tests, and write their time")
    parser.add_argument("--write", action="store_true", help="write the results")
    parser.add_argument("--list", action="store_true", help="print the files and the upward hops")
    chosen = parser.parse_args(words)
    figures = {"counts": {MODULES: modules()}, "rooms": lines_by_room()}
    for name, plain in WAYS.items():
        lines, calls = way(plain)
        files, hops = {file for file, _ in lines}, upward(calls)
        counts = {
            "files": len(files),
            "lines": len(lines),
            "engine files": sum(file.startswith("engine/") for file in files),
            "upward hops": len(hops),
        }
        figures["counts"] |= {f"{name}: {what}": n for what, n in counts.items()}
        if chosen.list:
            print(name, *sorted(files), *(" -> ".join(hop) for hop in sorted(hops)), "", sep="\n")
    recorded = json.loads(FILE.read_text("utf-8"))["figures"] if FILE.is_file() else {}
    figures["tests"] = seconds_of_tests() if chosen.tests else recorded.get("tests")
    if chosen.tests or chosen.write:
        write("shape", figures, table(figures))
    else:
        print(table(figures))
    over = [what for what, most in MOST.items() if figures["counts"][what] > most]
    if chosen.check and over:
        raise SystemExit(f"too much: {'; '.join(over)}")


def table(figures):
    """Return a table of the counts with their limits, and one of the rooms."""
    counts, rooms = figures["counts"], figures["rooms"]
    rows = [(what, f"{n:,}", MOST.get(what, "")) for what, n in counts.items()]
    if tests := figures["tests"]:
        rows.append(
            (f"seconds of `{tests['command']}`, at {tests['commit']}", tests["seconds"], "")
        )
    by_room = [(room, f"{rooms[room]:,}") for room in sorted(rooms, key=height)]
    by_room.append(("all", f"{sum(rooms.values()):,}"))
    heads = "from `nf.fit` to Adam's update, and before", "", "at most"
    return f"{markdown(heads, rows)}\n\n{markdown(('room', 'lines of code'), by_room)}"
