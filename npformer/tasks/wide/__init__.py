"""The wide part of a text classifier: a linear map of its words and pairs of words."""

from npformer.tasks.wide import converters  # noqa: F401 - registers them for npformer.interop.to_onnx
from npformer.tasks.wide.bag import bag, bag_backward
from npformer.tasks.wide.layer import Wide
from npformer.tasks.wide.loss import TwoAnswers
from npformer.tasks.wide.model import WideSequenceClassifier, WideSequenceModel

__all__ = [
    "TwoAnswers",
    "Wide",
    "WideSequenceClassifier",
    "WideSequenceModel",
    "bag",
    "bag_backward",
]
