"""Name the gradients that a backward pass returned."""

from collections.abc import Mapping, Sequence
from typing import Any

from npformer.core import describe


def name_gradients(gradients: Any, names: Sequence[str], who: str, advice: str) -> dict[str, Any]:
    """Return what a backward pass returned, by the names of what it differentiates.

    A tuple or a list has one gradient for each name, in this order; a dictionary has them under
    ``x`` or ``dx``.
    """
    expected = ", ".join(f"d{name}" for name in names)
    if isinstance(gradients, Mapping):
        by_name = {name: key_of_gradient(gradients, name) for name in names}
        missing = [name for name, key in by_name.items() if key is None]
        if missing:
            raise TypeError(
                f"{who} returned a dictionary with {', '.join(map(repr, gradients))}; expected "
                f"{' and '.join(repr(f'd{name}') for name in missing)}, too. {advice}"
            )
        return {name: gradients[key] for name, key in by_name.items()}
    if not isinstance(gradients, (tuple, list)) or len(gradients) != len(names):
        kind = type(gradients).__name__
        is_sequence = isinstance(gradients, (tuple, list))
        what = f"a {kind} of {len(gradients)}" if is_sequence else describe(gradients)
        raise TypeError(f"{who} returned {what}; expected ({expected}), in this order. {advice}")
    return dict(zip(names, gradients, strict=True))


def key_of_gradient(gradients: Mapping[Any, Any], name: Any) -> Any:
    """Return the key of a gradient in a dictionary: the name of what it belongs to, or d and it."""
    keys = (f"d{name}", name, f"grad_{name}", f"d_{name}")
    return next((key for key in keys if key in gradients), None)
