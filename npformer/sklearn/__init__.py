"""npformer in scikit-learn: `EncoderClassifier`. Needs the extra `sklearn`."""

try:
    import sklearn as _  # the library: npformer's own folder is npformer.sklearn
except ImportError as error:
    raise ImportError(
        f"npformer.sklearn needs scikit-learn, which cannot be imported here ({error}); install it "
        'with  python -m pip install "npformer[sklearn]"'
    ) from error

from npformer.sklearn.estimator import EncoderClassifier

__all__ = ["EncoderClassifier"]
