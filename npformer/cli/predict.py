"""npformer predict: predict labels, or translate, with a trained model."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from npformer.cli import common, predict_file
from npformer.cli.options import POSITIVE_INT, Commands, add_command, file_or_folder, output_path
from npformer.cli.parser import Parser
from npformer.cli.shared_options import (
    add_backend,
    add_batch_size,
    add_force,
    add_model,
    add_overwrite,
    add_plugin,
    add_series,
    add_text_column,
)
from npformer.cli.trained import Trained, refuse_options_of_tables
from npformer.core import a_type, use_precision
from npformer.data.stored import read
from npformer.models.trainable import SequenceClassifier, predict_to_file
from npformer.tasks.estimators import Estimator, TextWriter
from npformer.tasks.sources.array_file import read_npy, read_samples
from npformer.training.storage.outputs import is_stream

EPILOG = """\
texts:  npformer predict runs/reviews-attention 'a text' 'another text'
why:    npformer predict runs/reviews-attention --explain 'a text'
a file: npformer predict runs/reviews-attention reviews.csv --out answers.csv
pairs:  npformer predict runs/words-attention transformer --beams 4
masks:  npformer predict runs/reviews 'the film was [MASK]'

Other models take arrays: token ids, shape (samples, length), or feature vectors, shape
(samples, length, features). A .csv file has one sample per line, with all its numbers in
order. Numbers are converted to the model's dtype. A quoted pattern such as 'x-*.npy' reads
several files in order. With --out, a few samples are read and written at a time, so neither
file has to fit into memory."""


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "predict",
        summary="predict labels, or translate, with a trained model",
        epilog=EPILOG,
        run=run,
    )
    add_model(parser)
    add_batch_size(parser)
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="*",
        help="texts, a table, .npy or .csv (default: a few test samples of the model's task)",
    )
    add_text_column(parser)
    parser.add_argument(
        "--source",
        metavar="COLUMN",
        help="for pairs: column with the texts to translate (default: as in training)",
    )
    parser.add_argument(
        "--beams",
        metavar="N",
        type=POSITIVE_INT,
        default=1,
        help="for pairs: beam width; 1 is greedy search (default: %(default)s)",
    )
    parser.add_argument(
        "--encoding", metavar="NAME", help="text encoding of a table (default: utf-8)"
    )
    add_series(parser)
    parser.add_argument(
        "--mask",
        metavar="FILE",
        type=file_or_folder,
        help="padding mask: boolean .npy of shape (samples, length), True = keep",
    )
    parser.add_argument(
        "--samples",
        metavar="N",
        type=POSITIVE_INT,
        default=5,
        help="how many test samples to predict when no INPUT is given (default: %(default)s)",
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="print the probabilities of all classes"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="for texts: print the words that speak for the label of each text and against it",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=output_path,
        help="write to a file instead of printing: .csv or .tsv for texts, otherwise .npy",
    )
    add_overwrite(parser)
    add_force(parser)
    add_backend(parser)
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print or write what the model predicts."""
    trained = Trained.load(options, options.model)
    model = trained.model
    _check_out(options.out, (".csv", ".tsv") if isinstance(model, Estimator) else (".npy",))
    with use_precision(options.precision, options.backend):
        if isinstance(model, SequenceClassifier):
            if options.explain:
                raise ValueError(
                    f"--explain is given and {options.model} takes arrays; expected a model of "
                    f"texts. npformer look {options.model} shows what happens inside"
                )
            return _predict(options, trained)
        if isinstance(model, TextWriter):
            raise ValueError(
                f"{options.model} holds {a_type(model)}, which goes on writing a text: "
                f'npformer generate {options.model} "a beginning"'
            )
        return predict_file.run(options, trained)


def _check_out(out: Path | None, ends: tuple[str, ...]) -> None:
    """Check the ending of the file to write; answers may also go through a pipe, as CSV."""
    if out is None or out.suffix in ends or (is_stream(out) and ".csv" in ends):
        return
    ending = " or ".join(ends)
    raise ValueError(f"--out is {out}; expected the name of a file that ends in {ending}")


def _predict(options: argparse.Namespace, trained: Trained) -> int:
    """Predict labels of arrays, all ranks together; with --out, both may be in files."""
    model, ranks = trained.model, options.ranks
    refuse_options_of_tables(options, "the model takes arrays instead of tables")
    x, mask, labels = _samples(options, trained)
    if options.out is not None:
        result = predict_to_file(
            options.out,
            model,
            x,
            mask,
            kind="probabilities" if options.probabilities else "labels",
            batch_size=options.batch_size,
            communicator=ranks,
            overwrite=options.overwrite,
        )
    else:
        predict = model.predict_probabilities if options.probabilities else model.predict
        share = ranks.shard(len(x))
        mask_of_share = None if mask is None else read(mask, share)
        result = ranks.concatenate(predict(read(x, share), mask_of_share, options.batch_size))
    if ranks.rank:
        return 0  # the first writes and prints
    # To stderr, because standard output is for the labels.
    samples = common.counted(len(result), "samples")
    print(f"{samples} on {common.device_of(options)}", file=sys.stderr)
    if options.out is not None:
        print(f"{options.out}: {result.dtype} {result.shape}")
        return 0
    for i, row in enumerate(result):
        if labels is None:
            print(_words(row))
        else:
            print(_words(row), "  label", _words(labels[i]))
    return 0


def _samples(options: argparse.Namespace, trained: Trained) -> tuple[Any, Any, Any]:
    """Return the samples of the file that is given, and their mask; or test data with labels."""
    if len(options.input) > 1:
        raise ValueError(
            f"there are {len(options.input)} words for INPUT; expected one file. Only models of "
            "texts take several"
        )
    if options.input:
        x = read_samples(Path(options.input[0]), trained.model)
        return x, None if options.mask is None else read_npy(options.mask), None
    if options.mask is not None:
        raise ValueError("--mask is given without INPUT; expected both, or neither")
    x, labels = trained.test_data(None)
    return x[: options.samples], None, labels[: options.samples]


def _words(row: np.ndarray) -> str:
    flat = np.asarray(row).reshape(-1)
    return " ".join(f"{v:.4f}" if flat.dtype.kind == "f" else str(v) for v in flat.tolist())
