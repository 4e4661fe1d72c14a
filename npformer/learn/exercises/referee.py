"""The referee: its verdict on an answer."""

from dataclasses import dataclass, field

from npformer.learn.exercises import notebook
from npformer.learn.exercises.answer import Answer, NotBegun, Stuck
from npformer.learn.exercises.exercise import Exercise

RIGHT, WRONG, MISSING = "right", "wrong", "no file"
NOT_BY_HAND = "right, but not by hand"
NOT_ITS_FILES = "right, but not all that it uses"
PASSED = RIGHT, NOT_BY_HAND, NOT_ITS_FILES
NOT_BEGUN, UNFINISHED = "not begun", "unfinished"


@dataclass(frozen=True)
class Verdict:
    """What the referee says about one answer."""

    state: str  # one of the words above
    says: list[str] = field(default_factory=list)  # what is wrong
    printed: str = ""  # what the reader's file printed


def judge(exercise: Exercise, answer: Answer) -> Verdict:
    """Run an answer in this process, and mark it."""
    if is_untouched(exercise, answer.text):
        return Verdict(NOT_BEGUN)
    if first := exercise.exercises_to_solve(exercise, answer):
        return Verdict(UNFINISHED, first)
    try:
        answer.run()
        problems = exercise.mark(exercise, answer)
    except NotBegun as blank:
        problems = [f"{blank} still raises NotImplementedError", *answer.notes]
        return Verdict(UNFINISHED, problems, answer.prints())
    except Stuck as stuck:
        problems = [*stuck.args]
    if problems:
        return Verdict(WRONG, problems, answer.prints())
    notes = judge_by_others(exercise, answer)
    state = NOT_BY_HAND if notes else answer.state
    return Verdict(state, [*notes, *answer.notes], answer.prints())


def judge_by_others(exercise: Exercise, answer: Answer) -> list[str]:
    """Return a sentence on how a right answer came about, if not by the reader's own formula."""
    lines = exercise.blank.splitlines()
    imports = exercise.run(
        "\n".join(line for line in lines if line.startswith(("import ", "from ")))
    )
    borrowed = answer.names_borrowed(vars(imports).values())
    notes = [f"it calls {name}; can you do without?" for name in borrowed]
    return [*notes, answer.differences] if answer.differences else notes


def is_untouched(exercise: Exercise, text: str) -> bool:
    """Whether a source is the one that was handed out, as a file or as a notebook."""
    cells, _ = notebook.to_source(notebook.from_source(exercise.blank, exercise.name), "")
    return text.split() in (exercise.blank.split(), cells.split())
