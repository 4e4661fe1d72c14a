"""The encoder and the models around it, forward and backward."""

from npformer.models.block import (
    EncoderBlock,
    post_norm,
    post_norm_backward,
    pre_norm,
    pre_norm_backward,
)
from npformer.models.config import POSITIONS, EncoderConfig
from npformer.models.encoder import Encoder
from npformer.models.input_embedding import InputEmbedding
from npformer.models.sequence_model import SequenceModel
from npformer.models.step import accumulate

__all__ = [
    "POSITIONS",
    "Encoder",
    "EncoderBlock",
    "EncoderConfig",
    "InputEmbedding",
    "SequenceModel",
    "accumulate",
    "post_norm",
    "post_norm_backward",
    "pre_norm",
    "pre_norm_backward",
]
