"""The museum's invariants, applied to what a reader wrote."""

from typing import Any

from npformer.learn.exercises.answer import Answer, Stuck


def failing(answer: Answer, thing: Any, *names: str) -> list[str]:
    """Return, in words, which of these invariants a thing breaks, without saying where."""
    from npformer.learn.museum import INVARIANTS

    found = []
    for name in names:
        try:
            answer.call(INVARIANTS[name], thing)
        except Stuck as stuck:
            says = " ".join((INVARIANTS[name].__doc__ or "").split())
            broken = isinstance(stuck.__cause__, AssertionError)
            found.append(f"{name} fails: {says}" if broken else f"{name}: {stuck}")
    return found
