"""From samples as they come to labels as people write them: texts or series in, labels out."""

from npformer.pipelines import file  # noqa: F401 - adds to what npformer.save and load know
from npformer.pipelines.raw_classifier import NotTrainedError, RawClassifier
from npformer.pipelines.scores import Scores
from npformer.pipelines.series_classifier import SeriesClassifier
from npformer.pipelines.text_classifier import TextClassifier

__all__ = [
    "NotTrainedError",
    "RawClassifier",
    "Scores",
    "SeriesClassifier",
    "TextClassifier",
]
