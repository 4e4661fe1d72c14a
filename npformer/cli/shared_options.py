"""Options that several commands take, one function for each group of them."""

import argparse

from npformer.cli.options import (
    FLOAT_FROM_0,
    INT_FROM_0,
    POSITIVE_FLOAT,
    POSITIVE_INT,
    RATE,
    WORKERS,
    patterns,
    readable_path,
)
from npformer.core import INITIALIZERS, PRECISIONS, backends, split_names
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models import POSITIONS
from npformer.models.losses import LOSSES
from npformer.models.trainable.metrics import FIGURES
from npformer.optim import SCHEDULES

Options = argparse._ActionsContainer
"""What takes options: a parser, or a group of one."""


def add_model(options: Options) -> None:
    """Add the model that a command reads."""
    options.add_argument(
        "model", metavar="MODEL", type=readable_path, help="a .safetensors file or a folder"
    )


def add_batch_size(options: Options) -> None:
    """Add the number of samples that are computed at a time."""
    options.add_argument(
        "--batch-size",
        metavar="N",
        type=POSITIVE_INT,
        default=256,
        help="samples that each process computes at a time (default: %(default)s)",
    )


def add_series(options: Options) -> None:
    """Add the columns of a table of series."""
    options.add_argument(
        "--id", metavar="COLUMN", help="in a table of series: the series that a row belongs to"
    )
    options.add_argument(
        "--time",
        metavar="COLUMN",
        help="column by which the rows of a series are sorted (default: their order in the file)",
    )
    options.add_argument(
        "--features",
        metavar="LIST",
        type=split_names,
        help="columns of the features, such as x,y (default: all other columns)",
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
        help="a file, for a model trained on a file (default: the test data of that training)",
    )
    options.add_argument(
        "--text", metavar="COLUMN", help="column of the texts (default: as in training)"
    )
    options.add_argument(
        "--label", metavar="COLUMN", help="column of the labels (default: as in training)"
    )
    options.add_argument(
        "--source",
        metavar="COLUMN",
        help="of pairs: column of the sources (default: as in training)",
    )
    options.add_argument(
        "--target",
        metavar="COLUMN",
        help="of pairs: column of the targets (default: as in training)",
    )
    options.add_argument("--encoding", metavar="NAME", help="of the table (default: utf-8)")
    add_skip_empty(options)
    add_series(options)


def add_overwrite(options: Options) -> None:
    """Add the permission to replace a file."""
    options.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the file that is to be written, if it exists",
    )


def add_force(options: Options) -> None:
    """Add the permission to load a damaged model."""
    options.add_argument(
        "--force", action="store_true", help="load MODEL even if its checksum is wrong"
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
        help="of matrix products on a GPU: tf32 is faster, with 3 digits (default: %(default)s)",
    )


def add_plugin(options: Options) -> None:
    """Add modules that register names."""
    options.add_argument(
        "--plugin",
        metavar="MODULE",
        action="append",
        default=[],
        help="a module or .py file to import first, whose names can then be used; can be repeated "
        "(docs/extending.md)",
    )


