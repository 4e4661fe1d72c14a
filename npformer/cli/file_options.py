"""The options of commands that read a file of texts or series."""

import argparse
from typing import Any

from npformer.cli.common import option

SKIP_EMPTY = "leave out rows without a text or label"


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for files."""
    group = parser.add_argument_group(
        "a file: a table of texts, series or pairs (CSV, TSV, JSON lines, Parquet), or one text"
    )
    option(group, "--text COLUMN", "column of the texts (default: text)")
    option(group, "--label COLUMN", "column of the labels (default: label)")
    option(group, "--source COLUMN", "of pairs: column of the texts to translate")
    option(group, "--target COLUMN", "of pairs: column of what they become")
    parts = "a share of the samples, of each class, or another file; 0 is none"
    usual = "default: 0.2; of one text its end, 0.1"
    option(group, "--test PART", f"what the model is measured on: {parts} ({usual})")
    chooses = "what chooses the best epoch: likewise, a share of the rest"
    option(group, "--validation PART", f"{chooses} (default: 0, the last; of one text 0.1)")
    kinds = "word, wordpiece, bpe, or a tokenizer.json or vocab.txt (extra: text)"
    writing = "for writing: char, word or bpe; for pairs also two, as in char,word"
    option(group, "--tokenizer NAME", f"{kinds}; {writing} (default: word; for writing: char)")
    option(group, "--vocab-size N", "maximum number of token ids")
    folder = "start from the weights and the tokenizer in a folder in Hugging Face's layout"
    option(group, "--pretrained DIR", folder, type=str)
    names = "parameters that are not trained: patterns such as 'embed.*,encoder.*'"
    option(group, "--freeze NAMES", names)
    longest = "256 for texts, 64 for one text, twice the longest of the others"
    option(group, "--max-len N", f"tokens or steps to read at most (default: {longest})")
    several = "models with different seeds, whose probabilities are averaged (default: depends on"
    option(group, "--members N", f"{several} the size of the data)")
    option(
        group, "--ngrams N", "letters in a part of a word; 0 for none (default: 4 for short texts)"
    )
    option(group, "--patience N", "stop after this many epochs without a better one")
    rare = "balanced: every class counts as much as any other, however rare"
    option(group, "--class-weight", rare, choices=("balanced",))
    option(group, "--encoding NAME", "of the file (default: utf-8)")
    option(group, "--keep-repeated", "keep samples that repeat an earlier one with the same label")
    option(group, "--skip-empty", SKIP_EMPTY)
    add_columns_of_series(group)
    parser.set_defaults(keep_repeated=None, skip_empty=None)  # not given


def add_known_file(parser: argparse.ArgumentParser) -> None:
    """Add a file with right answers, and its columns, for a model that was trained on another."""
    source = "a file, for a model trained on a file (default: its own test part)"
    parser.add_argument("input", nargs="?", metavar="FILE", help=source)
    option(parser, "--text COLUMN", "column of the texts (default: that of the training)")
    option(parser, "--label COLUMN", "column of the labels (default: likewise)")
    option(parser, "--source COLUMN", "of pairs: column of the sources (default: likewise)")
    option(parser, "--target COLUMN", "of pairs: column of the targets (default: likewise)")
    option(parser, "--encoding NAME", "of the table (default: utf-8)")
    option(parser, "--skip-empty", SKIP_EMPTY)
    add_columns_of_series(parser)


def add_columns_of_series(group: Any) -> None:
    """Add the options for a table of series, in which each row is a step."""
    option(group, "--id COLUMN", "in a table of series: which series a row belongs to")
    option(group, "--time COLUMN", "what sorts the rows of a series (default: order in the file)")
    option(group, "--features LIST", "columns of the features, such as x,y (default: all others)")
