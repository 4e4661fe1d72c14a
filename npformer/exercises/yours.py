"""A reader's functions, from the files of other exercises in the same folder."""

from pathlib import Path
from typing import Any

from npformer.exercises.folder import find, source_of
from npformer.exercises.table import stem


def yours(*names: str) -> Any:
    """Return functions of the file of an exercise, which is called like the last of them.

    The folder is the one in which Python runs. One name gives a function, several a list.
    """
    name = names[-1]
    path, here = find(Path(), name), f"or write {' and '.join(names)} in place of this line"
    if path is None:
        start = f"`npformer exercises start . {name}` writes it"
        raise ValueError(f"{stem(name)}.py is not in {Path.cwd()}; {start}; solve it, {here}")
    text, _ = source_of(path)
    if "raise NotImplementedError" in text:
        raise ValueError(f"{path.name} is not solved yet; solve it first, {here}")
    found: dict[str, Any] = {"__name__": path.stem}
    exec(compile(text, str(path), "exec"), found)
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(
            f"{path.name} has no {' and no '.join(missing)} any more; put it back, {here}"
        )
    return [found[name] for name in names] if len(names) > 1 else found[name]
