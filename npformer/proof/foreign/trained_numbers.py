"""Numbers that an object trains, such as ``self.gamma = 1.0`` with its gradient in ``self.dgamma``.

They become arrays without axes in the copy that is checked, and are parameters from there on. A
number without a gradient, such as epsilon or a momentum, is left alone.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from npformer.proof.foreign.arrays_inside import changed_arrays, numbers_inside, unlike, write
from npformer.proof.foreign.gradient_names import looks_trained, match_gradients
from npformer.proof.foreign.stateful import BackwardRun, StatefulObject

Arrays = Mapping[str, np.ndarray]


def hold_trained_numbers(
    obj: StatefulObject,
    run: BackwardRun,
    returned: Arrays,
    named_by_user: Iterable[str] | None,
    depends_on: Callable[[StatefulObject, str], bool],
) -> list[str]:
    """Replace the trained numbers of an object by arrays without axes; return their paths.

    Parameters
    ----------
    obj : StatefulObject
        Its copy, `base`, is changed.
    run : BackwardRun
        A backward pass of it.
    returned : mapping of str to array
        The numbers that the backward pass returned, by their places.
    named_by_user : iterable of str, optional
        The parameters, if the user says which there are.
    depends_on : function
        Whether the output depends on what is at a path.
    """
    numbers = numbers_inside(obj.base)
    if named_by_user is not None:
        trained = [path for path in named_by_user if path in numbers]
    else:
        candidates = _trained_by_name(obj, run, numbers, returned)
        trained = [path for path in candidates if depends_on(obj, path)]
        trained += _trained_in_order(obj, numbers, returned, trained, depends_on)
    for path in trained:
        write(obj.base, path, numbers[path])
    return trained


def changed_numbers(run: BackwardRun) -> dict[str, np.ndarray]:
    """Return the numbers that a backward pass has written, and those that are 0 after it."""
    after = numbers_inside(run.instance)
    zeros = {path: number for path, number in after.items() if number == 0.0}
    return unlike(after, run.numbers_before) | zeros


def _trained_by_name(
    obj: StatefulObject, run: BackwardRun, numbers: Arrays, returned: Arrays
) -> list[str]:
    """Return the numbers that the backward pass updates, or that have a gradient by its name."""
    written = changed_numbers(run)
    if obj.backward_call.takes_rate:
        return [path for path in numbers if path in unlike(written, run.numbers_before)]
    arrays = changed_arrays(run.instance, run.before)
    of_one_entry = {path: array.reshape(()) for path, array in arrays.items() if array.size == 1}
    by_key = {place: number for place, number in returned.items() if place.endswith("']")}
    return [*match_gradients(numbers, {**written, **of_one_entry, **by_key}, exact=True)]


def _trained_in_order(
    obj: StatefulObject,
    numbers: Arrays,
    returned: Arrays,
    settled: list[str],
    depends_on: Callable[[StatefulObject, str], bool],
) -> list[str]:
    """Return the numbers for which gradients without names were returned, if as many were."""
    nameless = [place for place in returned if not place.endswith("']")]
    if not nameless or settled:
        return []
    trained = [path for path in numbers if looks_trained(path) and depends_on(obj, path)]
    return trained if len(trained) == len(nameless) else []
