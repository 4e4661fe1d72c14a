"""From raw samples to labels or texts as people write them."""

from npformer.tasks.estimators import file  # noqa: F401 - registers the models for npformer.save and load
from npformer.tasks.estimators.classifier import Classifier
from npformer.tasks.estimators.estimator import Estimator, NotTrainedError
from npformer.tasks.estimators.scores import Scores
from npformer.tasks.estimators.series_classifier import SeriesClassifier
from npformer.tasks.estimators.text_classifier import TextClassifier
from npformer.tasks.estimators.text_filler import FillerScores, TextFiller
from npformer.tasks.estimators.text_translator import TextTranslator
from npformer.tasks.estimators.text_writer import TextScores, TextWriter
from npformer.tasks.estimators.translations import Translations

__all__ = [
    "Classifier",
    "Estimator",
    "FillerScores",
    "NotTrainedError",
    "Scores",
    "SeriesClassifier",
    "TextClassifier",
    "TextFiller",
    "TextScores",
    "TextTranslator",
    "TextWriter",
    "Translations",
]
