"""The data files that come with the package, by the name that a command gives them."""

import importlib.resources
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EmbeddedData:
    """What `npformer data` says of some data; `file` is empty if they are not a table in a file."""

    file: str
    size: str
    licence: str
    what: str


EMBEDDED = {
    "sentences": EmbeddedData(
        file="sentences.csv.gz",
        size="0.2 MB",
        licence="CC BY 4.0",
        what="texts: 3000 sentences of reviews, positive or negative",
    ),
    "shakespeare": EmbeddedData(
        file="shakespeare.txt.gz",
        size="1.1 MB",
        licence="public domain",
        what="one text: plays, 1.1 million characters, for a model that writes (10 minutes)",
    ),
    "pronunciations": EmbeddedData(
        file="pronunciations.csv.gz",
        size="3.6 MB",
        licence="BSD",
        what="pairs: 133,973 English words and their pronunciations",
    ),
    "vowels": EmbeddedData(
        file="",
        size="1.2 MB",
        licence="CC BY 4.0",
        what="series: nine speakers who say two vowels, 640 series of 12 features",
    ),
}

FILE_NAMES = [name for name, data in EMBEDDED.items() if data.file]
"""Data that a command reads by their name, in place of a file."""


def embedded_file(name: str) -> Path:
    """Return the path of a data file in the installed package."""
    return Path(str(importlib.resources.files("npformer.data") / EMBEDDED[name].file))
