"""Models that can be trained: what they have in common, and the classifier of sequences."""

from npformer.training.trainable.encoder_decoder import EncoderDecoder
from npformer.training.trainable.language_model import LanguageModel
from npformer.training.trainable.masked_language_model import MaskedLanguageModel
from npformer.training.trainable.model import Model
from npformer.training.trainable.prediction_file import predict_to_file
from npformer.training.trainable.sequence_classifier import (
    SequenceClassifier,
    WideSequenceClassifier,
)
from npformer.training.trainable.taking_over import take_over

__all__ = [
    "EncoderDecoder",
    "LanguageModel",
    "MaskedLanguageModel",
    "Model",
    "SequenceClassifier",
    "WideSequenceClassifier",
    "predict_to_file",
    "take_over",
]
