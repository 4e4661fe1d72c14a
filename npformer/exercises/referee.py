"""The referee: what is said of an answer."""

from dataclasses import asdict, dataclass, field
from typing import Any

from npformer.exercises.answer import Answer, NotBegun, Stuck
from npformer.exercises.exercise import Exercise

RIGHT, WRONG, NOT_BEGUN, MISSING = "right", "wrong", "not begun", "no file"


@dataclass(frozen=True)
class Verdict:
    """What is said of one answer."""

    state: str  # RIGHT, WRONG, NOT_BEGUN or MISSING
    says: list[str] = field(default_factory=list)  # what is wrong
    printed: str = ""  # what the reader's file printed

    def to_json(self) -> dict[str, Any]:
        """Return plain values, from which ``Verdict(**values)`` is the same again."""
        return asdict(self)


def judge(exercise: Exercise, answer: Answer) -> Verdict:
    """Run an answer in this process, and mark it."""
    try:
        answer.run()
        problems = exercise.mark(exercise, answer)
    except NotBegun as blank:
        where = [f"{blank} still raises NotImplementedError"] if blank.args[0] else []
        return Verdict(NOT_BEGUN, where, answer.prints())
    except Stuck as stuck:
        problems = [str(stuck)]
    return Verdict(WRONG if problems else RIGHT, problems, answer.prints())
