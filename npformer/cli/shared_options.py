"""Options that several commands take, one function for each group of them."""

import argparse

from npformer.cli.options import (
    INT_FROM_0,
    POSITIVE_INT,
    file_or_folder,
)
from npformer.core import PRECISIONS, backends, split_names

Options = argparse._ActionsContainer
"""What takes options: a parser, or a group of one."""


def add_model(options: Options) -> None:
    """Add the model that a command reads."""
    options.add_argument(
        "model", metavar="MODEL", type=file_or_folder, help="a .safetensors file or a folder"
    )


def add_batch_size(options: Options) -> None:
    """Add the number of samples that are computed at a time."""
    options.add_argument(
        "--batch-size",
        metavar="N",
        type=POSITIVE_INT,
        default=256,
        help="samples that each process handles at a time (default: %(default)s)",
    )


def add_series(options: Options) -> None:
    """Add the columns of a table of series."""
    options.add_argument(
        "--id",
        metavar="COLUMN",
        help="in a table of series: column that says to which series a row belongs",
    )
    options.add_argument(
        "--time",
        metavar="COLUMN",
        help="column that orders the rows of a series (default: their order in the file)",
    )
    options.add_argument(
        "--features",
        metavar="LIST",
        type=split_names,
        help="columns with the features, such as x,y (default: all other columns)",
    )


def add_skip_empty(options: Options) -> None:
    """Add what is done about rows without a text or a label."""
    options.add_argument(
        "--skip-empty", action="store_true", help="leave out rows without a text or label"
    )


def add_labelled_file(options: Options) -> None:
    """Add a file with the right answers, for a model that was trained on another file."""
    options.add_argument(
        "input",
        metavar="FILE",
        nargs="?",
        help="a data file, for a model trained on one (default: the test data of that training)",
    )
    add_text_column(options)
    options.add_argument(
        "--label", metavar="COLUMN", help="column with the labels (default: as in training)"
    )
    options.add_argument(
        "--source",
        metavar="COLUMN",
        help="for pairs: source column (default: as in training)",
    )
    options.add_argument(
        "--target",
        metavar="COLUMN",
        help="for pairs: target column (default: as in training)",
    )
    options.add_argument(
        "--encoding", metavar="NAME", help="text encoding of the table (default: utf-8)"
    )
    add_skip_empty(options)
    add_series(options)


def add_overwrite(options: Options) -> None:
    """Add the permission to replace a file."""
    options.add_argument(
        "--overwrite",
        action="store_true",
        help="overwrite the output file if it exists",
    )


def add_force(options: Options) -> None:
    """Add the permission to load a damaged model."""
    options.add_argument(
        "--force", action="store_true", help="load MODEL even if its checksum does not match"
    )


def add_backend(options: Options) -> None:
    """Add where to compute, and how precisely."""
    options.add_argument(
        "--backend",
        choices=backends(),
        default="numpy",
        help="where to compute: numpy is the CPU, cupy an NVIDIA GPU (default: %(default)s)",
    )
    options.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="precision of matrix products on a GPU: tf32 is faster, with about 3 digits "
        "(default: %(default)s)",
    )


def add_plugin(options: Options) -> None:
    """Add modules that register names."""
    options.add_argument(
        "--plugin",
        metavar="MODULE",
        action="append",
        default=[],
        help="module or .py file to import first, so that the names that it registers can be"
        " used; repeatable (docs/extending.md)",
    )


def add_split(options: Options, trained: str) -> None:
    """Add which test data of digits are used; `trained` says whose training decides else."""
    options.add_argument(
        "--split",
        metavar="NAME",
        help="for the task digits: test data of the stratified or ordered split (default: as in "
        f"the training of {trained})",
    )


def add_patience(options: Options) -> None:
    """Add early stopping."""
    options.add_argument(
        "--patience",
        metavar="N",
        type=POSITIVE_INT,
        help="early stopping: stop after N epochs without improvement",
    )


