"""Options of a model and of its training, which `npformer train` and `npformer pretrain` take."""

import argparse

from npformer.cli.options import (
    FLOAT_FROM_0,
    INT_FROM_0,
    POSITIVE_FLOAT,
    POSITIVE_INT,
    RATE,
    WORKERS,
    patterns,
)
from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models import POSITIONS
from npformer.models.losses import LOSSES
from npformer.models.trainable.metrics import FIGURES
from npformer.optim import SCHEDULES


def add_architecture(parser: argparse.ArgumentParser) -> None:
    """Add what a model is made of."""
    group = parser.add_argument_group("model (defaults depend on the data)")
    group.add_argument(
        "--mixer",
        metavar="NAME[,NAME...]",
        default="attention",
        help=f"token mixer: one for all layers, or one for each: {', '.join(MIXERS)}, or a "
        "plugin's, such as "
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
        "--d-model", metavar="N", type=POSITIVE_INT, help="width of the model: features per token"
    )
    group.add_argument(
        "--heads",
        metavar="N",
        type=POSITIVE_INT,
        dest="n_heads",
        help="number of attention heads, or of a synthesizer's",
    )
    group.add_argument(
        "--kv-heads",
        metavar="N",
        type=POSITIVE_INT,
        dest="n_kv_heads",
        help="number of heads of keys and values, shared by the --heads heads of queries "
        "(grouped-query attention)",
    )
    group.add_argument(
        "--window",
        metavar="N",
        type=POSITIVE_INT,
        help="attention window: how many neighbours a token attends to (default: all)",
    )
    group.add_argument(
        "--d-ff",
        metavar="N",
        type=POSITIVE_INT,
        help="hidden size of the feed-forward network",
    )
    group.add_argument(
        "--activation",
        metavar="NAME",
        help=f"of the feed-forward network: {', '.join(ACTIVATIONS)}",
    )
    group.add_argument(
        "--norm",
        choices=["post", "pre"],
        help="normalize after (post) or before (pre) each sublayer",
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
        help=f"how the outputs of tokens become one vector: {', '.join(POOLINGS)}",
    )
    group.add_argument(
        "--output",
        metavar="NAME",
        help=f"kind of output, which decides the loss: {', '.join(LOSSES)} (default: softmax); "
        "any name turns off the task's label smoothing",
    )
    group.add_argument(
        "--positions",
        choices=POSITIONS,
        help="positional encoding; rotary (RoPE) rotates queries and keys in attention",
    )
    group.add_argument(
        "--dropout",
        metavar="P",
        type=RATE,
        help="dropout rate, at least 0 and below 1; --token-dropout stays as it is",
    )
    group.add_argument(
        "--token-dropout",
        metavar="P",
        type=RATE,
        help="probability of dropping the whole embedding of a token, apart from --dropout "
        "(default: 0.3 for texts, else 0)",
    )
    group.add_argument(
        "--attention-dropout",
        metavar="P",
        type=RATE,
        help="probability of dropping an attention weight",
    )
    group.add_argument(
        "--ffn-dropout",
        metavar="P",
        type=RATE,
        help="probability of dropping a feature inside the feed-forward network",
    )
    group.add_argument(
        "--share-layers", action="store_true", help="share one block's weights across all layers"
    )
    group.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        default="float32",
        help="data type of weights and features (default: %(default)s)",
    )


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add how a model is trained."""
    group = parser.add_argument_group("training (defaults depend on the data)")
    group.add_argument(
        "--epochs", metavar="N", type=POSITIVE_INT, help="number of passes through the data"
    )
    group.add_argument(
        "--batch-size", metavar="N", type=POSITIVE_INT, help="batch size: samples per training step"
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
        help=f"learning-rate schedule: {', '.join(SCHEDULES)}; options as in 'cosine(final=0.1)'; "
        "total and warmup are set to fit the task (default: cosine)",
    )
    group.add_argument(
        "--weight-decay", metavar="X", type=FLOAT_FROM_0, help="decoupled weight decay, as in AdamW"
    )
    group.add_argument(
        "--layer-decay",
        metavar="X",
        type=POSITIVE_FLOAT,
        help="ratio of a layer's learning rate to that of the layer above (default: 1; lower"
        " with pretrained weights)",
    )
    group.add_argument(
        "--no-decay",
        metavar="NAMES",
        type=patterns,
        help="parameters without weight decay: norms-and-biases, or patterns such as '*.bias'",
    )
    group.add_argument(
        "--label-smoothing", metavar="P", type=RATE, help="label smoothing, at least 0 and below 1"
    )
    group.add_argument(
        "--clip-norm",
        metavar="X",
        type=POSITIVE_FLOAT,
        help="clip gradients to this norm",
    )
    group.add_argument(
        "--metric",
        metavar="NAME",
        choices=[*FIGURES, "loss"],
        help="metric that picks the best epoch on the validation data (default: accuracy)",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        type=INT_FROM_0,
        default=0,
        help="random seed for weights, batches, dropout and generated data (default: %(default)s)",
    )
    group.add_argument(
        "--workers",
        metavar="N",
        type=WORKERS,
        default="auto",
        help="CPU cores that share the batch of each process, or auto (default: %(default)s)",
    )
    group.add_argument(
        "--shard-moments",
        action="store_true",
        help="with mpiexec: each rank stores Adam's moments only for its part of the parameters",
    )
    group.add_argument(
        "--masks",
        choices=["host", "device"],
        default="host",
        help="where dropout's masks are sampled: host gives the same run on every backend, "
        "device is faster on a GPU (default: %(default)s)",
    )
