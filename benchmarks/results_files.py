"""Where measurements go: a JSON file, a Markdown table, and copies of it in README and docs."""

import json
import platform
import re
import subprocess
from datetime import date
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import npformer
from npformer.core import cores

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def machine():
    """Describe the machine and the versions that were measured."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        told = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
        about = {key.strip(): value.strip() for key, _, value in reversed(told)}  # of the first
        cpu = about.get("model name", cpu)
        if cpu == "AMD EPYC":  # what virtual machines say of very different processors
            cpu += f" of family {about['cpu family']}"
    blas = [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    return {
        "cpu": cpu,
        "cores": cores(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": sorted(set(blas)),
        "npformer": npformer.__version__,
        "commit": COMMIT,
        "date": date.today().isoformat(),
    }


def commit():
    """Return the measured commit, and whether the package was changed since, if known."""
    git = ["git", "-C", str(ROOT)]
    try:
        found = subprocess.run(
            [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "npformer"]).returncode
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{found} with changes" if changed else found


COMMIT = commit()  # at the start, because the code may change during a long run


def markdown(heads, rows, left=1):
    """Return a table: heads and cells are what `str` makes of them, after `left` numbers."""
    aligned = ["---" if n < left else "---:" for n in range(len(heads))]
    head, *lines = (f"| {' | '.join(map(str, row))} |" for row in (heads, *rows))
    return "\n".join([head, f"|{'|'.join(aligned)}|", *lines])


def write(name, figures, table, blocks=None, **more):
    """Write the figures and their table, also into README and docs where they have a place for it.

    Parameters
    ----------
    name : str
        Name of the benchmark.
    figures : list or dict
        The contents of the JSON file.
    table : str
        Markdown.
    blocks : dict of str to str, optional
        Named parts of the table, for pages that show only those.
    **more
        Other things the figures depend on, such as ``torch="2.6"``.
    """
    RESULTS.mkdir(exist_ok=True)
    on = machine() | more
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"machine": on, "figures": figures}, indent=2) + "\n"
    )
    source = source_of(name, on)
    (RESULTS / f"{name}.md").write_text(f"{table}\n\n{source}\n")
    for block, text in {name: table, **(blocks or {})}.items():
        show(block, f"{text}\n\n{source}\n")
    print(f"{table}\n\n{source}")


def source_of(name, on):
    """Return a sentence on where figures come from; `on` is the result of `machine`, and more."""
    versions = f"Python {on['python']}, NumPy {on['numpy']}"
    if "torch" in on:
        versions += f", PyTorch {on['torch']}"
    if "threads" in on:
        versions += f", {on['threads']} thread{'s' * (on['threads'] > 1)} each"
    code = f" (commit {on['commit']})" if on["commit"] else ""
    return (
        f"Written by `python -m benchmarks {name}` on {on['date']}{code}, on {on['cores']} cores "
        f"of {on['cpu']}, {versions}."
    )


def show(block, text):
    """Replace the text between ``<!-- begin BLOCK: ... -->`` and ``<!-- end BLOCK -->``."""
    between = re.compile(
        rf"(<!-- begin {re.escape(block)}:[^>]*-->\n).*?(<!-- end {re.escape(block)} -->)",
        re.DOTALL,
    )
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        before = page.read_text()
        after = between.sub(lambda found: found[1] + text + found[2], before)
        if after != before:
            page.write_text(after)
