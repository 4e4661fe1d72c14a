"""Does this checkout train to the same numbers, bit for bit, as an earlier commit?

The trainings of `benchmarks/trainings.py` run in both checkouts, each in three ways: with the
kernels' loops compiled, with their loops not compiled, and without kernels. Digests of weights,
losses, outputs and written tokens are compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks.results_files import ROOT
from benchmarks.trainings import TRAININGS

SCRIPT = ROOT / "benchmarks" / "trainings.py"

WAYS = {
    "loops compiled": ("kernels", None),
    "loops not compiled": ("kernels", "0"),
    "kernels off": ("no kernels", "0"),
}
"""How the trainings are computed: the script's first word, and NPFORMER_LOOPS, if it is set."""


def run(words):
    """Compare the trainings; exit with 1 if one differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks same", description=__doc__)
    earlier = parser.add_mutually_exclusive_group(required=True)
    earlier.add_argument("revision", nargs="?", help="the earlier commit, as git names it")
    earlier.add_argument("--in", type=Path, dest="folder", help="a checkout of the earlier commit")
    parser.add_argument(
        "--only", metavar="WORD", default="", help="trainings with this in the name"
    )
    chosen = parser.parse_args(words)
    names = [name for name in TRAININGS if chosen.only in name]
    if not names:
        parser.error(f"no training has {chosen.only!r} in its name: {', '.join(TRAININGS)}")
    if find_spec("numba") is None:
        print("numba is not installed, so no loops are compiled")
    if chosen.folder is not None:
        differing = compare(names, chosen.folder)
    else:
        with checkout_of(chosen.revision) as folder:
            differing = compare(names, folder)
    if differing:
        print(f"{len(names)} trainings: {differing} differ")
        raise SystemExit(1)
    print(f"{len(names)} trainings: all equal")


@contextmanager
def checkout_of(revision: str) -> Iterator[Path]:
    """Yield a folder with a checkout of a commit, which is removed afterwards."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "earlier"
        added = subprocess.run(
            [*git, "add", "--detach", str(folder), revision], capture_output=True, text=True
        )
        if added.returncode != 0:
            raise SystemExit(added.stderr.strip())
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def compare(names: list[str], earlier: Path) -> int:
    """Print which trainings differ from those in an earlier checkout, and return how many."""
    differing = set()
    for way in WAYS:
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(digests_in, folder, names, way) for folder in (ROOT, earlier)]
        now, before = [future.result() for future in running]
        for name in names:
            digests = [what for what, digest in now[name].items() if digest != before[name][what]]
            if digests:
                print(f"{name}, {way}: {', '.join(digests)}", flush=True)
                differing.add(name)
    return len(differing)


def digests_in(checkout: Path, names: list[str], way: str) -> dict[str, dict[str, str]]:
    """Run the trainings in a checkout, in a process of their own; return the digests of each."""
    kernels, loops = WAYS[way]
    checkout = checkout.resolve()
    environment = dict(os.environ)
    folders = [str(checkout), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    environment.pop("NPFORMER_LOOPS", None)
    if loops is not None:
        environment["NPFORMER_LOOPS"] = loops
    process = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), kernels, *names],  # -P: `benchmarks` has an sklearn.py
        env=environment,
        cwd=checkout,
        capture_output=True,
        text=True,
    )
    if process.returncode != 0:
        raise SystemExit(f"the trainings failed in {checkout}:\n{process.stderr}")
    results = json.loads(process.stdout)
    if Path(results["package"]) != checkout / "npformer":
        raise SystemExit(f"the trainings of {checkout} ran {results['package']}")
    return results["digests"]
