"""npformer: the Transformer encoder written out by hand in NumPy.

    config = npformer.EncoderConfig(d_model=64, n_layers=2, mixer="attention")
    model = npformer.SequenceClassifier(config, n_classes=10, n_features=8)
    history = npformer.fit(model, (x, y))

`functional` holds the mathematics, `layers` and `mixers` its parts with parameters, `gradcheck`
proves them, `data` has something to train on.
"""

from npformer import data, functional, interop, layers, losses, mixers, optim, seeds
from npformer.backend import (
    BackendUnavailableError,
    BatchTooLargeError,
    asarray,
    backends,
    to_numpy,
    use_precision,
)
from npformer.checkpoint import CheckpointError, load, read_notes, save
from npformer.classifier import SequenceClassifier
from npformer.encoder import Encoder, EncoderBlock, EncoderConfig
from npformer.engine import fast, use_kernels
from npformer.engine.workspace import Workspace
from npformer.gradcheck import GradcheckError, GradcheckReport, gradcheck
from npformer.mixers import MIXERS
from npformer.module import Context, Gradients, Layer, Parameter, Parameters
from npformer.optim import Adam, clip_by_global_norm
from npformer.text_encoder import TextEncoder
from npformer.trace import explain, summary, trace
from npformer.training import (
    Callback,
    Evaluation,
    History,
    NonFiniteLossError,
    TrainingState,
    evaluate,
    fit,
)

__version__ = "0.1.0"

__all__ = [
    "MIXERS",
    "Adam",
    "BackendUnavailableError",
    "BatchTooLargeError",
    "Callback",
    "CheckpointError",
    "Context",
    "Encoder",
    "EncoderBlock",
    "EncoderConfig",
    "Evaluation",
    "GradcheckError",
    "GradcheckReport",
    "Gradients",
    "History",
    "Layer",
    "NonFiniteLossError",
    "Parameter",
    "Parameters",
    "SequenceClassifier",
    "TextEncoder",
    "TrainingState",
    "Workspace",
    "asarray",
    "backends",
    "clip_by_global_norm",
    "data",
    "evaluate",
    "explain",
    "fast",
    "fit",
    "functional",
    "gradcheck",
    "interop",
    "layers",
    "load",
    "losses",
    "mixers",
    "optim",
    "read_notes",
    "save",
    "seeds",
    "summary",
    "to_numpy",
    "trace",
    "use_kernels",
    "use_precision",
]