def add_text_column(options: Options) -> None:
    """Add the column of texts in a table, for a model that was trained on one."""
    options.add_argument(
        "--text", metavar="COLUMN", help="column with the texts (default: as in training)"
    )


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add what is read from a file that a model is trained on, and how."""
    group = parser.add_argument_group(
        "a file: a table of texts, series or pairs (CSV, TSV, JSON lines, Parquet), or one text"
    )
    group.add_argument("--text", metavar="COLUMN", help="column with the texts (default: text)")
    group.add_argument("--label", metavar="COLUMN", help="column with the labels (default: label)")
    group.add_argument(
        "--source", metavar="COLUMN", help="for pairs: column with the texts to translate"
    )
    group.add_argument("--target", metavar="COLUMN", help="for pairs: column with the translations")
    group.add_argument(
        "--test",
        metavar="PART",
        help="test data: a fraction (stratified by class), or another file; 0 for none "
        "(default: 0.2; for a single text, its last 10 %%)",
    )
    group.add_argument(
        "--validation",
        metavar="PART",
        help="validation data, used to pick the best epoch: a fraction of the rest, or "
        "another file; 0 for none (the last epoch is then kept) (default: 0; for a "
        "single text 0.1)",
    )
    group.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="word, wordpiece, bpe, or a tokenizer.json or vocab.txt (extra: text); for a model "
        "that writes: char, word or bpe; for pairs also two, as in char,word (default: word; for "
        "a model that writes: char)",
    )
    group.add_argument(
        "--vocab-size", metavar="N", type=POSITIVE_INT, help="maximum size of the vocabulary"
    )
    group.add_argument(
        "--from",
        metavar="DIR",
        dest="pretrained",
        help="fine-tune a folder that `npformer pretrain` wrote, or one in Hugging Face's "
        "layout: its weights and its tokenizer, with a new head",
    )
    group.add_argument(
        "--freeze",
        metavar="NAMES",
        type=split_names,
        help="parameters to freeze: patterns such as 'embed.*,encoder.*'",
    )
    group.add_argument(
        "--max-len",
        metavar="N",
        type=POSITIVE_INT,
        help="maximum number of tokens or time steps; only the beginning of longer samples "
        "is read (default: 256 for texts, 64 for a single text, twice the longest "
        "sample for series and pairs)",
    )
    group.add_argument(
        "--members",
        metavar="N",
        type=POSITIVE_INT,
        help="ensemble size: models with different seeds, whose probabilities are averaged "
        "(default: depends on the size of the data)",
    )
    group.add_argument(
        "--ngrams",
        metavar="N",
        type=INT_FROM_0,
        help="length of the character n-grams of words; 0 for none (default: 4 for short texts)",
    )
    add_patience(group)
    group.add_argument(
        "--class-weight",
        choices=["balanced"],
        help="balanced: weight classes inversely to their frequency",
    )
    group.add_argument(
        "--encoding", metavar="NAME", help="text encoding of the file (default: utf-8)"
    )
    group.add_argument(
        "--keep-repeated",
        action="store_true",
        help="keep duplicates: samples that repeat an earlier one with the same label",
    )
    add_skip_empty(group)
    add_series(group)


def add_run(options: Options, default_folder: str) -> None:
    """Add the folder of a run, what becomes of an earlier run there, and what is printed."""
    options.add_argument(
        "--out",
        metavar="DIR",
        type=file_or_folder,
        help=f"output folder, used by this run only (default: {default_folder})",
    )
    options.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --out from its last checkpoint, or start one if there is "
        "none; --epochs may be raised",
    )
    options.add_argument(
        "--overwrite",
        action="store_true",
        help="start over in the folder of an earlier run; the old run is kept until the new "
        "one finishes",
    )
    options.add_argument(
        "--quiet", action="store_true", help="print no progress bar and no summary"
    )
    options.add_argument("--verbose", action="store_true", help="print a summary of all layers")
