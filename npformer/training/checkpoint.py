"""Weights in safetensors, the configuration in its metadata; no pickle."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import (
    INITIALIZERS,
    PLUGIN_FILE,
    Layer,
    Parameter,
    Registry,
    asarray,
    initializers,
    parsed,
    same,
    to_numpy,
)
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS, Dropout
from npformer.losses import LOSSES, Classification, Loss
from npformer.mixers import MIXERS, Attention
from npformer.models import Encoder, EncoderConfig
from npformer.text_encoder import TextEncoder

FORMAT = 1

Model = Encoder | TextEncoder | SequenceClassifier
MODELS: dict[str, type[Model]] = {
    "Encoder": Encoder,
    "TextEncoder": TextEncoder,
    "SequenceClassifier": SequenceClassifier,
}
"""What can be built again from its configuration, and so saved and loaded."""


TRAINING_ONLY: list[tuple[type, str]] = [
    (Dropout, "rate"),
    (Attention, "memory"),
    (Classification, "label_smoothing"),
]
"""Settings that may differ from the configuration's: what a model computes does not depend on them
at evaluation."""


class CheckpointError(ValueError):
    """A file that does not hold a model npformer can load.

    Attributes
    ----------
    unregistered : tuple of str
        What the file names and nobody has registered here: "the mixer 'mean'".
    """

    unregistered: tuple[str, ...] = ()


def save(
    model: Model,
    path: str | os.PathLike[str],
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a safetensors file.

    The file holds every parameter under its dotted name, as host arrays whatever the backend, and
    the configuration in its metadata. It is written beside its place and then moved there, so that
    an interruption leaves the old file whole.

    `load` builds the model that the configuration names and gives it these parameters. So the
    layers have to be those that the configuration makes: a model in which another activation was
    put in place by hand is refused, for it would come back as another model.

    Parameters
    ----------
    model : Encoder, TextEncoder or SequenceClassifier
    path : str or path
        Usually ending in ``.safetensors``.
    notes : mapping, optional
        More to remember, in plain values: `read_notes` gives it back.

    Raises
    ------
    TypeError
        Not a model that can be built again from its configuration.
    ValueError
        A layer of the model is not what its configuration makes; the message names it.
    FileNotFoundError
        The folder does not exist.
    """
    from safetensors.numpy import save as to_bytes

    if type(model) not in MODELS.values():  # `load` could not build a subclass
        raise TypeError(
            f"model is a {type(model).__name__}; expected an Encoder, a TextEncoder or a "
            "SequenceClassifier, which can be built again from their configuration. For other "
            "layers save layer.parameters() with safetensors.numpy.save_file"
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
    _check_tree(model)
    header = {
        "format": FORMAT,
        "class": type(model).__name__,
        "config": model.config.to_dict(),
        "arguments": _arguments(model),
        "notes": dict(notes or {}),
    }
    if registered := _registered(model):
        header["registered"] = registered
    tensors = {
        name: to_numpy(parameter.value).copy()
        for name, parameter in model.named_parameters().items()
    }
    data = to_bytes(tensors, metadata={"npformer": json.dumps(header)})
    # A name of its own: another process may be saving to the same place.
    beside = path.with_name(f"{path.name}.{token_hex(4)}.part")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], backend: str = "numpy") -> Model:
    """Read a model from a file that `save` wrote, on any backend.

    Parameters
    ----------
    path : str or path
    backend : str
        Where the model shall live.

    Returns
    -------
    model : Encoder, TextEncoder or SequenceClassifier

    Raises
    ------
    FileNotFoundError
        There is no such file.
    CheckpointError
        The file is damaged, cut short, or not npformer's; the message says which.
    """
    header, tensors = _read(Path(path))
    try:
        config = EncoderConfig.from_dict(header["config"])
        kind, arguments = header["class"], header["arguments"]
        if kind not in MODELS:
            raise ValueError(f"it holds a {kind}; expected one of {', '.join(MODELS)}")
        model = MODELS[kind](config, **arguments, seed=initializers.undrawn())
    except (KeyError, TypeError, ValueError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else error
        unregistered = _unregistered(header)
        found = CheckpointError(
            f"{path}: its description cannot be used: {problem}. {_what_to_do(unregistered)}If the "
            "file was edited, save the model again"
        )
        found.unregistered = tuple(unregistered)
        raise found from error
    named = model.named_parameters()
    problems = [f"{name} is missing" for name in named if name not in tensors]
    problems += [f"{name} is not part of the model" for name in tensors if name not in named]
    problems += [
        f"{name} has shape {tensors[name].shape} and dtype {tensors[name].dtype}, expected "
        f"{parameter.shape} and {parameter.dtype}"
        for name, parameter in named.items()
        if name in tensors
        and (tensors[name].shape != parameter.shape or tensors[name].dtype != parameter.dtype)
    ]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise CheckpointError(
            f"{path}: its tensors do not fit its configuration: {'; '.join(problems[:3])}{more}. "
            "Was it edited? Save the model again"
        )
    for name, parameter in named.items():
        parameter.value[...] = asarray(tensors[name])
    return model.to(backend)


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the notes that were saved with a model.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    FileNotFoundError, CheckpointError
        As in `load`.
    """
    header, _ = _read(Path(path))
    return dict(header.get("notes", {}))


# What was registered from outside -----------------------------------------------------------------


def _arguments(model: Model) -> dict[str, Any]:
    return {"dtype": model.dtype} if isinstance(model, Encoder) else model.arguments()


def _named(
    config: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[tuple[Registry[Any], str]]:
    """Yield what a description names in tables that are open to others."""
    mixers = config.get("mixer")
    every = mixers if isinstance(mixers, list | tuple) else [mixers]
    specs: list[tuple[Registry[Any], Any]] = [
        *((MIXERS, mixer) for mixer in every),
        (ACTIVATIONS, config.get("activation")),
        (FFNS, config.get("ffn")),
        (INITIALIZERS, config.get("initializer")),
        (POOLINGS, arguments.get("pooling")),
        (LOSSES, arguments.get("output")),
    ]
    known = set()
    for registry, spec in specs:
        if isinstance(spec, str) and (registry.kind, spec) not in known:
            known.add((registry.kind, spec))
            with suppress(ValueError):  # edited: who builds the model says so
                yield registry, parsed(spec, registry.kind)[0]


def _registered(model: Model) -> list[dict[str, str]]:
    """Return which names of a model are not npformer's own, and where they are from."""
    found = []
    for registry, name in _named(vars(model.config), _arguments(model)):
        if name in registry.added():
            builder = registry[name]
            builder = builder.func if isinstance(builder, partial) else builder
            module = str(getattr(builder, "__module__", ""))
            # A plugin that was read from a file has a module's name that nobody can import.
            module = getattr(sys.modules.get(module), PLUGIN_FILE, module)
            found.append({"kind": registry.kind, "name": name, "module": module})
    return found


def _unregistered(header: Mapping[str, Any]) -> dict[str, str]:
    """Return what a file names and nobody has registered, in words, and the module it is from."""
    of: dict[tuple[str, str], str] = {}
    with suppress(AttributeError, KeyError, TypeError):  # edited
        of = {(r["kind"], r["name"]): str(r["module"]) for r in header.get("registered", [])}
    try:
        named = list(_named(header["config"], header["arguments"]))
    except (AttributeError, KeyError, TypeError):  # edited
        return {}
    return {
        f"the {registry.kind} {name!r}": of.get((registry.kind, name), "")
        for registry, name in named
        if name not in registry
    }


def _what_to_do(unregistered: Mapping[str, str]) -> str:
    """Return, as sentences, how names are registered that a file needs."""
    if not unregistered:
        return ""
    names = " and ".join(unregistered)
    from_modules = sorted({module for module in unregistered.values() if module})
    where = "the module that registers it"
    if from_modules:
        files = [f"the file {m}" if m.endswith(".py") else m for m in from_modules]
        where = " and ".join(files)
    if "__main__" in from_modules:
        where = "a module that registers it (a script or notebook did, when it was saved)"
    plugin = "MODULE" if len(from_modules) != 1 or "__main__" in from_modules else from_modules[0]
    return (
        f"The file needs {names}: before nf.load, register it, or import {where}; on the command "
        f"line, --plugin {plugin}. "
    )


# Whether a model is what its configuration makes --------------------------------------------------


def _check_tree(model: Model) -> None:
    """Check that `load` would build these very layers.

    The model is built once more, with no weights drawn, and both are compared: the classes of all
    layers, their settings, and the names and shapes of all parameters.
    """
    made = type(model)(model.config, **_arguments(model), seed=initializers.undrawn())
    for problem in _differences("", model, made, set()):
        raise ValueError(
            f"{problem}. The file would be loaded as another model. Two ways out: register the "
            "layer and name it in the configuration (docs/extending.md), as in "
            "EncoderConfig(activation='mine'); or save model.parameters() with "
            "safetensors.numpy.save_file, and build the model by your own code"
        )
    ours, theirs = model.named_parameters(), made.named_parameters()
    for name in [*ours, *theirs]:
        if name not in theirs or name not in ours:
            whose = "the model has" if name in ours else "the configuration makes"
            raise ValueError(
                f"{name} is a parameter that only {whose}; expected the same in both, or the file "
                "could not be loaded. A block that is shared, or no longer is, is named in the "
                "configuration: EncoderConfig(share_layers=True)"
            )
        if ours[name].shape != theirs[name].shape or ours[name].dtype != theirs[name].dtype:
            raise ValueError(
                f"{name} has shape {ours[name].shape} and dtype {ours[name].dtype}, and the "
                f"configuration makes {theirs[name].shape} and {theirs[name].dtype}; expected the "
                "same, or the file could not be loaded. Build the model with the sizes that it has"
            )


def _differences(path: str, ours: Any, made: Any, seen: set[tuple[int, int]]) -> Iterator[str]:
    """Yield in words where a part of a model is not what its configuration makes."""
    if (id(ours), id(made)) in seen:  # a block that acts several times
        return
    seen.add((id(ours), id(made)))
    name = path or "the model"
    if not same(type(ours), type(made)):
        yield (
            f"{name} is {_words(ours)}, and the model's configuration makes {_words(made)}; "
            "expected the same"
        )
    elif isinstance(made, Layer | Loss):
        for key in [*vars(made), *(key for key in vars(ours) if key not in vars(made))]:
            below = f"{path}.{key}" if path else key
            if key not in vars(made):
                # A note of the user's is no matter; a method of its very own is.
                if hasattr(type(made), key):
                    yield f"{name} has a {key} of its own; expected that of {type(made).__name__}"
            elif key not in vars(ours):
                yield f"{below} is gone; the model's configuration makes {_words(vars(made)[key])}"
            elif not (key.startswith("_") or _training_only(made, key)):
                yield from _differences(below, vars(ours)[key], vars(made)[key], seen)
    elif isinstance(made, list | tuple):
        if len(ours) != len(made):
            yield f"{name} has {len(ours)} parts, and the model's configuration makes {len(made)}"
        for i, (our, their) in enumerate(zip(ours, made, strict=False)):
            yield from _differences(f"{path}.{i}", our, their, seen)
    elif not isinstance(made, Parameter) and not _equal(ours, made):
        yield (
            f"{name} is {_words(ours)}, and the model's configuration makes {_words(made)}; "
            "expected the same. (What training changes belongs into a Parameter, which is saved; "
            "what does not matter may have a name that begins with _)"
        )


def _training_only(layer: Any, key: str) -> bool:
    return any(isinstance(layer, kind) and key == name for kind, name in TRAINING_ONLY)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two settings are equal; what cannot be compared counts as equal."""
    if hasattr(one, "__qualname__"):  # functions and classes
        return same(one, other)
    if "__eq__" not in {name for kind in type(one).__mro__[:-1] for name in vars(kind)}:
        return True  # an object that equals only itself, and this one is another
    if hasattr(one, "shape") and hasattr(one, "dtype"):
        ours, theirs = to_numpy(one), to_numpy(other)
        kind = ours.dtype.kind in "fc"
        return bool(np.array_equal(ours, theirs, equal_nan=kind))
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays in it
        return True


def _words(value: Any) -> str:
    if isinstance(value, Layer | Loss | Parameter):
        return f"a {type(value).__name__}"
    words = repr(value)
    return words if len(words) <= 60 else f"a {type(value).__name__}"


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    if path.is_dir():
        raise CheckpointError(
            f"{path} is a folder; expected a file, such as model.safetensors in it"
        )
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; expected one that npformer.save wrote")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "npformer" not in metadata:
                raise CheckpointError(
                    f"{path} is a safetensors file of another program: it has no npformer "
                    "configuration. Load its tensors with safetensors.numpy.load_file and copy "
                    "them into model.parameters()"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} ({path.stat().st_size:,} bytes) is not a whole safetensors file: it is "
            f"damaged, cut short or of another kind ({error}). Copy or save it again"
        ) from error
    try:
        header = json.loads(metadata["npformer"])
        version = header["format"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path}: its npformer configuration is damaged ({error}). Copy or save it again"
        ) from error
    if version != FORMAT:
        raise CheckpointError(
            f"{path} has format {version}; this npformer reads format {FORMAT}. Update npformer"
        )
    return header, tensors
