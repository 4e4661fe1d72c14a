"""From samples as they come to labels as people write them: texts in, labels out."""

from npformer.pipelines.file import load, save
from npformer.pipelines.raw_classifier import NotTrainedError, RawClassifier
from npformer.pipelines.scores import Scores
from npformer.pipelines.text_classifier import TextClassifier

__all__ = ["NotTrainedError", "RawClassifier", "Scores", "TextClassifier", "load", "save"]
