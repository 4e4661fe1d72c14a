"""Training a classifier: the loop, what watches it, and what it leaves behind."""

from npformer.training.arguments import _at_precision
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.evaluation import Data, Evaluation, batch_at_evaluation, evaluate
from npformer.training.history import History, NonFiniteLossError
from npformer.training.loop import fit

__all__ = [
    "Callback",
    "Data",
    "Evaluation",
    "History",
    "NonFiniteLossError",
    "TrainingState",
    "_at_precision",
    "batch_at_evaluation",
    "evaluate",
    "fit",
]
