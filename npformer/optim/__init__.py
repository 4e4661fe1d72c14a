"""Optimizers by hand: what training asks of one, Adam, SGD, schedules, weight decay, clipping."""

from npformer.core.support.missing_names import lead_to_names
from npformer.optim.adam import Adam, adam_update
from npformer.optim.clipping import NonFiniteGradientError, clip_by_global_norm, global_norm
from npformer.optim.optimizer import Optimizer
from npformer.optim.schedules import (
    SCHEDULES,
    Schedule,
    constant,
    cosine,
    linear,
    schedule_for,
    schedule_of,
    warmup_inverse_sqrt,
)
from npformer.optim.sgd import SGD, sgd_update
from npformer.optim.weight_decay import NORMS_AND_BIASES

__all__ = [
    "NORMS_AND_BIASES",
    "SCHEDULES",
    "SGD",
    "Adam",
    "NonFiniteGradientError",
    "Optimizer",
    "Schedule",
    "adam_update",
    "clip_by_global_norm",
    "constant",
    "cosine",
    "global_norm",
    "linear",
    "schedule_for",
    "schedule_of",
    "sgd_update",
    "warmup_inverse_sqrt",
]

lead_to_names(__name__)
