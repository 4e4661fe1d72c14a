"""The table of all exercises, in the order in which to do them."""

import functools
import importlib.resources
import tomllib
from difflib import get_close_matches

from npformer.learn.exercises import marks
from npformer.learn.exercises.exercise import Exercise, Wrong

TEXTS = importlib.resources.files("npformer.learn.exercises") / "texts"

STEMS = sorted(
    file.name.removesuffix(".toml") for file in TEXTS.iterdir() if file.name.endswith(".toml")
)
"""Names of the files, without their endings: "01_linear_backward"."""

NAMES = [stem[3:] for stem in STEMS]


def exercise(name: str) -> Exercise:
    """Return an exercise by its name; a number, 01_NAME or a file's name will do."""
    return _load(named(name))


def named(word: str) -> str:
    """Return the name that a word means: "5", "05_softmax_backward.py", "softmax_backward"."""
    plain = word.rpartition("/")[2].rpartition("\\")[2].removesuffix(".py").removesuffix(".ipynb")
    number, _, rest = plain.partition("_")
    if number.isdecimal():
        if 1 <= int(number) <= len(NAMES) and (not rest or rest == NAMES[int(number) - 1]):
            return NAMES[int(number) - 1]
        plain = rest or plain
    if plain in NAMES:
        return plain
    short = {name.rpartition("_")[0]: name for name in NAMES if "_" in name}  # "softmax"
    for close in get_close_matches(plain, [*NAMES, *short], n=1):
        meant = short.get(close, close)
        raise ValueError(f"no exercise is called {word!r}. Did you mean {meant!r}?")
    raise ValueError(f"no exercise is called {word!r}; `npformer exercises list` names all of them")


def stem(name: str) -> str:
    """Return the name of an exercise's file, without its ending: "01_linear_backward"."""
    return STEMS[NAMES.index(name)]


def every() -> list[Exercise]:
    """Return all exercises."""
    return list(map(_load, NAMES))


@functools.cache
def _load(name: str) -> Exercise:
    texts = tomllib.loads((TEXTS / f"{stem(name)}.toml").read_text("utf-8"))
    for kind in ("wrong", "breaks"):
        texts[kind] = [Wrong(**row) for row in texts.get(kind, [])]
    uses = {other: _load(other) for other in sorted(marks.USES.get(name, ()), key=stem)}
    return Exercise(name=name, stem=stem(name), uses=uses, **marks.arguments_of(name), **texts)
