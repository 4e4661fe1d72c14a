"""One sample that a model of the package takes, for those who want to see its shapes."""

from typing import Any

import numpy as np

from npformer.core import Layer


def example_of(layer: Layer) -> Any:
    """Return a sample of the greatest length; for two inputs a tuple.

    Raises
    ------
    TypeError
        The layer does not say what it takes.
    """
    config = getattr(layer, "config", None)
    if config is None:
        raise TypeError(
            f"x is not given, and a {type(layer).__name__} does not say which shape it takes; "
            "expected an array, such as summary(layer, x[:1])"
        )
    padding_id = getattr(layer, "padding_id", None)
    decoder_config = getattr(layer, "decoder_config", None)
    if decoder_config is not None:
        return _ids(config.max_len, padding_id), _ids(decoder_config.max_len, padding_id)
    if getattr(layer, "vocab_size", None) is not None:
        return _ids(config.max_len, padding_id)
    n_features = getattr(layer, "n_features", None) or config.d_model
    return np.zeros((1, config.max_len, n_features), dtype=layer.dtype)


def _ids(length: int, padding_id: int | None) -> np.ndarray:
    """Return (1, length) token ids, none of which is padding."""
    token = 1 if padding_id == 0 else 0
    return np.full((1, length), token)
