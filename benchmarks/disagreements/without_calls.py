"""Why a library has no call that gives npformer's numbers: `without_calls.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("without_calls.toml")

ALL = "*"


@dataclass(frozen=True)
class WithoutCall:
    """Why some libraries have no call for some parts.

    Parameters
    ----------
    libraries, parts : list of str
        Names; "*" stands for all.
    words : str
        What the table says.
    call_of : str
        A library whose call takes the same arrays, or "".
    """

    libraries: list[str]
    parts: list[str]
    words: str
    call_of: str = ""

    def explains(self, library: str, part: str) -> bool:
        """Return whether it is about a part and a library."""
        is_library = library in self.libraries or ALL in self.libraries
        return is_library and (part in self.parts or ALL in self.parts)

    def text(self) -> str:
        """Return the words, with the call to use instead."""
        return f"{self.words}: use {self.call_of}'s" if self.call_of else self.words


@cache
def all_reasons() -> list[WithoutCall]:
    """Return all reasons in the order of the file."""
    tables = tomllib.loads(FILE.read_text("utf-8"))["reasons"]
    return [WithoutCall(**table) for table in tables]


def reason_without_call(library: str, part: str) -> WithoutCall | None:
    """Return the first reason about a part and a library; None if there is none."""
    for reason in all_reasons():
        if reason.explains(library, part):
            return reason
    return None
