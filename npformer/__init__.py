"""npformer: the Transformer encoder written out by hand in NumPy.

    config = npformer.EncoderConfig(d_model=64, n_layers=2, mixer="attention")
    model = npformer.SequenceClassifier(config, n_classes=10, n_features=8)
    history = npformer.fit(model, (x, y))

`functional` holds the mathematics; `layers` and `mixers` add parameters to it. `gradcheck` checks
their gradients, and `data` has tasks to train on.

Each public name below is imported when it is first used (PEP 562), so a program loads only the
rooms that it enters. ``__init__.pyi`` has the same names for editors and type checkers.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

MODULES = {
    "core": "npformer.core",
    "data": "npformer.data",
    "distributed": "npformer.training.distributed",
    "engine": "npformer.engine",
    "functional": "npformer.functional",
    "interop": "npformer.interop",
    "layers": "npformer.layers",
    "losses": "npformer.models.losses",
    "mixers": "npformer.mixers",
    "models": "npformer.models",
    "optim": "npformer.optim",
    "published": "npformer.learn.museum.published",
    "sklearn": "npformer.tasks.sklearn",  # needs the extra `sklearn`
}
"""Each public module, by its short name."""

WITH_PARTS = ["functional", "layers", "losses", "mixers", "models", "optim", "data", "core"]
"""Modules whose names may be missed at the top of the package."""

_NAMES = {
    # the foundation
    "BackendUnavailableError": "npformer.core",
    "BatchTooLargeError": "npformer.core",
    "Context": "npformer.core",
    "Gradients": "npformer.core",
    "Layer": "npformer.core",
    "Parameter": "npformer.core",
    "Parameters": "npformer.core",
    "TwoInputLayer": "npformer.core",
    "asarray": "npformer.core",
    "backends": "npformer.core",
    "to_numpy": "npformer.core",
    "use_kernels": "npformer.core.dispatch",
    "use_precision": "npformer.core",
    # mixers and models
    "MIXERS": "npformer.mixers",
    "Decoder": "npformer.models",
    "DecoderBlock": "npformer.models",
    "Encoder": "npformer.models",
    "EncoderBlock": "npformer.models",
    "EncoderConfig": "npformer.models",
    "EncoderDecoder": "npformer.models.trainable",
    "LanguageModel": "npformer.models.trainable",
    "MaskedLanguageModel": "npformer.models.trainable",
    "Model": "npformer.models.trainable",
    "SequenceClassifier": "npformer.models.trainable",
    "TextEncoder": "npformer.models.trainable.text_encoder",
    "predict_to_file": "npformer.models.trainable",
    # the loop, and optimizers
    "Adam": "npformer.optim",
    "NonFiniteGradientError": "npformer.optim",
    "SGD": "npformer.optim",
    "clip_by_global_norm": "npformer.optim",
    "train": "npformer.loop",
    # the proof
    "GradcheckError": "npformer.proof.report",
    "GradcheckReport": "npformer.proof.report",
    "OptimcheckError": "npformer.proof.promises",
    "OptimcheckReport": "npformer.proof.promises",
    "PromiseError": "npformer.proof.promises",
    "PromiseReport": "npformer.proof.promises",
    "dropoutcheck": "npformer.proof.promises",
    "evaluationcheck": "npformer.proof.promises",
    "gradcheck": "npformer.engine.gradcheck",
    "maskcheck": "npformer.proof.promises",
    "optimcheck": "npformer.proof.promises",
    "schedulecheck": "npformer.proof.promises",
    # the engine
    "Workspace": "npformer.engine",
    "fast": "npformer.engine",
    # training
    "Callback": "npformer.training.callbacks",
    "Checkpoint": "npformer.training.own_loop",
    "CheckpointError": "npformer.training.storage.model_file",
    "CheckpointWarning": "npformer.training.storage.model_file",
    "Evaluation": "npformer.training.evaluation",
    "History": "npformer.training.history",
    "NonFiniteLossError": "npformer.training.watchers",
    "TrainingState": "npformer.training.callbacks",
    "evaluate": "npformer.training.evaluation",
    "explain": "npformer.training.inspection.explain",
    "fit": "npformer.training.fit",
    "save_checkpoint": "npformer.training.own_loop",
    "step_memory": "npformer.training.step_memory",
    "summary": "npformer.training.inspection.summary",
    "trace": "npformer.training.inspection.trace",
    # texts, series, files, and other libraries
    "SeriesClassifier": "npformer.tasks.estimators",
    "TextClassifier": "npformer.tasks.estimators",
    "TextFiller": "npformer.tasks.estimators",
    "TextTranslator": "npformer.tasks.estimators",
    "TextWriter": "npformer.tasks.estimators",
    "fill": "npformer.tasks.estimators.filling",
    "from_pretrained": "npformer.interop",
    "load": "npformer.tasks.estimators.file",  # imports every class that a file may hold
    "load_checkpoint": "npformer.tasks.estimators.file",
    "read_notes": "npformer.tasks.estimators.file",
    "report": "npformer.tasks.reports",
    "save": "npformer.tasks.estimators.file",
}
"""The module of each other public name."""

__all__ = sorted({*MODULES, *_NAMES} - {"sklearn"})


def __getattr__(name: str) -> Any:
    if name in MODULES:
        value: Any = import_module(MODULES[name])
    elif name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name.startswith("_") or find_spec(f"npformer.{name}") is not None:
        # Python asks for these before it imports a folder of the package
        raise AttributeError(f"module 'npformer' has no attribute {name!r}")
    else:
        from npformer.core.support.missing_names import missing_name_error

        advice = (
            "; write Encoder, SequenceClassifier or LanguageModel; their parts: npformer.layers"
        )
        raise missing_name_error(__name__, name, __all__, advice)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from npformer.core.support.missing_names import public_names

    return public_names(globals(), __all__)


def _importable(name: str) -> None:
    """Let ``from npformer.NAME import ...`` find a module that lies deeper in the house."""
    module = ModuleType(f"{__name__}.{name}")
    module.__getattr__ = lambda attribute: getattr(__getattr__(name), attribute)  # type: ignore[method-assign]
    sys.modules[module.__name__] = module


for _name in ("distributed", "losses", "sklearn"):
    _importable(_name)
