"""Which names match patterns such as ``"encoder.blocks.0.*"``."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from npformer.core import checks
from npformer.core.support.wording import describe


def match_names(patterns: Sequence[str], names: Iterable[str], what: str) -> list[str]:
    """Return the names that match a pattern, in order; ValueError for a pattern that none matches.

    Patterns are those of `fnmatch`: * matches any characters, dots too, ? one character, [01] one
    of these. `what` says what the names are, in the plural: "parameters".
    """
    names = list(names)
    if not patterns:
        raise ValueError("there is no pattern; expected at least one, such as 'embed.*' or '*'")
    for pattern in patterns:
        checks.text("a pattern", pattern)
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(
                f"the pattern {describe(pattern)} matches none of the {what}; expected a name, or "
                f"one with *.{_hint(pattern, names)}"
            )
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _hint(pattern: str, names: list[str]) -> str:
    """Return what may have been meant."""
    inside = f"{pattern.rstrip('.')}.*"
    if any(fnmatchcase(name, inside) for name in names):
        return f" Did you mean {inside!r}?"
    near = get_close_matches(pattern, names, n=3, cutoff=0.5)
    if not near:
        depth = pattern.count(".") + 1
        near = list(dict.fromkeys(".".join(name.split(".")[:depth]) for name in names))[:8]
        return f" There are {', '.join(near)} ..." if near else " There are none"
    return f" Near it: {', '.join(near)}"