def add_split(options: Options, trained: str) -> None:
    """Add which test data of digits are used; `trained` says whose training decides else."""
    options.add_argument(
        "--split",
        metavar="NAME",
        help=f"for digits: stratified or ordered (default: as in the training of {trained})",
    )


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add what is read from a file that a model is trained on, and how."""
    group = parser.add_argument_group(
        "a file: a table of texts, series or pairs (CSV, TSV, JSON lines, Parquet), or one text"
    )
    group.add_argument("--text", metavar="COLUMN", help="column of the texts (default: text)")
    group.add_argument("--label", metavar="COLUMN", help="column of the labels (default: label)")
    group.add_argument(
        "--source", metavar="COLUMN", help="of pairs: column of the texts to translate"
    )
    group.add_argument("--target", metavar="COLUMN", help="of pairs: column of the translations")
    group.add_argument(
        "--test",
        metavar="PART",
        help="test data: a fraction (of every class), or another file; 0 for none (default: 0.2; "
        "for one text 0.1, its end)",
    )
    group.add_argument(
        "--validation",
        metavar="PART",
        help="validation data, which choose the best epoch: a fraction of the rest, or another "
        "file; 0 for none, which keeps the last epoch (default: 0; for one text 0.1)",
    )
    group.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="word, wordpiece, bpe, or a tokenizer.json or vocab.txt (extra: text); for a model "
        "that writes: char, word or bpe; for pairs also two, as in char,word (default: word; for "
        "a model that writes: char)",
    )
    group.add_argument(
        "--vocab-size", metavar="N", type=POSITIVE_INT, help="maximum number of token ids"
    )
    group.add_argument(
        "--from",
        metavar="DIR",
        dest="pretrained",
        help="start from a folder that `npformer pretrain` wrote, or from one in Hugging Face's "
        "layout: its weights and its tokenizer, with a new head",
    )
    group.add_argument(
        "--freeze",
        metavar="NAMES",
        type=split_names,
        help="parameters that are not trained: patterns such as 'embed.*,encoder.*'",
    )
    group.add_argument(
        "--max-len",
        metavar="N",
        type=POSITIVE_INT,
        help="maximum number of tokens or steps that are read (default: 256 for texts, 64 for one "
        "text, twice the longest sample for series and pairs)",
    )
    group.add_argument(
        "--members",
        metavar="N",
        type=POSITIVE_INT,
        help="models with different seeds, whose probabilities are averaged (default: depends on "
        "the size of the data)",
    )
    group.add_argument(
        "--ngrams",
        metavar="N",
        type=INT_FROM_0,
        help="letters in a part of a word; 0 for none (default: 4 for short texts)",
    )
    group.add_argument(
        "--patience",
        metavar="N",
        type=POSITIVE_INT,
        help="stop after this many epochs without a better one",
    )
    group.add_argument(
        "--class-weight",
        choices=["balanced"],
        help="balanced: every class counts as much as any other, however rare",
    )
    group.add_argument("--encoding", metavar="NAME", help="of the file (default: utf-8)")
    group.add_argument(
        "--keep-repeated",
        action="store_true",
        help="keep samples that repeat an earlier one with the same label",
    )
    add_skip_empty(group)
    add_series(group)


def add_architecture(parser: argparse.ArgumentParser) -> None:
    """Add what a model is made of."""
    group = parser.add_argument_group("model (defaults fit the task)")
    group.add_argument(
        "--mixer",
        metavar="NAME[,NAME...]",
        default="attention",
        help=f"one for all layers, or one for each: {', '.join(MIXERS)}, or a plugin's: "
        "'mean(power=2)' (default: %(default)s)",
    )
    group.add_argument(
        "--layers",
        metavar="N",
        type=POSITIVE_INT,
        dest="n_layers",
        help="number of encoder blocks",
    )
    group.add_argument(
        "--d-model", metavar="N", type=POSITIVE_INT, help="number of features of a token"
    )
    group.add_argument(
        "--heads",
        metavar="N",
        type=POSITIVE_INT,
        dest="n_heads",
        help="number of heads of attention and the synthesizers",
    )
    group.add_argument(
        "--kv-heads",
        metavar="N",
        type=POSITIVE_INT,
        dest="n_kv_heads",
        help="number of heads of attention's keys and values, which its --heads share",
    )
    group.add_argument(
        "--window",
        metavar="N",
        type=POSITIVE_INT,
        help="how many neighbours a token attends to, in attention (default: all)",
    )
    group.add_argument(
        "--d-ff",
        metavar="N",
        type=POSITIVE_INT,
        help="number of features inside the feed-forward network",
    )
    group.add_argument(
        "--activation",
        metavar="NAME",
        help=f"of the feed-forward network: {', '.join(ACTIVATIONS)}",
    )
    group.add_argument(
        "--norm", choices=["post", "pre"], help="put the norm after or before each sublayer"
    )
    group.add_argument("--norm-kind", metavar="NAME", help=f"kind of norm: {', '.join(NORMS)}")
    group.add_argument(
        "--ffn", metavar="NAME", help=f"kind of feed-forward network: {', '.join(FFNS)}"
    )
    group.add_argument(
        "--initializer",
        metavar="NAME",
        help="initial values of feed-forward networks and projections: "
        f"{', '.join(INITIALIZERS)}; also 'normal(std=0.02)'",
    )
    group.add_argument(
        "--pooling",
        metavar="NAME",
        help=f"how the outputs of all tokens become one, for the classifier: {', '.join(POOLINGS)}",
    )
    group.add_argument(
        "--output",
        metavar="NAME",
        help=f"kind of output, which decides the loss: {', '.join(LOSSES)} (default: softmax); "
        "turns off the task's label smoothing",
    )
    group.add_argument(
        "--positions",
        choices=POSITIONS,
        help="positional encoding; rotary: attention rotates queries and keys",
    )
    group.add_argument(
        "--dropout", metavar="P", type=RATE, help="probability, at least 0 and below 1"
    )
    group.add_argument(
        "--token-dropout",
        metavar="P",
        type=RATE,
        help="probability of dropping the whole embedding of a token",
    )
    group.add_argument(
        "--attention-dropout",
        metavar="P",
        type=RATE,
        help="probability of dropping a weight after the softmax",
    )
    group.add_argument(
        "--ffn-dropout",
        metavar="P",
        type=RATE,
        help="probability of dropping a feature inside the feed-forward network",
    )
    group.add_argument("--share-layers", action="store_true", help="use one block for all layers")
    group.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        default="float32",
        help="of weights and features (default: %(default)s)",
    )


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add how a model is trained."""
    group = parser.add_argument_group("training (defaults fit the task)")
    group.add_argument(
        "--epochs", metavar="N", type=POSITIVE_INT, help="number of passes through the data"
    )
    group.add_argument(
        "--batch-size", metavar="N", type=POSITIVE_INT, help="samples in a training step"
    )
    group.add_argument(
        "--micro-batch",
        metavar="N",
        type=POSITIVE_INT,
        help="samples computed at a time; limits the memory",
    )
    group.add_argument("--lr", metavar="X", type=POSITIVE_FLOAT, help="peak learning rate of Adam")
    group.add_argument(
        "--schedule",
        metavar="NAME",
        help=f"of the learning rate: {', '.join(SCHEDULES)}; options as in 'cosine(final=0.1)'; "
        "total and warmup fit the task (default: cosine)",
    )
    group.add_argument(
        "--weight-decay", metavar="X", type=FLOAT_FROM_0, help="decoupled, as in AdamW"
    )
    group.add_argument(
        "--layer-decay",
        metavar="X",
        type=POSITIVE_FLOAT,
        help="learning rate of a layer, divided by that of the layer above it (default: 1; less "
        "with pretrained weights)",
    )
    group.add_argument(
        "--no-decay",
        metavar="NAMES",
        type=patterns,
        help="parameters without weight decay: norms-and-biases, or patterns such as '*.bias'",
    )
    group.add_argument("--label-smoothing", metavar="P", type=RATE, help="at least 0 and below 1")
    group.add_argument(
        "--clip-norm",
        metavar="X",
        type=POSITIVE_FLOAT,
        help="upper bound on the norm of the gradient",
    )
    group.add_argument(
        "--metric",
        metavar="NAME",
        choices=[*FIGURES, "loss"],
        help="what decides on the validation data which epoch is best (default: accuracy)",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        type=INT_FROM_0,
        default=0,
        help="of weights, batches, dropout and generated data (default: %(default)s)",
    )
    group.add_argument(
        "--workers",
        metavar="N",
        type=WORKERS,
        default="auto",
        help="CPU cores that share the batch of a rank, or auto (default: %(default)s)",
    )
    group.add_argument(
        "--shard-moments",
        action="store_true",
        help="with mpiexec: each rank stores Adam's moments for its part of the parameters only",
    )
    group.add_argument(
        "--masks",
        choices=["host", "device"],
        default="host",
        help="where dropout's masks are drawn: host gives the same run on every backend, device is "
        "faster on a GPU (default: %(default)s)",
    )


def add_run(options: Options) -> None:
    """Add what becomes of the folder of a run, and what is printed."""
    options.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in the folder from its last checkpoint, or begin one; --epochs may "
        "grow",
    )
    options.add_argument(
        "--overwrite",
        action="store_true",
        help="begin anew in the folder of an earlier run, which is kept until the new one has "
        "finished",
    )
    options.add_argument(
        "--quiet", action="store_true", help="print no progress bar and no summary"
    )
    options.add_argument("--verbose", action="store_true", help="print a summary of all layers")
