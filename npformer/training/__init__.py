"""Training a classifier with `fit`, evaluating it, and saving it to a file."""

from npformer.training.callbacks import Callback, TrainingState
from npformer.training.evaluation import Data, Evaluation, batch_at_evaluation, evaluate
from npformer.training.fit import fit
from npformer.training.history import History
from npformer.training.loss_watch import NonFiniteLossError
from npformer.training.predictions import predict_to_file

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
    "predict_to_file",
]
