"""The cognitive complexity of the package's functions, by complexipy."""

from pathlib import Path
from types import CodeType
from typing import NamedTuple

import npformer

PACKAGE = Path(npformer.__file__).parent
MOST = 15
"""What a function outside of the engine may have; complexipy's own limit, too."""

MOST_ON_THE_WAY = 8
"""What a function may have that runs on the way from `fit` to Adam's update."""


class Function(NamedTuple):
    """A function or method, with those defined inside it."""

    file: str
    first_line: int
    last_line: int
    name: str
    complexity: int

    def __str__(self):
        return f"{self.file}:{self.first_line}: {self.name} ({self.complexity})"


def functions(package: Path = PACKAGE) -> list[Function]:
    """Return the functions of a package, the most complex first; needs complexipy."""
    try:
        import complexipy
    except ModuleNotFoundError as error:
        raise SystemExit(
            "complexity is measured by complexipy: python -m pip install --group dev"
        ) from error
    measured = [
        Function(
            file=file.relative_to(package).as_posix(),
            first_line=function.line_start,
            last_line=function.line_end,
            name=function.name.replace("::", "."),
            complexity=function.complexity,
        )
        for file in package.rglob("*.py")
        for function in complexipy.file_complexity(str(file)).functions
    ]
    return sorted(measured, key=lambda function: (-function.complexity, str(function)))


def too_complex(measured: list[Function]) -> list[Function]:
    """Return the functions outside of the engine that are above `MOST`."""
    return [f for f in measured if f.complexity > MOST and not f.file.startswith("engine/")]


def too_complex_on_the_way(
    measured: list[Function], codes: set[CodeType], package: Path = PACKAGE
) -> list[Function]:
    """Return the functions above `MOST_ON_THE_WAY` that ran, of which `codes` has the code."""
    lines_of: dict[str, set[int]] = {}
    for code in codes:
        file = Path(code.co_filename).relative_to(package).as_posix()
        lines_of.setdefault(file, set()).add(code.co_firstlineno)
    return [
        function
        for function in measured
        if function.complexity > MOST_ON_THE_WAY
        and any(
            function.first_line <= line <= function.last_line
            for line in lines_of.get(function.file, ())
        )
    ]
