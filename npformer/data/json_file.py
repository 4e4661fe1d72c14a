"""Names and values, or lists, in JSON files that others wrote."""

import json
from pathlib import Path
from typing import Any

from npformer.core import a_type


def read_json(path: Path, kind: type = dict) -> Any:
    """Return the content of a JSON file: names and values, or a list."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError, OSError) as error:  # invalid JSON or UTF-8, or no file
        raise ValueError(f"{path} cannot be read as JSON: {error}. Copy it again") from error
    if not isinstance(content, kind):
        expected = "names and values" if kind is dict else "a list"
        raise ValueError(f"{path} holds {a_type(content)}; expected {expected}")
    return content


def read_json_if_there(path: Path) -> dict[str, Any]:
    """Return the content of a file, or {} if there is none."""
    if not path.is_file() and (path.exists() or path.is_symlink()):
        raise ValueError(f"{path} is no file, or a link to none; expected a file. Copy it again")
    return read_json(path) if path.is_file() else {}
