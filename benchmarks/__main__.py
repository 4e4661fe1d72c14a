"""`python -m benchmarks NAME [options]`."""

import argparse
import importlib

BENCHMARKS = {
    "mixers": "test accuracy of each mixer on each task (a few minutes)",
    "blockwise": "attention in blocks of queries compared with stored weights: time and memory",
    "cpu": "npformer and PyTorch on a CPU (an hour; `cpu --help` shows how to split the run)",
    "kernels": "what each kernel, workspaces and the second worker gain (20 minutes)",
    "parts": "what small kernels gain, each timed separately within a step (3 minutes)",
    "memory": "memory of training steps above the start, compared with PyTorch (2 minutes; Linux)",
    "modern": "training steps of today's encoder and writer, compared with PyTorch (3 minutes)",
    "gpu": "npformer on CuPy and PyTorch on one GPU (see `gpu --help`; `--dry-run` needs none)",
    "ffn": "the feed-forward network as linear maps and as convolutions (5 minutes)",
    "faults": "killed trainings, damaged files, wrong calls (an hour; `faults --help`)",
    "lengths": "time and memory of three mixers as sequences grow, with a plot (8 minutes)",
    "onnx": "onnxruntime and npformer classifying the same batches (3 minutes)",
    "disagreements": "the same numbers through other libraries (20 minutes; needs uv)",
    "padding": "batches by length compared with full padding, and with PyTorch (10 minutes)",
    "ranks": "two ranks compared with two workers, and overlapped exchanges (5 minutes)",
    "short": "one short sample or a few, compared with PyTorch and onnxruntime (2 minutes)",
    "sklearn": "EncoderClassifier compared with scikit-learn's classifiers (3 minutes)",
    "questions": "the runs that docs/questions/ shows (20 minutes; `questions --help`)",
    "today": "from the Transformer of 2017 to today's, one change at a time (12 minutes)",
    "writing": "generating, copying and reversing, compared with PyTorch (7 minutes)",
    "shakespeare": "a character model, compared with PyTorch (5 minutes; needs a file)",
    "pretraining": "mixers that learn from texts before a few labels (2 hours; needs a file)",
    "plays": "what `npformer train shakespeare` reaches by minutes, and writes (10 minutes)",
    "pronunciations": "words to phones, compared with PyTorch (40 minutes; needs a file)",
    "translating": "training steps of encoder-decoders, compared with PyTorch (4 minutes)",
    "embedding": "sentences as vectors, compared with PyTorch, pretrained encoders (3 minutes)",
    "play": "the page of npformer play: how fast it answers, and what it costs (2 minutes)",
    "texts": "untuned TextClassifier compared with word counts (minutes; see `texts --help`)",
    "same": "small trainings, equal bit for bit to those of an earlier commit? (a minute)",
    "shape": "calls, complexity, tricks and modules that a reader meets, and the limits (seconds)",
    "tricks": "where statements are packed, as file:line: kind (seconds)",
    "cases": "cases that an earlier commit tested, and this one does not (a minute)",
    "names": "local names and function names that do not say what they are, as file:line (seconds)",
    "mutants": "small changes to the package: does a test notice? (an hour; see `mutants --help`)",
}
WITH_OPTIONS = (
    "disagreements",
    "cases",
    "cpu",
    "faults",
    "gpu",
    "mutants",
    "pretraining",
    "pronunciations",
    "questions",
    "same",
    "shakespeare",
    "shape",
    "texts",
    "today",
    "translating",
    "tricks",
    "names",
    "writing",
)


def main():
    """Run the named benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:<16} {text}" for name, text in BENCHMARKS.items()),
    )
    parser.add_argument(
        "name", choices=BENCHMARKS, metavar="NAME", help="one of the benchmarks below"
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of that benchmark")
    chosen = parser.parse_args()
    if chosen.options and chosen.name not in WITH_OPTIONS:
        parser.error(f"{chosen.name} takes no options; got {' '.join(chosen.options)}")
    run = importlib.import_module(f"benchmarks.{chosen.name.replace('-', '_')}").run
    run(chosen.options) if chosen.name in WITH_OPTIONS else run()


if __name__ == "__main__":  # processes that a benchmark starts also import this file
    main()
