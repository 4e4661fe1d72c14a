"""`python -m benchmarks NAME`."""

import argparse
import importlib

BENCHMARKS = {
    "mixers": "test accuracy of each mixer on each task (some minutes)",
    "blockwise": "attention in blocks of queries against stored weights: time and memory",
}


def main():
    """Run the benchmark that was named."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:<8} {text}" for name, text in BENCHMARKS.items()),
    )
    parser.add_argument("name", choices=BENCHMARKS, metavar="NAME", help="one of those below")
    importlib.import_module(f"benchmarks.{parser.parse_args().name}").run()


main()
