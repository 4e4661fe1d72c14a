"""`python -m benchmarks NAME [options]`."""

import argparse
import importlib

BENCHMARKS = {
    "mixers": "test accuracy of each mixer on each task (some minutes)",
    "blockwise": "attention in blocks of queries against stored weights: time and memory",
    "cpu": "npformer and PyTorch on a CPU (an hour; `cpu --help` shows how to do it in parts)",
    "kernels": "what each kernel, workspaces and the second worker gain (20 minutes)",
    "parts": "what small kernels gain, each timed by itself within a step (3 minutes)",
    "gpu": "npformer on CuPy and PyTorch on one GPU (see `gpu --help`; `--dry-run` needs none)",
    "ffn": "the feed-forward network as linear maps and as convolutions (5 minutes)",
    "faults": "killed trainings, damaged files, wrong calls (an hour; `faults --help`)",
    "gradcheck_layers": "what gradcheck finds in layers of others, and its false alarms (seconds)",
    "lengths": "time and memory of three mixers as sequences grow, with a plot (8 minutes)",
    "onnx": "onnxruntime beside npformer, each classifying the same batches (3 minutes)",
    "padding": "batches by length against all the padding, and PyTorch (10 minutes)",
    "ranks": "two ranks against two workers, and exchanges beside products (5 minutes)",
    "ranks-model": "2 to 1,024 ranks over a network, simulated (a minute; `ranks-model --help`)",
    "series": "speakers of vowels named by SeriesClassifier with each mixer (5 minutes)",
    "sklearn": "EncoderClassifier beside scikit-learn's classifiers (3 minutes)",
    "questions": "the runs that docs/questions/ shows (20 minutes; `questions --help`)",
    "writing": "generated tokens, copying and reversing beside PyTorch (7 minutes)",
    "shakespeare": "a language model of characters beside PyTorch (5 minutes; takes a file)",
    "pronunciations": "words to phones beside PyTorch, three seeds (40 minutes; takes a file)",
    "translating": "training steps of encoder-decoders beside PyTorch (4 minutes)",
    "embedding": "sentences as vectors beside PyTorch, with pretrained encoders (3 minutes)",
    "play": "the page of npformer play: how fast it answers, and what it costs (2 minutes)",
    "texts": "TextClassifier without tuning against a bag of words (minutes; see `texts --help`)",
    "mutants": "small changes of the package: does a test notice? (an hour; see `mutants --help`)",
}
WITH_OPTIONS = (
    *("cpu", "faults", "gpu", "mutants", "pronunciations", "questions", "ranks-model"),
    *("shakespeare", "texts", "translating", "writing"),
)


def main():
    """Run the benchmark that was named."""
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


if __name__ == "__main__":  # processes that a benchmark starts import this file, too
    main()
