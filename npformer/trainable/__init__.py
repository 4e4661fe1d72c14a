"""Models that can be trained: what they have in common, and the classifier of sequences."""

from npformer.trainable.encoder_decoder import EncoderDecoder
from npformer.trainable.language_model import LanguageModel
from npformer.trainable.model import Model
from npformer.trainable.prediction_file import predict_to_file
from npformer.trainable.sequence_classifier import SequenceClassifier, WideSequenceClassifier

__all__ = [
    "EncoderDecoder",
    "LanguageModel",
    "Model",
    "SequenceClassifier",
    "WideSequenceClassifier",
    "predict_to_file",
]
