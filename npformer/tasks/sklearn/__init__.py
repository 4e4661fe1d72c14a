"""npformer in scikit-learn: `EncoderClassifier`. Needs the extra `sklearn`."""

from npformer.data.libraries import library

library("sklearn", "sklearn", "npformer.sklearn")

from npformer.tasks.sklearn.estimator import EncoderClassifier  # noqa: E402 - after its library

__all__ = ["EncoderClassifier"]
