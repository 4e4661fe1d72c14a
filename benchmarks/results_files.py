"""Where measurements go: a JSON file, a Markdown table, and the README's copy of it."""

import json
import os
import platform
from pathlib import Path

import numpy as np

import npformer

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def machine():
    """Return what the figures were taken on."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "npformer": npformer.__version__,
    }


def write(name, figures, table):
    """Write the figures and their table; put the table into the README if it has a place for it."""
    RESULTS.mkdir(exist_ok=True)
    on = machine()
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"machine": on, "figures": figures}, indent=2) + "\n"
    )
    text = (
        f"{table}\n\nWritten by `python -m benchmarks {name}` on {on['cores']} cores of "
        f"{on['cpu']}, Python {on['python']}, NumPy {on['numpy']}.\n"
    )
    (RESULTS / f"{name}.md").write_text(text)
    readme = ROOT / "README.md"
    before, begin, rest = readme.read_text().partition(f"<!-- begin {name}:")
    if begin:
        head, _, rest = rest.partition("-->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        readme.write_text(f"{before}{begin}{head}-->\n{text}{end}{after}")
    print(text)
