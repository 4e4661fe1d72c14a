"""Numbers as labels: quantities to estimate, most likely, and not the names of classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from npformer.data.cells import parse_number
from npformer.tasks.estimators.class_names import rarely_repeat

MOST_GRADES = 20
"""Up to so many different numbers may be names of classes, such as grades."""

IN_PYTHON = (
    "To estimate numbers is regression, which is not a command. In Python: "
    "nf.SequenceClassifier(config, n_classes=1, vocab_size=..., output='mean_squared_error') and "
    "nf.fit; docs/your_data.md#losses shows it"
)


def check_are_no_numbers(where: str, labels: Sequence[Any]) -> None:
    """Raise ValueError for numbers that rarely repeat; warn about others that may be quantities.

    Numbers of which most occur once, or of more than 20 different ones some with a fraction, are
    quantities. Others, such as the grades 1, 1.5, 2, can be names of classes. Numbers that count
    the samples are neither: `rarely_repeat` tells what they are.
    """
    numbers = [parse_number(label) for label in labels]
    values = {number for number in numbers if number is not None}
    count_samples = (
        len(values) == len(labels) == max(values, default=0) - min(values, default=0) + 1
    )
    if None in numbers or count_samples:
        return
    have_fractions = any(value % 1 for value in values)
    are_many = len(values) > MOST_GRADES
    if rarely_repeat(labels) or (are_many and have_fractions):
        raise ValueError(
            f"{where} are {len(values):,} different numbers, such as {labels[0]}; expected the "
            f"names of a few classes, with several samples each. {IN_PYTHON}. Or group them: low, "
            "medium, high"
        )
    if are_many or have_fractions:
        warnings.warn(
            f"{where} are {len(values):,} numbers, such as {labels[0]}, and are taken for names of "
            f"classes: that 2 is nearer to 3 than to 9 is not used. {IN_PYTHON}",
            stacklevel=2,
        )


def _count_samples(values: set[float], n: int) -> bool:
    """Return whether values are consecutive whole numbers, a different one for each sample."""
    return len(values) == n and n > 0 and max(values) - min(values) == n - 1
