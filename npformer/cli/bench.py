"""npformer bench: measure how fast it is on this machine."""

import argparse
import json
from dataclasses import asdict
from itertools import product

from npformer.cli import common, speed
from npformer.core import checks, use_precision
from npformer.training.storage.outputs import write_output


def run(options: argparse.Namespace) -> int:
    """Print a table of step times."""
    workloads, mixers = options.workload.split(","), options.mixer.split(",")
    for name in workloads:
        checks.choice("workload", name, speed.WORKLOADS)
    for mixer in mixers:
        checks.choice("mixer", mixer, speed.MEASURED)
    print(f"{common.device_of(options)}\n{speed.HEADING}")
    speeds = []
    with use_precision(options.precision, options.backend):
        for name, mixer in product(workloads, mixers):
            speeds.append(speed.measure(name, mixer, options.backend, options.seconds))
            print(speeds[-1], flush=True)
    print("\nplain: how many times as long a step takes with npformer.functional alone")
    if options.json:
        written = {"figures": [asdict(one) for one in speeds]}
        words = f"{json.dumps(written, indent=2)}\n"
        write_output(options.json, words.encode(), overwrite=options.overwrite)
    return 0
