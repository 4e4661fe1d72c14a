"""Reading JSON files that other programs wrote: an object, or a list."""

import json
from pathlib import Path
from typing import Any

from npformer.core import a_type
from npformer.data.formats import check_is_no_pointer


def read_json(path: Path, kind: type = dict) -> Any:
    """Return the content of a JSON file: an object (names and values), or a list."""
    check_is_no_pointer(path)
    try:
        if not path.is_file():  # reading a pipe or a device could wait forever
            raise FileNotFoundError("it is no file")
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError, OSError) as error:  # invalid JSON or UTF-8, or no file
        raise ValueError(f"{path} cannot be read as JSON: {error}. Copy it again") from error
    if not isinstance(content, kind):
        expected = "names and values" if kind is dict else "a list"
        raise ValueError(f"{path} holds {a_type(content)}; expected {expected}")
    return content


def read_json_if_there(path: Path) -> dict[str, Any]:
    """Return the content of a file, or {} if there is none."""
    return dict(read_json(path)) if path.exists() or path.is_symlink() else {}
