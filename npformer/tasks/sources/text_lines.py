"""Texts without labels: the lines of a file, or of all files of text in a folder."""

from pathlib import Path

from npformer.data.text_file import read_text
from npformer.tasks.sources.file_kinds import TEXT_FILES, is_text_file


def has_lines(place: str) -> bool:
    """Return whether each line there is a text, judging by the name."""
    return is_text_file(place) or Path(place).is_dir()


def text_files(place: str) -> list[Path]:
    """Return the files of text in a folder and below it, by name; for a file, the file itself."""
    path = Path(place)
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and is_text_file(file.name))
    if not files:
        raise ValueError(
            f"{path} is a folder without a file of text; expected some that end in "
            f"{' or '.join(TEXT_FILES)}, with a text in each line"
        )
    return files


def read_lines(place: str, encoding: str = "utf-8") -> list[str]:
    """Return the lines that are not empty."""
    texts = [read_text(file, encoding=encoding) for file in text_files(place)]
    lines = [line.strip() for text in texts for line in text.split("\n")]
    if not any(lines):
        raise ValueError(f"{place} is empty; expected a text in each line")
    return [line for line in lines if line]
