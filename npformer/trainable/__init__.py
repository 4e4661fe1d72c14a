"""The classifier of sequences: the model that users call."""

from npformer.trainable.sequence_classifier import SequenceClassifier

__all__ = ["SequenceClassifier"]
