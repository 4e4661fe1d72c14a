"""Plugins: modules that are imported because a command names them, for what they register."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from npformer.core import PLUGIN_FILE
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS
from npformer.losses import LOSSES, Classification
from npformer.mixers import MIXERS
from npformer.models import EncoderBlock, EncoderConfig
from npformer.proof.cases import Case
from npformer.proof.gradcheck import GradcheckReport, gradcheck


class PluginError(ValueError):
    """A module that cannot be imported."""


def load_plugins(names: Sequence[str]) -> list[str]:
    """Import modules, each by its dotted name or as a .py file.

    A dotted name is looked for where Python looks, and then in the present folder. A module that is
    imported already is left as it is.

    Parameters
    ----------
    names : sequence of str
        "my_package.mixers", or "path/to/file.py".

    Returns
    -------
    remembered : list of str
        The same, files with their whole paths.

    Raises
    ------
    PluginError
        There is no such module, or it raises an error.
    """
    return [_load_file(name) if _is_file(name) else _load_module(name) for name in names]


def remembered(names: Sequence[str]) -> list[str]:
    """Return what `load_plugins` would return, without importing anything.

    Parameters
    ----------
    names : sequence of str
    """
    return [str(Path(name).resolve()) if _is_file(name) else name for name in names]


def _is_file(name: str) -> bool:
    return name.endswith(".py") or "/" in name or "\\" in name


def _load_module(name: str) -> str:
    if not all(part.isidentifier() for part in name.split(".")):
        raise PluginError(
            f"--plugin is {name!r}; expected the dotted name of a module, such as "
            "my_package.mixers, or a file that ends in .py"
        )
    _can_find(Path.cwd())
    importlib.invalidate_caches()
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _raised(name, error) from error  # the plugin asks for another module
        raise PluginError(
            f"--plugin {name}: there is no module {error.name}; expected one that Python finds, in "
            f"the present folder or installed, or a file: --plugin {name.replace('.', '/')}.py"
        ) from error
    except (Exception, SystemExit) as error:
        raise _raised(name, error) from error
    return name


def _load_file(name: str) -> str:
    path = Path(name).resolve()
    if not path.is_file() or path.suffix != ".py":
        raise PluginError(
            f"--plugin {name}: there is no such Python file; expected one that ends in .py, or the "
            "dotted name of a module"
        )
    if any(_is_of(module, path) for module in list(sys.modules.values())):
        return str(path)
    # A name of its own: a file called random.py is not to stand in for Python's.
    key = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(key, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__[PLUGIN_FILE] = path.name  # for who is to be told where a name is from
    sys.modules[key] = module
    _can_find(path.parent)  # what lies beside it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[key]
        raise _raised(name, error) from error
    return str(path)


def _can_find(folder: Path) -> None:
    """Let Python find the modules of a folder, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _is_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).name == path.name and Path(file).resolve() == path


def _raised(name: str, error: BaseException) -> PluginError:
    """Return an error that says what a plugin raised, and in which line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename and frame.line]
    here = Path(__file__)
    own = [frame for frame in own if Path(frame.filename) != here]
    if isinstance(error, SyntaxError) and error.filename:
        where = f", in {error.filename}, line {error.lineno}"
    else:
        where = f", in {own[-1].filename}, line {own[-1].lineno}" if own else ""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return PluginError(f"--plugin {name}: importing it raised {words}{where}")


# What was registered, checked ---------------------------------------------------------------------


def plugin_cases() -> Iterator[Case | str]:
    """Yield a check for everything with a gradient that was registered from outside.

    It is built with its options at their defaults; what cannot be is said in words instead.
    """
    x = np.random.default_rng(0).standard_normal((3, 4, 4))
    drawn: dict[str, Any] = {"seed": 0, "dtype": "float64"}

    def block(name: str) -> EncoderBlock:
        sizes = {"d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 6, "max_len": 5}
        return EncoderBlock(EncoderConfig(**sizes, mixer=name), name, **drawn)  # type: ignore[arg-type]

    def ffn(name: str) -> Any:
        return FFNS.make(name, 4, 6, "gelu", initializer="xavier_uniform", **drawn)

    def loss(name: str) -> Any:
        made = LOSSES.make(name)
        shape = (6, made.n_outputs(2))
        rng = np.random.default_rng(1)
        labels = isinstance(made, Classification)
        y = rng.integers(0, 2, 6) if labels else rng.standard_normal(shape)
        return made, rng.standard_normal(shape), y

    makers: list[tuple[Any, str, Callable[[str], Any]]] = [
        (ACTIVATIONS, "layers", ACTIVATIONS.make),
        (FFNS, "layers", ffn),
        (POOLINGS, "layers", lambda name: POOLINGS.make(name, 4, 0, "float64")),
        (MIXERS, "mixers", block),
        (LOSSES, "functional", loss),
    ]
    for registry, group, make in makers:
        for name in registry.added():
            title = f"{registry.kind} {name}"
            try:
                made = make(name)
            except (TypeError, ValueError) as error:
                yield f"{title} is not checked, for it cannot be built without options: {error}"
                continue
            yield Case(f"{title}: registered", group, (name,), _check(made, x))


def _check(made: Any, x: np.ndarray) -> Callable[[], GradcheckReport]:
    if not isinstance(made, tuple):
        return lambda: gradcheck(made, x)
    loss, outputs, y = made
    return lambda: gradcheck((loss.forward, loss.backward), outputs, y, wrt=["outputs"])
