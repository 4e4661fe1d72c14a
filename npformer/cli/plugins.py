"""Plugins: modules that a command imports for the names that they register."""

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from npformer.core import PLUGIN_FILE


def load_plugins(names: Sequence[str], option: str = "--plugin ") -> list[str]:
    """Import modules, such as "my_package.mixers" or "path/to/file.py", and return their names.

    Modules are looked for in the current folder too. Files are returned as absolute paths. Errors
    begin with `option` and the name.
    """
    return [
        _load_file(name, option) if is_file(name) else _load_module(name, option) for name in names
    ]


def is_file(name: str) -> bool:
    """Whether a name is that of a file rather than of a module."""
    return name.endswith(".py") or bool(set(name) & set("/\\"))


def _load_module(name: str, option: str) -> str:
    if not all(identifier.isidentifier() for identifier in name.split(".")):
        raise ValueError(
            f"{option}is {name!r}; expected the dotted name of a module, such as "
            "my_package.mixers, or a file that ends in .py"
        )
    _add_to_path(Path.cwd())
    importlib.invalidate_caches()
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is None or not f"{name}.".startswith(f"{missing}."):
            raise _raise_named(name, error, option) from error
        raise ValueError(
            f"{option}{name}: there is no module {missing}; expected one that Python finds, in "
            f"the current folder or installed, or a file: {option}{name.replace('.', '/')}.py"
        ) from error
    return name


def _load_file(name: str, option: str) -> str:
    path = Path(name).resolve()
    if not path.is_file() or path.suffix != ".py":
        raise ValueError(
            f"{option}{name}: there is no such Python file; expected one that ends in .py, or the "
            "dotted name of a module"
        )
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    if any(Path(f).resolve() == path for f in map(str, files) if Path(f).name == path.name):
        return str(path)
    # The hash keeps a file called random.py from replacing Python's.
    key = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(key, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, PLUGIN_FILE, path.name)  # for errors that say where a name comes from
    sys.modules[key] = module
    _add_to_path(path.parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[key]
        raise _raise_named(name, error, option) from error
    return str(path)


def _add_to_path(folder: Path) -> None:
    """Let Python find the modules of a folder, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _raise_named(name: str, error: BaseException, option: str) -> ValueError:
    """Return an error that says what a plugin raised, and in which line."""
    places = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.line and frame.filename != __file__
    ]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    where = f", in {places[-1][0]}, line {places[-1][1]}" if places else ""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return ValueError(f"{option}{name}: importing it raised {words}{where}")
