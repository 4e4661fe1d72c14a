"""npformer in scikit-learn: `EncoderClassifier`. Needs the extra `sklearn`."""

try:
    import sklearn  # noqa: F401 - the library, not this folder, which is npformer.sklearn
except ImportError as error:
    raise ImportError(
        f"npformer.sklearn needs scikit-learn, which cannot be imported here ({error}); install it "
        'with  python -m pip install "npformer[sklearn]"'
    ) from error

from npformer.tasks.sklearn.estimator import EncoderClassifier

__all__ = ["EncoderClassifier"]
