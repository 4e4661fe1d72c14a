"""The package's shape: modules at import, the way from `fit` to Adam's update, what is packed."""

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
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

import numpy as np

import npformer as nf
from benchmarks import complexity
from benchmarks.circles import circles
from benchmarks.results_files import COMMIT, RESULTS, ROOT, markdown, write
from benchmarks.tricks import FOLDERS, KINDS, counts_by_folder
from npformer import functional
from npformer.optim.adam import adam_update

PACKAGE = Path(nf.__file__).parent
FILE = RESULTS / "shape.json"

ROOMS = (
    "core",
    "functional",
    "layers",
    "mixers",
    "models",
    "optim",
    "loop",
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
ABOVE = f"functions above {complexity.MOST} in complexity, outside of the engine"
ABOVE_ON_THE_WAY = f"functions above {complexity.MOST_ON_THE_WAY} from `fit` to Adam's update"
CIRCLES = "imports that close a circle inside a room"
WAYS = {"kernels off": True, "default": False}

TARGETS = {
    "softmax": functional.softmax,
    "layer_norm": functional.layer_norm,
    "linear": functional.linear,
    "adam_update": adam_update,
}
"""How many calls lie between the start of a training and each of these."""

MOST = {
    MODULES: 120,
    "kernels off: engine files": 0,
    "kernels off: upward hops": 10,
    # The value reached, and 1 more.
    "calls from `fit` to `softmax`": 20,
    "calls from `fit` to `layer_norm`": 18,
    "calls from `fit` to `linear`": 22,
    "calls from `fit` to `adam_update`": 10,
    # What is left to unpack: these fall to 0.
    ABOVE: 51,
    ABOVE_ON_THE_WAY: 19,
    CIRCLES: 0,
    "tricks in npformer": 181,
    "tricks in tests": 349,
    "tricks in benchmarks": 53,
    "tricks in docs/site": 14,
    "tricks in examples": 1,
}
"""What `--check` allows."""

NOT_CODE = {
    getattr(tokenize, name)
    for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")
}
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
"""Calls before Python 3.12, and none since."""


def tokens_of_code(file: Path) -> int:
    """Return how many tokens of code a file has: no docstrings, comments or imports."""
    text = file.read_text("utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        string = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if string or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        token.type not in NOT_CODE and token.start[0] not in left_out
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )


def tokens_by_room(package: Path = PACKAGE) -> dict[str, int]:
    """Return {room: tokens of code} of a package's folders and files."""
    tokens: Counter[str] = Counter()
    for file in sorted(package.rglob("*.py")):
        tokens[file.relative_to(package).with_suffix("").parts[0]] += tokens_of_code(file)
    return dict(tokens)


@dataclass
class Calls:
    """What of a package a call runs."""

    files: set[str] = field(default_factory=set)
    hops: set[tuple[str, str]] = field(default_factory=set)
    """(caller, callee), both files; what lies between them outside the package is passed over."""
    deepest: dict[CodeType, list[CodeType]] = field(default_factory=dict)
    """Of each function that runs, the longest way to it: from the first call into the package down
    to its own. Calls of Python functions and generators count, also outside the package.
    """

    def depth(self, function) -> int:
        """Return how many calls lead to a function, the first one and its own included."""
        return len(self.deepest[function.__code__])


def run_by(call, package=PACKAGE, until=None) -> Calls:
    """Return what of a package a call runs; with `until`, before that function has returned."""
    root, calls = f"{package}{os.sep}", Calls()

    def is_own(code):
        return code.co_filename.startswith(root)

    def name_of(code):
        return Path(code.co_filename.removeprefix(root)).as_posix()

    def note(frame):
        codes = codes_down_to(frame)
        own = [code for code in codes if is_own(code)]
        calls.files.add(name_of(frame.f_code))
        if len(own) > 1:
            calls.hops.add((name_of(own[-2]), name_of(own[-1])))
        way = codes[codes.index(own[0]) :]
        if len(way) > len(calls.deepest.get(frame.f_code, ())):
            calls.deepest[frame.f_code] = way

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and is_own(code) and code.co_name not in COMPREHENSIONS:
            note(frame)
        elif event == "return" and until and code is until.__code__:
            sys.setprofile(None)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return calls


def codes_down_to(frame):
    """Return the code of each call that is going on, from the outermost to that of a frame."""
    codes = []
    while frame is not None:
        if frame.f_code.co_name not in COMPREHENSIONS:
            codes.append(frame.f_code)
        frame = frame.f_back
    return codes[::-1]


def upward(hops, rooms=ROOMS):
    """Return the calls from a room into a higher one; what is in no room is above them all."""
    return {pair for pair in hops if height(pair[0], rooms) < height(pair[1], rooms)}


def height(file, rooms=ROOMS):
    """Return which room a file is in, counted from the ground."""
    room = file.removesuffix(".py").partition("/")[0]
    return rooms.index(room) if room in rooms else len(rooms)


def call_fit(model, x, y):
    """Train for one step by `fit`."""
    nf.fit(model, (x, y), epochs=1, batch_size=8, seed=0, progress=False)


def call_train(model, x, y):
    """Train for one step by `train`."""
    optimizer = nf.Adam(model.parameters())
    nf.train(model, (x, y), optimizer, epochs=1, batch_size=8, seed=0)


STARTS = {"fit": call_fit, "train": call_train}
"""What starts a training: the calls from each are counted."""


def way(plain, start=call_fit):
    """Return what a training runs until Adam's update, of two layers; imports come before."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((8, 6, 4), dtype=np.float32), rng.integers(0, 3, 8)
    config = nf.EncoderConfig(d_model=16, n_layers=2, n_heads=2, d_ff=32, max_len=6)

    def model():
        return nf.SequenceClassifier(config, n_classes=3, n_features=4, pooling="mean", seed=0)

    with nf.use_kernels(False) if plain else nullcontext():
        start(model(), x, y)
        second = model()
        return run_by(lambda: start(second, x, y), until=nf.Adam.step)


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


def counts_on_the_way(name: str, calls: Calls) -> dict[str, int]:
    """Return how many files of the engine, and how many calls upward, a training runs."""
    return {
        f"{name}: engine files": sum(file.startswith("engine/") for file in calls.files),
        f"{name}: upward hops": len(upward(calls.hops)),
    }


def depths(start: str, calls: Calls) -> dict[str, int]:
    """Return how many calls lead from the start of a training to each of `TARGETS`."""
    return {
        f"calls from `{start}` to `{name}`": calls.depth(function)
        for name, function in TARGETS.items()
    }


def over_limits(counts: dict[str, int]) -> list[str]:
    """Return which counts are above their limits."""
    return [what for what, most in MOST.items() if counts[what] > most]


def measure() -> tuple[dict, str]:
    """Return all figures, and what stands behind them in words, for `--list`."""
    calls_of = {name: way(plain) for name, plain in WAYS.items()}
    plain = {start: way(plain=True, start=call) for start, call in STARTS.items()}
    measured = complexity.functions()
    above = complexity.too_complex(measured)
    above_on_the_way = complexity.too_complex_on_the_way(measured, set(plain["fit"].deepest))
    in_circles = circles()
    tricks = counts_by_folder()

    counts = {MODULES: modules()}
    for name, calls in calls_of.items():
        counts |= counts_on_the_way(name, calls)
    for start, calls in plain.items():
        counts |= depths(start, calls)
    counts |= {ABOVE: len(above), ABOVE_ON_THE_WAY: len(above_on_the_way)}
    counts |= {CIRCLES: len(in_circles)}
    counts |= {f"tricks in {folder}": sum(of.values()) for folder, of in tricks.items()}

    sections = {ABOVE: map(str, above), ABOVE_ON_THE_WAY: map(str, above_on_the_way)}
    sections[CIRCLES] = in_circles
    for name, calls in calls_of.items():
        sections[f"{name}: files"] = sorted(calls.files)
        sections[f"{name}: upward hops"] = sorted(map(" -> ".join, upward(calls.hops)))
    for start, calls in plain.items():
        for name, function in TARGETS.items():
            sections[f"calls from {start} to {name}"] = calls_in_words(calls, function)
    figures = {"counts": counts, "tricks": tricks, "tokens": tokens_by_room()}
    return figures, "\n\n".join("\n".join([head, *lines]) for head, lines in sections.items())


def calls_in_words(calls: Calls, function) -> list[str]:
    """Return the calls that lead to a function, as "file: name"."""
    way_down = calls.deepest[function.__code__]
    return [f"{os.path.relpath(c.co_filename, ROOT)}: {c.co_qualname}" for c in way_down]


def run(words):
    """Print the shape, and write it if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shape", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if there is too much")
    parser.add_argument("--tests", action="store_true", help="run the tests, and write their time")
    parser.add_argument("--write", action="store_true", help="write the results")
    parser.add_argument("--list", action="store_true", help="print functions, files and calls")
    chosen = parser.parse_args(words)
    figures, listed = measure()
    if chosen.list:
        print(listed, end="\n\n")
    recorded = json.loads(FILE.read_text("utf-8"))["figures"] if FILE.is_file() else {}
    figures["tests"] = seconds_of_tests() if chosen.tests else recorded.get("tests")
    if chosen.tests or chosen.write:
        write("shape", figures, table(figures))
    else:
        print(table(figures))
    over = over_limits(figures["counts"])
    if chosen.check and over:
        raise SystemExit(f"too much: {'; '.join(over)}")


def table(figures):
    """Return a table of the counts with their limits, one of the tricks, and one of the rooms."""
    counts, tricks, tokens = figures["counts"], figures["tricks"], figures["tokens"]
    rows = [(what, f"{n:,}", MOST.get(what, "")) for what, n in counts.items()]
    if tests := figures["tests"]:
        rows.append(
            (f"seconds of `{tests['command']}`, at {tests['commit']}", tests["seconds"], "")
        )
    by_kind = [(kind, *(tricks[folder][kind] for folder in FOLDERS)) for kind in KINDS]
    by_room = [(room, f"{tokens[room]:,}") for room in sorted(tokens, key=height)]
    by_room.append(("all", f"{sum(tokens.values()):,}"))
    tables = (
        markdown(("the package's shape", "", "at most"), rows),
        markdown(("tricks", *FOLDERS), by_kind),
        markdown(("room", "tokens of code"), by_room),
    )
    return "\n\n".join(tables)
