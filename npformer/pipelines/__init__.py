"""From raw samples to labels or texts as people write them."""

from npformer.pipelines import file  # noqa: F401 - registers the models for npformer.save and load
from npformer.pipelines.raw_classifier import RawClassifier
from npformer.pipelines.raw_model import NotTrainedError, RawModel
from npformer.pipelines.scores import Scores
from npformer.pipelines.series_classifier import SeriesClassifier
from npformer.pipelines.text_classifier import TextClassifier
from npformer.pipelines.text_translator import TextTranslator
from npformer.pipelines.text_writer import TextScores, TextWriter
from npformer.pipelines.translations import Translations

__all__ = [
    "NotTrainedError",
    "RawClassifier",
    "RawModel",
    "Scores",
    "SeriesClassifier",
    "TextClassifier",
    "TextScores",
    "TextTranslator",
    "TextWriter",
    "Translations",
]
