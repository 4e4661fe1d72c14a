"""npformer: the Transformer encoder written out by hand in NumPy.

    config = npformer.EncoderConfig(d_model=64, n_layers=2, mixer="attention")
    model = npformer.SequenceClassifier(config, n_classes=10, n_features=8)
    history = npformer.fit(model, (x, y))

`functional` holds the mathematics; `layers` and `mixers` add parameters to it. `gradcheck` checks
their gradients, and `data` has tasks to train on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from npformer import (
    data,
    distributed,
    functional,
    layers,
    losses,
    mixers,
    optim,
)
from npformer.core import (
    BackendUnavailableError,
    BatchTooLargeError,
    Context,
    Gradients,
    Layer,
    Parameter,
    Parameters,
    TwoInputLayer,
    asarray,
    backends,
    to_numpy,
    use_precision,
)
from npformer.engine import fast, use_kernels
from npformer.engine.workspace import Workspace
from npformer.inspection.explain import explain
from npformer.inspection.summary import summary
from npformer.inspection.trace import trace
from npformer.mixers import MIXERS
from npformer.models import Decoder, DecoderBlock, Encoder, EncoderBlock, EncoderConfig
from npformer.models import published_snippets as published
from npformer.optim import Adam, NonFiniteGradientError, clip_by_global_norm
from npformer.pipelines import SeriesClassifier, TextClassifier, TextTranslator, TextWriter
from npformer.storage.model_file import CheckpointError, CheckpointWarning
from npformer.storage.models import load, read_notes, save
from npformer.text_encoder import TextEncoder
from npformer.trainable import (
    EncoderDecoder,
    LanguageModel,
    Model,
    SequenceClassifier,
    predict_to_file,
)
from npformer.training import (
    Callback,
    Evaluation,
    History,
    NonFiniteLossError,
    TrainingState,
    evaluate,
    fit,
)
from npformer.training.own_loop import Checkpoint, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from npformer import interop
    from npformer.interop import from_pretrained
    from npformer.proof.gradcheck import GradcheckError, GradcheckReport, gradcheck
    from npformer.reporting import report

__version__ = "0.1.0"

__all__ = [
    "MIXERS",
    "Adam",
    "BackendUnavailableError",
    "BatchTooLargeError",
    "Callback",
    "Checkpoint",
    "CheckpointError",
    "CheckpointWarning",
    "Context",
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "EncoderConfig",
    "EncoderDecoder",
    "Evaluation",
    "GradcheckError",
    "GradcheckReport",
    "Gradients",
    "History",
    "LanguageModel",
    "Layer",
    "Model",
    "NonFiniteGradientError",
    "NonFiniteLossError",
    "Parameter",
    "Parameters",
    "SequenceClassifier",
    "SeriesClassifier",
    "TextClassifier",
    "TextEncoder",
    "TextTranslator",
    "TextWriter",
    "TrainingState",
    "TwoInputLayer",
    "Workspace",
    "asarray",
    "backends",
    "clip_by_global_norm",
    "data",
    "distributed",
    "evaluate",
    "explain",
    "fast",
    "fit",
    "from_pretrained",
    "functional",
    "gradcheck",
    "interop",
    "layers",
    "load",
    "load_checkpoint",
    "losses",
    "mixers",
    "optim",
    "predict_to_file",
    "published",
    "read_notes",
    "report",
    "save",
    "save_checkpoint",
    "summary",
    "to_numpy",
    "trace",
    "use_kernels",
    "use_precision",
]

_WHEN_NEEDED = {
    "GradcheckError": "proof.gradcheck",
    "GradcheckReport": "proof.gradcheck",
    "from_pretrained": "interop",
    "gradcheck": "proof.gradcheck",
    "report": "reporting",
}
"""Rarely used names and their modules. Importing them too would take an eighth longer."""


def __getattr__(name: str) -> Any:
    """Import rarely used names on first use (PEP 562)."""
    if name == "interop":
        return import_module("npformer.interop")
    if name in _WHEN_NEEDED:
        return getattr(import_module(f"npformer.{_WHEN_NEEDED[name]}"), name)
    raise AttributeError(f"module 'npformer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
