"""Generated pairs of texts, for sequence-to-sequence models: reversal, sort and add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npformer.core import Seed, checks, generators

LETTERS = "abcdefghijklmnopqrstuvwxyz"

LONGEST = 20
"""Most letters of a text to reverse or to sort; there is at least one."""

DIGITS = 3
"""Most digits of a number to add."""


PAIRS: dict[str, str] = {
    "reversal": f"write 1 to {LONGEST} letters backwards",
    "sort": f"write 1 to {LONGEST} letters in the order of the alphabet",
    "add": f"add two numbers of up to {DIGITS} digits, from the last digit on: 17+8 is 52",
}
"""The tasks of `pairs`: name and description."""


def pairs(name: str, n: int, seed: Seed = 0) -> tuple[list[str], list[str]]:
    """Return n different sources and their targets.

    Parameters
    ----------
    name : {"reversal", "sort", "add"}
        "reversal": 1 to 20 letters, to be written backwards. "sort": 1 to 20 letters, to be written
        in the order of the alphabet. "add": two numbers of 1 to 3 digits, such as "17+8", and
        their sum, from the last digit on as by hand: "52". So a carry is known when it is needed.
    n : int
    seed : int or Generator
    """
    checks.choice("name", name, PAIRS)
    n = checks.whole("n", n, at_least=1, at_most=1_000_000)
    rng = generators.from_seed(seed)
    draw: Callable[[np.random.Generator], str] = _sum if name == "add" else _word
    sources: dict[str, None] = {}
    while len(sources) < n:
        sources[draw(rng)] = None
    answer = {"reversal": lambda s: s[::-1], "sort": lambda s: "".join(sorted(s)), "add": _add}
    return [*sources], [answer[name](source) for source in sources]


def _word(rng: np.random.Generator) -> str:
    letters = rng.integers(len(LETTERS), size=rng.integers(1, LONGEST + 1))
    return "".join(LETTERS[i] for i in letters)


def _sum(rng: np.random.Generator) -> str:
    one, other = (rng.integers(10 ** rng.integers(1, DIGITS + 1)) for _ in range(2))
    return f"{one}+{other}"


def _add(source: str) -> str:
    return str(sum(map(int, source.split("+"))))[::-1]
