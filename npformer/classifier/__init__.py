"""The classifier of sequences: the model that users call."""

from npformer.classifier.sequence_classifier import SequenceClassifier

__all__ = ["SequenceClassifier"]
