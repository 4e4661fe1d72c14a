"""Adam by hand, its schedules, weight decay and clipping, and moments that ranks share out."""

from npformer.optim.adam import Adam, adam_update
from npformer.optim.clipping import NonFiniteGradientError, clip_by_global_norm, global_norm
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
from npformer.optim.weight_decay import NORMS_AND_BIASES

__all__ = [
    "NORMS_AND_BIASES",
    "SCHEDULES",
    "Adam",
    "NonFiniteGradientError",
    "Schedule",
    "adam_update",
    "clip_by_global_norm",
    "constant",
    "cosine",
    "global_norm",
    "linear",
    "schedule_for",
    "schedule_of",
    "warmup_inverse_sqrt",
]
