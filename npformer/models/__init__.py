"""Encoder, decoder and the models around them, forward and backward."""

from npformer.core.support.missing_names import lead_to_names
from npformer.models.batch import Batch
from npformer.models.block import EncoderBlock
from npformer.models.config import POSITIONS, EncoderConfig
from npformer.models.decoder import Decoder, DecoderBlock
from npformer.models.encoder import Encoder
from npformer.models.input_embedding import InputEmbedding
from npformer.models.masked_tokens import MaskedTokens
from npformer.models.next_token import NextToken
from npformer.models.sequence_model import SequenceModel
from npformer.models.step import accumulate
from npformer.models.transformer import Transformer

__all__ = [
    "POSITIONS",
    "Batch",
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "EncoderConfig",
    "InputEmbedding",
    "MaskedTokens",
    "NextToken",
    "SequenceModel",
    "Transformer",
    "accumulate",
]

lead_to_names(__name__)
