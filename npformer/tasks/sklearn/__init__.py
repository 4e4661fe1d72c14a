"""npformer in scikit-learn: `EncoderClassifier`. Needs the extra `sklearn`."""

from npformer.core.support.missing_names import lead_to_names
from npformer.data.libraries import library

library("sklearn", "sklearn", "npformer.sklearn")

from npformer.tasks.sklearn.estimator import EncoderClassifier  # noqa: E402 - after its library

__all__ = ["EncoderClassifier"]

lead_to_names(__name__)
