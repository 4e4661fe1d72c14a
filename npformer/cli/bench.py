"""npformer bench: measure how fast it is on this machine."""

import argparse
import json
from dataclasses import asdict
from itertools import product

from npformer.cli import common, speed
from npformer.cli.options import POSITIVE_FLOAT, Commands, add_command, output_path
from npformer.cli.parser import Parser
from npformer.cli.shared_options import add_backend, add_overwrite
from npformer.core import checks, use_precision
from npformer.training.storage.outputs import write_output


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    workloads = "\n".join(
        f"  {name}  batch {batch}, length {config.max_len}, d_model {config.d_model}, "
        f"d_ff {config.d_ff}, {config.n_layers} layers"
        for name, (batch, config) in speed.WORKLOADS.items()
    )
    parser = add_command(
        commands,
        "bench",
        summary="measure the speed of training and prediction on this machine",
        epilog=f"workloads:\n{workloads}\n\n"
        "To compare with PyTorch, run in the repository: python -m benchmarks cpu",
        run=run,
    )
    parser.add_argument(
        "--workload",
        metavar="NAME[,NAME...]",
        default="S",
        help="workloads listed below, comma-separated (default: %(default)s)",
    )
    parser.add_argument(
        "--mixer",
        metavar="NAME[,NAME...]",
        default="attention,dense_synthesizer,fourier",
        help="mixers, comma-separated (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        metavar="X",
        type=POSITIVE_FLOAT,
        default=2.0,
        help="seconds to spend on each measurement (default: %(default)s)",
    )
    parser.add_argument(
        "--json", metavar="FILE", type=output_path, help="also write the figures to this file"
    )
    add_overwrite(parser)
    add_backend(parser)


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
