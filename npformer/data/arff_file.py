r"""Series from an .arff file of the UCR archive, by the rules of aeon.

The format is Weka's, https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/. A
series of one feature has a numeric attribute for each step. One of several features is a
relational attribute, in quotation marks, with \n between its features. The label is last.
`scipy.io.arff` reads such files, too, but its errors say no line.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path

from npformer.data.archive_lines import (
    ArchiveSeries,
    check_label,
    error_in_line,
    values_of_channels,
)
from npformer.data.text_file import decode_file, display_name

ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
"""A name, perhaps in quotation marks, and a type."""

NUMERIC = ("numeric", "real", "integer")
"""Types of the values of a series, in lower case."""


def read_arff(path: Path, encoding: str = "utf-8") -> ArchiveSeries:
    """Return the series of a file.

    Raises
    ------
    ValueError
        A line is not as the format has it, or the attributes are not those of series with labels;
        the message names the line.
    """
    file = _ArffFile(Path(display_name(path)))
    for number, line in enumerate(decode_file(path, encoding).splitlines(), start=1):
        words = line.strip()
        if words and not words.startswith("%"):
            file.add(number, words)
    return file.result()


@dataclass
class _ArffFile:
    """What the lines of a file have said so far.

    Attributes
    ----------
    types : list of str
        Of the attributes of the heading, but for those inside a relational one.
    in_relation : bool
        Whether the line is between a relational attribute and its @end.
    """

    path: Path
    types: list[str] = field(default_factory=list)
    in_relation: bool = False
    in_data: bool = False
    series: list[list[list[str]]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, number: int, words: str) -> None:
        """Add a line that is neither empty nor a comment."""
        if self.in_data:
            self._add_series(number, words)
        elif words.casefold() == "@data":
            self._check_attributes(number)
            self.in_data = True
        elif words.casefold().startswith("@end"):
            self.in_relation = False
        elif not words.casefold().startswith("@relation"):
            self._add_attribute(number, words)

    def result(self) -> ArchiveSeries:
        """Return the series of all lines."""
        if not self.in_data:
            raise ValueError(f"{self.path} has no line @data; expected one before the series")
        if not self.series:
            raise ValueError(f"{self.path} has no series; expected one in each line after @data")
        series = [
            values_of_channels(self.path, number, channels)
            for number, channels in zip(self.lines, self.series, strict=True)
        ]
        return ArchiveSeries(series, self.labels, self.lines)

    def _is_relational(self) -> bool:
        return self.types[0] == "relational"

    def _add_attribute(self, number: int, words: str) -> None:
        """Add a line of the heading that declares an attribute."""
        match = ATTRIBUTE.fullmatch(words)
        if match is None:
            problem = f"is {words[:40]!r}; expected @attribute, a name and a type, or @data"
            raise error_in_line(self.path, number, problem)
        kind = match[2].strip()
        if self.in_relation:
            return
        is_class = kind.startswith("{")
        self.types.append(kind if is_class else kind.split()[0].casefold())
        self.in_relation = self.types[-1] == "relational"

    def _check_attributes(self, number: int) -> None:
        """Raise ValueError for attributes that are not those of series with labels."""
        *steps, label = self.types or [""]
        is_series = steps == ["relational"] or all(kind in NUMERIC for kind in steps)
        if not steps or not is_series or label == "relational":
            shown = ", ".join(kind[:20] for kind in self.types[:4]) or "none"
            problem = (
                f"ends a heading with attributes of the types {shown}; expected numeric ones, the "
                "steps of a series, or one relational one, and the label last. Write other tables "
                "as CSV"
            )
            raise error_in_line(self.path, number, problem)

    def _classes(self) -> list[str]:
        """Return the names of the classes; none if the label is not one of several names."""
        kind = self.types[-1]
        if not kind.startswith("{"):
            return []
        names = next(csv.reader([kind.strip("{} ")], skipinitialspace=True))
        return [name.strip().strip("'\"") for name in names]

    def _add_series(self, number: int, words: str) -> None:
        """Add a line of the data."""
        if words.startswith("{"):
            problem = "is in sparse form, in braces; expected all values"
            raise error_in_line(self.path, number, problem)
        values, comma, label = words.rpartition(",")
        if not comma or not label.strip():
            raise error_in_line(self.path, number, "has no label; expected one after a comma, last")
        channels = [values.split(",")]
        if self._is_relational():
            channels = self._channels(number, values.strip())
        elif len(channels[0]) != len(self.types) - 1:
            problem = (
                f"has {len(channels[0])} values before its label, and the heading "
                f"{len(self.types) - 1} attributes; expected as many"
            )
            raise error_in_line(self.path, number, problem)
        label = label.strip().strip("'\"")
        self.labels.append(check_label(self.path, number, label, self._classes()))
        self.series.append(channels)
        self.lines.append(number)

    def _channels(self, number: int, values: str) -> list[list[str]]:
        r"""Return the words of each feature of a relational value, between which there is \n."""
        mark = values[:1]
        if mark not in ("'", '"') or len(values) < 2 or not values.endswith(mark):
            problem = "does not begin with a series in quotation marks; expected '1,2\\n3,4',label"
            raise error_in_line(self.path, number, problem)
        channels = [channel.split(",") for channel in values[1:-1].split("\\n")]
        if self.series and len(channels) != len(self.series[0]):
            problem = (
                f"has {len(channels)} features and line {self.lines[0]} has "
                f"{len(self.series[0])}; expected as many"
            )
            raise error_in_line(self.path, number, problem)
        return channels
