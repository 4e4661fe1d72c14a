"""What an exercise is: a question, a solved file, hints, and how answers are marked."""

import functools
import importlib.resources
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from npformer.learn.exercises.diagnosis import NONE

if TYPE_CHECKING:
    from npformer.learn.exercises.answer import Answer

BLANK = re.compile(r"^( *)# your code\n(.*?)^ *# end of your code\n", re.MULTILINE | re.DOTALL)
"""The part of a solved file that readers write themselves."""

Mark = Callable[["Exercise", "Answer"], list[str]]
"""How an answer is marked: it returns sentences on what is wrong."""

FOOT = """
    Check it:  npformer exercises check {name}
    Stuck?     npformer exercises hint {name}
    Read:      {page}
\"\"\"
"""


@dataclass(frozen=True)
class Wrong:
    """A typical mistake: some text of the solved file, and what a wrong answer has instead."""

    right: str
    wrong: str
    says: str = ""  # what to tell a reader whose answer has the same values


@dataclass(frozen=True)
class Exercise:
    """One exercise: the solved file ``solved/NAME.py``, and ``texts/NAME.toml`` with the rest."""

    name: str
    stem: str  # of the reader's file, without its ending: "01_linear_backward"
    mark: Mark
    title: str  # what to write
    page: str  # of docs/, to read on
    hints: list[str]  # from a nudge to nearly the answer
    why: str  # a short derivation of the solution
    wrong: list[Wrong] = field(default_factory=list)  # typical mistakes
    breaks: list[Wrong] = field(default_factory=list)  # bugs instead of a blank
    invariants: list[str] = field(default_factory=list)  # of the museum, which must hold
    returns: list[str] = field(default_factory=list)  # what its function returns, in order
    truth: str = "the slope of the loss"  # what right numbers are called
    trials: Sequence[Any] = ()  # arguments of the function, as `Trial`
    made: Callable[[Any], Any] = lambda own: own  # of what is written: what invariants are for
    seconds: float = 20.0  # how long an answer may run
    exercises_to_solve: Mark = lambda exercise, answer: []  # sentences on what to do first
    uses: "Mapping[str, Exercise]" = field(default_factory=dict)  # whose files it calls, by name

    @functools.cached_property
    def solved(self) -> str:
        """The solved file, with the marks around the reader's part."""
        folder = importlib.resources.files("npformer.learn.exercises.solved")
        text = folder.joinpath(f"{self.name}.py").read_text("utf-8")
        return text.partition("\n")[2]  # without the line for mypy

    @property
    def blank(self) -> str:
        """The file as readers get it."""
        text = self.add_foot(self.solved)
        for bug in self.breaks:
            text = text.replace(bug.right, bug.wrong)
        return BLANK.sub(r"\1raise NotImplementedError  # your code\n", text)

    @property
    def solution(self) -> str:
        """The file with the solution in place of the blank."""
        return BLANK.sub(r"\2", self.add_foot(self.solved))

    def add_foot(self, text: str) -> str:
        """Return a file that says at the end of its docstring how it is checked."""
        question, end, rest = text.partition('\n"""\n')
        assert end, f"{self.name} begins with a docstring"
        foot = FOOT.format(name=self.name, page=f"docs/{self.page}")
        return f"{question}\n{foot}{rest}"

    def parts(self) -> list[str]:
        """Return the lines that a reader writes, one text for each blank."""
        return [blank[2] for blank in BLANK.finditer(self.solved)]

    def variants(
        self, text: str | None = None, given: Mapping[str, Any] = NONE
    ) -> Iterator[tuple[str, types.SimpleNamespace]]:
        """Yield what each typical mistake says, and the solved file, or `text`, with that in it."""
        text = self.solved if text is None else text
        for one in self.wrong:
            yield one.says, self.run(text.replace(one.right, one.wrong), given)

    def run(self, text: str, given: Mapping[str, Any] = NONE) -> types.SimpleNamespace:
        """Return the names that the solved file, or a text made from it, defines beside some."""
        names: dict[str, object] = {**given, "__name__": self.name}
        exec(compile(text, f"<{self.name}>", "exec"), names)
        return types.SimpleNamespace(**names)
