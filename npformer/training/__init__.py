"""Training a model with `fit`, and evaluating it."""

from npformer.data.user_arrays import Data
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.evaluation import Evaluation, batch_at_evaluation, evaluate
from npformer.training.fit import fit
from npformer.training.history import History
from npformer.training.loss_watch import NonFiniteLossError

__all__ = [
    "Callback",
    "Data",
    "Evaluation",
    "History",
    "NonFiniteLossError",
    "TrainingState",
    "batch_at_evaluation",
    "evaluate",
    "fit",
]
