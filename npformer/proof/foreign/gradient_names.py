"""Which array is the gradient of which, by the names that people give them.

W has its gradient in dW, grad_W, W_grad, dL_dW, delta_W, W.grad, grads["W"], grads["dW"], grads[0],
... Underscores and capitals do not count.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import product

import numpy as np

PREFIXES = (
    "gradientof",
    "gradients",
    "gradient",
    "gradof",
    "gradwrt",
    "grads",
    "grad",
    "partial",
    "nabla",
    "delta",
    "dlossd",
    "dloss",
    "djd",
    "dld",
    "ded",
    "dj",
    "dl",
    "d",
    "g",
)
SUFFIXES = ("gradients", "gradient", "grads", "grad", "delta", "diff")

SYNONYMS = (
    {"w", "weight", "weights", "kernel", "wt"},
    {"b", "bias", "biases"},
    {"gamma", "gain", "scale", "g", "weight"},
    {"beta", "shift", "bias", "offset"},
    {"x", "input", "inputs", "inp", "in", "inputdata", "a"},
    {"table", "embedding", "embeddings", "emb", "w", "weight", "weights", "e"},
)
"""Sets of names for the same thing."""

VALUES = ("data", "value", "values", "val", "w", "array", "param", "v")
"""What a parameter that is an object calls its value."""

GRADIENTS = ("grad", "gradient", "grads", "g", "dw", "d", "dvalue", "diff", "delta")
"""And its gradient."""

CONTAINERS = {"grads", "gradients", "grad", "gradient", "dparams", "dparameters", "dweights", "g"}
"""What a list or a dictionary of gradients is called."""

PARAMETER = re.compile(
    r"^[wbu](_?[a-z0-9]{0,3})$|weight|bias|kernel|gamma|beta|embed|table|gain|param", re.IGNORECASE
)
"""Names that are those of trained parameters, rather than of constants or of what was kept."""

GRADIENT_ROOMS = {"grads", "gradients", "grad", "gradient", "dparams", "dparameters"}
"""What gradients, and what holds them, are called."""

LAST_STEP = re.compile(r"(\.?[^\W\d]\w*|\[[^\]]*\])$")


def split_path(path: str) -> tuple[str, str]:
    """Return where an array is, and its own name or place there."""
    match = LAST_STEP.search(path)
    if match is None:
        return "", path
    return path[: match.start()], match[0]


def plain(name: str) -> str:
    """Return a name without the marks of a path, underscores and capitals."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def looks_trained(path: str) -> bool:
    """Whether the name of an array is that of a trained parameter."""
    where, name = split_path(path)
    name = name.strip(".[]'\"")
    if name in VALUES or name.isdigit():
        _, name = split_path(where)
        name = name.strip(".[]'\"")
    return PARAMETER.search(name) is not None


def is_among_gradients(path: str) -> bool:
    """Whether an array lies in something that is called gradients: it is no parameter."""
    return any(name.lower() in GRADIENT_ROOMS for name in re.findall(r"[^\W\d]\w*", path))


def is_gradient_by_very_name(gradient: str, path: str) -> bool:
    """Whether a name is that of the gradient of what is at a path, synonyms left out."""
    _, name = split_path(path)
    return _rank(gradient, name) == 0


def _rank(gradient: str, parameter: str) -> int | None:
    """Return 0 for the very name with a usual addition, 1 for a synonym of it, None for neither."""
    wanted = plain(parameter)
    stems = set(_stems(plain(gradient)))
    if wanted in stems:
        return 0
    if any(_mean_the_same(stem, wanted) for stem in stems):
        return 1
    return None


def _stems(name: str) -> Iterable[str]:
    """Yield what is left of the name of a gradient without what makes it one."""
    for prefix in PREFIXES:
        if name.startswith(prefix):
            yield name[len(prefix) :]
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            yield name[: -len(suffix)]


def _mean_the_same(one: str, other: str) -> bool:
    """Whether two names are synonyms, or become so without a number at their ends."""
    one_letters, one_number = _number_at_end(one)
    other_letters, other_number = _number_at_end(other)
    if one_number != other_number or not one_letters:
        return False
    return any({one_letters, other_letters} <= names for names in SYNONYMS)


def _number_at_end(name: str) -> tuple[str, str]:
    letters = name.rstrip("0123456789")
    return letters, name[len(letters) :]


def match_gradients(
    parameters: Mapping[str, np.ndarray],
    candidates: Mapping[str, np.ndarray],
    exact: bool = False,
    preferred: Collection[str] = (),
    taken: Collection[str] = (),
) -> dict[str, str]:
    """Return the path of the gradient of each parameter for which one is found.

    The very name comes before a synonym, the same object before another one, an equal shape before
    another shape.

    Parameters
    ----------
    parameters, candidates : mapping of str to array
        By their paths.
    exact : bool
        Whether synonyms are left out.
    preferred : collection of str
        Candidates that come before others of equal names.
    taken : collection of str
        Candidates that are gradients of others already.
    """
    ranked = []
    for parameter, candidate in product(parameters, candidates):
        rank = _rank_of_paths(candidate, parameter)
        if rank is None or candidate == parameter or (exact and rank >= SYNONYM):
            continue
        same_shape = parameters[parameter].shape == candidates[candidate].shape
        if not same_shape and rank >= SYNONYM:
            continue
        order = (not same_shape, candidate not in preferred, rank)
        ranked.append((order, parameter, candidate))
    matches: dict[str, str] = {}
    for _, parameter, candidate in sorted(ranked, key=lambda entry: entry[0]):
        if parameter in matches or candidate in matches.values() or candidate in taken:
            continue
        if parameter not in matches.values():  # a gradient has no gradient
            matches[parameter] = candidate
    return matches


SYNONYM = 10
"""Ranks from here on are those of synonyms."""


def _rank_of_paths(candidate: str, parameter: str) -> int | None:
    """Return how well the path of a gradient fits that of a parameter; None: it does not."""
    where_candidate, name_candidate = split_path(candidate)
    where, name = split_path(parameter)
    if where_candidate == where and plain(name) in VALUES and plain(name_candidate) in GRADIENTS:
        return 0  # W.data and W.grad
    around, container = split_path(where_candidate)
    if plain(container) in CONTAINERS or candidate.startswith("return"):
        if not _same_key(name_candidate, name):
            return None  # names in a dictionary of gradients are those by which they are paired
        return 1 if around in (where, split_path(where)[0]) else 2
    around_parameter, container_of_parameter = split_path(where)
    if around == around_parameter and _same_key(name_candidate, name):
        rank_of_container = _rank(container, container_of_parameter)
        if rank_of_container is not None:
            return rank_of_container * SYNONYM + 1  # grad_weights[0] and weights[0]
    rank = _rank(name_candidate, name)
    if rank is None:
        return None
    distance = 0 if where_candidate == where else 1
    return rank * SYNONYM + 1 + distance


def _same_key(gradient: str, parameter: str) -> bool:
    """Whether the key of a gradient in a dictionary, or its index in a list, is a parameter's."""
    key, name = plain(gradient), plain(parameter)
    return key == name or (not key.isdigit() and name in _stems(key))
