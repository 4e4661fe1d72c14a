"""npformer bench: measure how fast it is on this machine."""

import argparse
import json
import sys
from dataclasses import asdict

from npformer.cli import common, speed
from npformer.core import use_precision
from npformer.training.storage.files import check_place


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
    print(speed.table(speeds))
    if options.json:
        written = {"figures": [asdict(one) for one in speeds]}
        options.json.write_text(json.dumps(written, indent=2) + "\n")
    return 0
