"""npformer predict: predict labels with a trained model, for data from a file."""

import argparse
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format

from npformer.classifier import SequenceClassifier
from npformer.core import checks, use_precision
from npformer.tools.cli import common
from npformer.tools.cli.common import option
from npformer.tools.cli.load_model import add_force, in_dtype_of, load_classifier, load_trained
from npformer.tools.plugins import load_plugins

HEADERS = {(1, 0): format.read_array_header_1_0, (2, 0): format.read_array_header_2_0}
"""What reads the header of a .npy file, by the version of the format."""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    epilog = (
        "INPUT holds what the model was built for: token ids (samples, length) or feature\n"
        "vectors (samples, length, features). A .csv file has one sample per line: all its\n"
        "numbers, one after another. Numbers are converted to the model's dtype."
    )
    summary = "predict labels with a trained model"
    parser = common.add_command(commands, "predict", run, summary, epilog)
    common.add_model(parser)
    source = ".npy or .csv (default: some of the model's own test data)"
    parser.add_argument("input", type=Path, nargs="?", metavar="INPUT", help=source)
    option(parser, "--mask FILE", "boolean .npy, (samples, length): True = keep")
    option(parser, "--samples N", "how many test samples to predict, without INPUT", 5)
    probabilities = "print the probabilities of all classes"
    option(parser, "--probabilities", probabilities, action="store_true")
    option(parser, "--out FILE", "write a .npy file instead of printing")
    add_force(parser)
    common.add_backend(parser)
    common.add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print or write what the model predicts."""
    load_plugins(options.plugin)
    labels = mask = None
    out = options.out
    if out is not None and not out.absolute().parent.is_dir():
        raise ValueError(f"--out: the folder {out.parent} does not exist; create it first")
    if out is not None and (out.suffix != ".npy" or out.is_dir()):
        raise ValueError(f"--out is {out}; expected the name of a file that ends in .npy")
    if options.input is None:
        if options.mask is not None:
            raise ValueError("--mask is given without INPUT; expected both, or neither")
        checks.positive("--samples", options.samples)
        instead = f"Give it data: npformer predict {options.model} x.npy"
        model, recipe, notes = load_trained(
            options.model, options.backend, instead, force=options.force
        )
        x, labels = in_dtype_of(model, recipe.load(notes["split"], int(notes["seed"])).test)
        x, labels = x[: options.samples], labels[: options.samples]
    else:
        model = load_classifier(options.model, options.backend, force=options.force)
        x = _read_input(options.input, model)
        mask = None if options.mask is None else _read_npy(options.mask)
    with use_precision(options.precision, options.backend):
        predict = model.predict_probabilities if options.probabilities else model.predict
        result = predict(x, mask, options.batch_size)
    # To stderr, because standard output is for the labels.
    print(f"{len(result):,} samples on {common.device_of(options)}", file=sys.stderr)
    if out is not None:
        np.save(out, result)
        print(f"{out}: {result.dtype} {result.shape}")
        return 0
    for i, row in enumerate(result):
        known = "" if labels is None else f"   label {_words(labels[i])}"
        print(f"{_words(row)}{known}")
    return 0


def _words(row: np.ndarray) -> str:
    flat = np.asarray(row).reshape(-1)
    return " ".join(f"{v:.4f}" if flat.dtype.kind == "f" else str(v) for v in flat.tolist())


def _read_input(path: Path, model: SequenceClassifier) -> np.ndarray:
    readers = {".npy": _read_npy, ".csv": _read_csv}
    if path.suffix not in readers:
        raise ValueError(f"{path} ends in {path.suffix!r}; expected .npy or .csv")
    x = readers[path.suffix](path)
    features = model.n_features
    if features is None:
        whole = x.dtype.kind == "f" and (x == np.floor(x)).all()
        return np.asarray(x.astype("int64")) if whole else x  # a .csv file is read as floats
    if path.suffix == ".csv":
        if x.shape[1] % features:
            raise ValueError(
                f"{path} has {x.shape[1]} numbers a line; expected a multiple of the model's "
                f"{features} features"
            )
        x = x.reshape(len(x), -1, features)
    return np.asarray(x.astype(model.dtype)) if x.dtype.kind in "fiu" else x


def _read_npy(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file:
            shape, _, dtype = HEADERS[format.read_magic(file)](file)
            left = os.fstat(file.fileno()).st_size - file.tell()
        if 0 <= math.prod(shape) * dtype.itemsize <= left:  # else NumPy could ask for any memory
            return np.asarray(np.load(path, allow_pickle=False))
    except OSError:
        raise
    except Exception:  # empty, text, Python objects, or whatever NumPy's parser stumbled upon
        pass
    raise ValueError(f"{path} is not an array of numbers in .npy format; write one with numpy.save")


def _read_csv(path: Path) -> np.ndarray:
    expected = "one sample a line, equally many numbers with commas, no heading"
    try:
        # -sig: spreadsheets begin a file with a byte order mark.
        lines = path.read_text(encoding="utf-8-sig").rstrip().split("\n")
        if lines == [""]:
            raise ValueError("it is empty")
        for number, line in enumerate(lines, start=1):
            if not line.strip():  # if it were skipped, answers would not match lines
                raise ValueError(f"line {number} is empty")
        return np.loadtxt(lines, delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        problem = str(error).partition(";")[0].rstrip(".")
        raise ValueError(f"{path}: {problem}; expected {expected}") from error
