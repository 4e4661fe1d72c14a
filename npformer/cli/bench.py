"""npformer bench: measure how fast it is on this machine."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from npformer.cli import common, speed
from npformer.cli.common import option
from npformer.core import use_precision
from npformer.training.storage.files import check_place


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    sizes = "\n".join(
        f"  {w.name}  batch {w.batch}, length {w.length}, d_model {w.d_model}, d_ff {w.d_ff}, "
        f"{w.n_layers} layers"
        for w in speed.WORKLOADS.values()
    )
    epilog = f"workloads:\n{sizes}\n\nagainst PyTorch: python -m benchmarks cpu, in the repository"
    summary = "measure how fast it trains and predicts on this machine"
    parser = common.add_command(commands, "bench", run, summary, epilog)
    option(parser, "--workload NAME[,NAME...]", "workloads listed below, comma-separated", "S")
    option(parser, "--mixer NAME[,NAME...]", "mixers, comma-separated", ",".join(speed.MEASURED))
    option(parser, "--seconds X", "time to spend on each figure", 2.0)
    option(parser, "--json FILE", "also write the figures to this file")
    common.add_backend(parser)


def run(options: argparse.Namespace) -> int:
    """Print a table of step times."""
    if options.json is not None:
        check_place(options.json, "speeds.json")
    print(common.device_of(options))
    workloads, mixers = options.workload.split(","), options.mixer.split(",")
    speeds = []
    with use_precision(options.precision, options.backend):
        for one in speed.measure(workloads, mixers, options.backend, options.seconds):
            speeds.append(one)
            print(f"{one.workload} {one.mixer}: {one.step_ms:.1f} ms a step", file=sys.stderr)
        peak = speed.sgemm_peak() if options.backend == "numpy" else None
    print(speed.table(speeds, peak))
    if options.json:
        written = {"peak_gflops": peak, "figures": [asdict(one) for one in speeds]}
        options.json.write_text(json.dumps(written, indent=2) + "\n")
    return 0
