"""Models that can be trained: what they have in common, and the classifier of sequences."""

from npformer.models.trainable.encoder_decoder import EncoderDecoder
from npformer.models.trainable.language_model import LanguageModel
from npformer.models.trainable.masked_language_model import MaskedLanguageModel
from npformer.models.trainable.model import Model
from npformer.models.trainable.prediction_file import predict_to_file
from npformer.models.trainable.pretrained_weights import take_over
from npformer.models.trainable.sequence_classifier import SequenceClassifier

__all__ = [
    "EncoderDecoder",
    "LanguageModel",
    "MaskedLanguageModel",
    "Model",
    "SequenceClassifier",
    "predict_to_file",
    "take_over",
]
