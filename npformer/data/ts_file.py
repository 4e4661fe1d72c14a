"""Series from a .ts file of the UCR archive, by the rules of aeon.

The format is https://www.aeon-toolkit.org/en/stable/api_reference/data_format.html: lines that
begin with @ describe the series; after @data each line is a series, with a colon between its
features and before its label, and commas between values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from npformer.data.archive_lines import (
    ArchiveSeries,
    check_label,
    error_in_line,
    values_of_channels,
)
from npformer.data.text_file import decode_file, display_name

COMMENTS = ("#", "%")
"""What comments begin with; the format knows the first, and the archive has both."""

SWITCHES = ("timestamps", "univariate", "equallength", "targetlabel", "classlabel")
"""Keys of the heading, in lower case, whose value is true or false."""


def read_ts(path: Path, encoding: str = "utf-8") -> ArchiveSeries:
    """Return the series of a file.

    Raises
    ------
    ValueError
        The heading or a line is not as the format has it, or as the heading says; the message
        names the line. Times of steps, @timeStamps true, are not read.
    """
    file = _TsFile(Path(display_name(path)))
    for number, line in enumerate(decode_file(path, encoding).splitlines(), start=1):
        words = line.strip()
        if words and not words.startswith(COMMENTS):
            file.add(number, words)
    return file.result()


@dataclass
class _TsFile:
    """What the lines of a file have said so far.

    Attributes
    ----------
    settings : dict of str to str
        The heading, with keys in lower case.
    classes : tuple of str
        The names of the classes in the heading.
    n_values : int
        How many values each feature has in the first line of the data.
    """

    path: Path
    settings: dict[str, str] = field(default_factory=dict)
    in_data: bool = False
    classes: tuple[str, ...] = ()
    n_values: int = 0
    series: ArchiveSeries = field(default_factory=lambda: ArchiveSeries([], [], []))

    def add(self, number: int, words: str) -> None:
        """Add a line that is neither empty nor a comment."""
        if self.in_data:
            self._add_series(number, words)
        elif words.casefold() == "@data":
            self._check_heading(number)
            self.in_data = True
        else:
            self._add_setting(number, words)

    def result(self) -> ArchiveSeries:
        """Return the series of all lines."""
        if not self.in_data:
            raise ValueError(f"{self.path} has no line @data; expected one before the series")
        if not self.series.series:
            raise ValueError(f"{self.path} has no series; expected one in each line after @data")
        return self.series if self._has_labels() else self.series._replace(labels=None)

    def _is(self, key: str) -> bool:
        """Return whether the heading says that a key is true; without it, it is not."""
        return self.settings.get(key, "false").casefold().startswith("true")

    def _has_labels(self) -> bool:
        """Return whether a line ends in a class or, for regression, in a number."""
        return self._is("classlabel") or self._is("targetlabel")

    def _add_setting(self, number: int, words: str) -> None:
        """Add a line of the heading."""
        if not words.startswith("@"):
            problem = f"is {words[:40]!r}, before @data; expected a line that begins with @ or #"
            raise error_in_line(self.path, number, problem)
        key, _, value = words[1:].partition(" ")
        key, value = key.casefold(), value.strip()
        if key == "data":
            problem = f"is {words[:40]!r}; expected nothing after @data"
            raise error_in_line(self.path, number, problem)
        if key in SWITCHES and value.partition(" ")[0].casefold() not in ("true", "false"):
            problem = f"is {words[:40]!r}; expected true or false after the first word"
            raise error_in_line(self.path, number, problem)
        self.settings[key] = value

    def _check_heading(self, number: int) -> None:
        """Raise ValueError for a heading, which ends in a line, without what is needed."""
        if not {"classlabel", "targetlabel"}.intersection(self.settings):
            problem = (
                "ends a heading that does not say whether series have labels; expected "
                "@classLabel true with the names of the classes, or @classLabel false"
            )
            raise error_in_line(self.path, number, problem)
        self.classes = tuple(self.settings.get("classlabel", "").split()[1:])
        if self._is("classlabel") and not self.classes:
            raise ValueError(
                f"{self.path} has @classLabel true without names; expected those of the classes, "
                "such as @classLabel true 1 2"
            )
        if self._is("timestamps"):
            raise ValueError(
                f"{self.path} has @timeStamps true: a time with each value, which is not read; "
                "expected values alone. Write a table with a row for each step, which has a "
                "column of times, and name it with --id and --time"
            )

    def _add_series(self, number: int, words: str) -> None:
        """Add a line of the data."""
        channels = words.split(":")
        if self._has_labels():
            *channels, label = channels
            if not channels or not label.strip():
                problem = "has no label; expected values, a colon and a label, as the heading says"
                raise error_in_line(self.path, number, problem)
            labels = self.series.labels or []
            labels.append(check_label(self.path, number, label.strip(), self.classes))
            self.series = self.series._replace(labels=labels)
        values = [channel.split(",") for channel in channels]
        self._check_sizes(number, values)
        self.series.series.append(values_of_channels(self.path, number, values))
        self.series.lines.append(number)

    def _check_sizes(self, number: int, values: list[list[str]]) -> None:
        """Raise ValueError for another number of features or of values than announced."""
        problem = ""
        if self._is("univariate") and len(values) > 1:
            problem = f"has {len(values)} features, between colons; expected 1: @univariate is true"
        elif self.series.series and len(values) != (n := self.series.series[0].shape[1]):
            problem = (
                f"has {len(values)} features, between colons, and line {self.series.lines[0]} "
                f"has {n}; expected as many in each line"
            )
        elif self.series.series and self._is("equallength") and len(values[0]) != self.n_values:
            problem = (
                f"has {len(values[0])} values and line {self.series.lines[0]} has "
                f"{self.n_values}; expected as many: @equalLength is true"
            )
        if problem:
            raise error_in_line(self.path, number, problem)
        if not self.series.series:
            self.n_values = len(values[0])
