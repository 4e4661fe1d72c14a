"""The options of npformer train."""

import argparse
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from npformer.cli import common
from npformer.cli.common import option
from npformer.core import INITIALIZERS, checks
from npformer.data.pairs import PAIRS
from npformer.data.tables import SUFFIXES
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models import POSITIONS
from npformer.models.losses import LOSSES
from npformer.optim import SCHEDULES
from npformer.tasks.sources.kinds import TEXT_FILES, is_data_file
from npformer.tasks.sources.recipes import RECIPES
from npformer.training.trainable.metrics import FIGURES

EMBEDDED = {
    "sentences": "sentences.csv.gz",
    "shakespeare": "shakespeare.txt.gz",
    "pronunciations": "pronunciations.csv.gz",
}
"""Files that come with the package, by the word that stands for them."""


def add_model_options(group: Any) -> None:
    """Add the options of the model."""
    add = partial(option, group)
    mixers = f"one for all layers, or one for each: {', '.join(MIXERS)}"
    add("--mixer NAME[,NAME...]", f"{mixers}, or a plugin's: 'mean(power=2)'", "attention")
    add("--layers N", "number of encoder blocks", dest="n_layers")
    add("--d-model N", "features of a token")
    add("--heads N", "heads of attention and the synthesizers", dest="n_heads")
    add("--d-ff N", "features inside the feed-forward network")
    add("--activation NAME", f"of the feed-forward network: {', '.join(ACTIVATIONS)}")
    add("--norm", "layer norm after or before each sublayer", choices=("post", "pre"))
    add("--ffn NAME", f"kind of feed-forward network: {', '.join(FFNS)}")
    matrices = "initial values of feed-forward networks and projections"
    add("--initializer NAME", f"{matrices}: {', '.join(INITIALIZERS)}; also 'normal(std=0.02)'")
    add("--pooling NAME", f"what the classifier sees: {', '.join(POOLINGS)}")
    outputs = f"kind of output, which decides the loss: {', '.join(LOSSES)} (default: softmax)"
    add("--output NAME", f"{outputs}; turns off the task's label smoothing")
    add("--positions", "what is added to the embeddings", choices=POSITIONS)
    add("--dropout P", "probability, at least 0 and below 1")
    add("--token-dropout P", "of dropping the whole embedding of a token")
    add("--attention-dropout P", "of dropping a weight after the softmax")
    add("--ffn-dropout P", "of dropping a feature inside the feed-forward network")
    add("--share-layers", "use one block for all layers", default=None)
    add("--dtype", "of weights and features", "float32", choices=("float32", "float64"))


def add_training_options(group: Any) -> None:
    """Add the options of the training."""
    add = partial(option, group)
    add("--epochs N", "passes through the data")
    add("--batch-size N", "samples in a training step")
    add("--micro-batch N", "samples computed at a time; limits the memory")
    add("--lr X", "peak learning rate of Adam")
    names = f"of the learning rate: {', '.join(SCHEDULES)}; options as in 'cosine(final=0.1)'"
    add("--schedule NAME", f"{names}; total and warmup fit the task (default: cosine)")
    add("--weight-decay X", "decoupled, as in AdamW")
    spared = "parameters without weight decay: norms-and-biases, or patterns such as '*.bias'"
    add("--no-decay NAMES", spared, type=common.patterns_of)
    add("--label-smoothing P", "at least 0 and below 1")
    add("--clip-norm X", "upper bound on the norm of the gradient")
    best = "what decides on the validation data which epoch is best (default: accuracy)"
    add("--metric NAME", best, choices=(*FIGURES, "loss"))
    add("--seed N", "of weights, batches, dropout and generated data", 0)
    add(
        "--workers N",
        "CPU cores that share a batch of a rank, or auto",
        "auto",
        type=auto_or_int,
    )
    own = "with mpiexec: each rank has Adam's moments for its own part of the parameters only"
    add("--shard-moments", own, action="store_const", const=True)
    masks = "where dropout's masks are drawn: host gives the same run on every backend, device is"
    add("--masks", f"{masks} faster on a GPU", "host", choices=("host", "device"))


def task_or_file(word: str) -> str:
    """Return a word that is a task, or names a file of a known kind."""
    place = Path(word)
    if word in EMBEDDED and not place.exists():
        return str(resources.files("npformer.data").joinpath(EMBEDDED[word]))
    known = [*RECIPES, *EMBEDDED, *PAIRS]
    if word == "-" or word in known or place.exists() or is_data_file(place):
        return word
    raise argparse.ArgumentTypeError(
        f"{word!r} is neither a task nor a file; expected one of {', '.join(known)}, or a file "
        f"ending in {', '.join((*SUFFIXES, *TEXT_FILES))}, .npz{checks.did_you_mean(word, known)}"
    )


def auto_or_int(word: str) -> int | str:
    """Return the value of --workers; of any other word argparse says that it is no such value."""
    return word if word == "auto" else int(word)
