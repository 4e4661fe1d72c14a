"""What X holds, token ids, series or texts, and its samples after scikit-learn's checks."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, validate_data

from npformer.core import checks
from npformer.data.lists import plain
from npformer.data.tokenizers.tokenizer import check_texts
from npformer.tasks.estimators.readers import Samples, SeriesReader

KINDS = {"tokens": "tokens", "series": "columns", "text": "text"}
"""What the defaults call each kind of inputs."""


def samples_of(estimator: Any, x: Any, *, reset: bool) -> tuple[str, Samples]:
    """Return the kind of X and its samples.

    With `reset`, the number of features and their names are stored in the estimator. Without it,
    they must be those stored before, and the kind is that of `fit`.
    """
    checks.choice("inputs", estimator.inputs, ("auto", *KINDS))
    inputs = estimator.inputs if reset else estimator.inputs_
    if not issparse(x):  # some of which are dicts; scikit-learn refuses them in its own words
        checks.ordered("X", x)
    if isinstance(x, str):
        raise ValueError(f"X is one text, {x[:40]!r}; expected a list of texts: [X]")
    x = plain(x)
    if _holds_strings(x):
        if inputs in ("auto", "text"):
            return "text", _texts(estimator, x, reset)
        raise ValueError(
            f"X holds strings and inputs is {inputs!r}; expected numbers. For texts pass "
            "inputs='text'; turn tokens that are strings into ids with a tokenizer, or with "
            "sklearn.preprocessing.OrdinalEncoder"
        )
    if inputs == "text":
        raise ValueError(
            "X holds no strings and inputs is 'text'; expected a list, an array or a Series of "
            "str, or a DataFrame of one column"
        )
    x = _to_array(x)
    if isinstance(x, list):
        samples: Samples = _check_ragged(estimator, x, reset)
    elif getattr(x, "ndim", 2) == 3:
        samples = array = check_array(x, allow_nd=True, estimator=estimator, input_name="X")
        validate_data(estimator, array[0], skip_check_array=True, reset=reset)
    else:
        samples = validate_data(estimator, x, reset=reset)
    is_whole = samples[0].ndim == 1 and samples[0].dtype.kind in "iub"
    if inputs == "auto":
        inputs = "tokens" if is_whole else "series"
    return inputs, _ids(samples) if inputs == "tokens" else samples


def _holds_strings(x: Any) -> bool:
    """Return whether some entry is a str: of X, or of the first row of a list of lists."""
    if isinstance(x, list | tuple):
        rows = x[0] if len(x) and isinstance(x[0], list | tuple) else x
        return any(isinstance(item, str) for item in rows)
    if len(getattr(x, "shape", ())) not in (1, 2):  # frames of polars and pyarrow have no ndim
        return False
    array = np.asarray(x)
    if array.dtype.kind == "O":
        return any(isinstance(item, str) for item in array.flat)
    return array.dtype.kind in "UT"


def _texts(estimator: Any, x: Any, reset: bool) -> list[str]:
    """Return the texts of a list, an array, a Series, or a DataFrame of one column."""
    array = np.asarray(x, dtype=object)
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        raise ValueError(
            f"X holds strings in an array of shape {array.shape}; expected one column of texts, "
            "or token ids as numbers. Choose the column: X['text'], or a ColumnTransformer"
        )
    if hasattr(x, "columns"):
        validate_data(estimator, x, skip_check_array=True, reset=reset)
    return check_texts(array.ravel(), "X")


def _to_array(x: Any) -> Any:
    """Return a list, or an array of arrays, as one array; as a list if the shapes differ."""
    if getattr(x, "ndim", 0) == 1 and len(x) and hasattr(np.asarray(x)[0], "__len__"):
        x = list(x)
    if not isinstance(x, list | tuple):
        return x
    try:
        return np.asarray(x)
    except ValueError:  # the shapes differ
        return list(x)


def _check_ragged(estimator: Any, rows: list[Any], reset: bool) -> list[np.ndarray]:
    """Check samples of several lengths, token ids or series, and return them."""
    series = SeriesReader(None, scale=False, dtype="float64").check_samples(rows, "X")
    samples = [np.asarray(row) for row in rows]
    if all(sample.ndim == 2 for sample in samples):
        validate_data(estimator, series[0], skip_check_array=True, reset=reset)
        return series
    if not all(sample.ndim == 1 and sample.dtype.kind in "iu" for sample in samples):
        other = next((i for i, sample in enumerate(samples) if len(sample) != len(samples[0])), 0)
        raise ValueError(
            f"X is a ragged list: row {other} has length {len(samples[other])} and row 0 "
            f"{len(samples[0])}; expected one length. Only token ids, whole numbers, and arrays "
            "(length, n_features) may differ in length: for series of one feature pass "
            "[numpy.reshape(row, (-1, 1)) for row in X]"
        )
    return samples


def _ids(samples: Any) -> Samples:
    """Return token ids as int64. Whole numbers may have a float dtype."""
    if samples[0].ndim != 1:
        raise ValueError(
            f"samples of X have shape {samples[0].shape} and inputs is 'tokens'; expected "
            "(length,) token ids. For series of feature vectors pass inputs='series'"
        )
    if isinstance(samples, list):
        return [sample.astype("int64") for sample in samples]
    if samples.dtype.kind == "f" and (broken := samples != np.rint(samples)).any():
        row, column = np.argwhere(broken)[0].tolist()
        raise ValueError(
            f"X holds {samples[row, column]} in row {row}, column {column}, and inputs is "
            "'tokens'; expected whole numbers, token ids. For series pass inputs='series'"
        )
    return np.asarray(samples.astype("int64"))
