"""A run as one HTML file that needs no server: its settings and curves, samples, and its model.

The model runs in the page with ``static/model.js``, if that knows all of its layers. For others the
page shows what `npformer.learn.play.model_answers` computed for some samples, and says why.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Registry, checks, to_numpy
from npformer.data.tokenizers import WordTokenizer
from npformer.layers import FFNS, NORMS, POOLINGS
from npformer.layers.activation import ACTIVATIONS
from npformer.learn.play.broken import SequenceClassifierWithBug, described
from npformer.learn.play.bundle import bundle, read
from npformer.learn.play.model_answers import Names, answer_of, sample_to_show
from npformer.learn.play.tensors import pack
from npformer.mixers import MIXERS
from npformer.models.losses import LOSSES
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.wide import WideSequenceClassifier
from npformer.training.storage.models import rebuildable
from npformer.training.storage.outputs import check_place, write_output

KNOWN: dict[str, tuple[str, ...]] = {
    "mixer": (
        "attention",
        "dense_synthesizer",
        "factorized_dense_synthesizer",
        "random_synthesizer",
        "fixed_random_synthesizer",
        "factorized_random_synthesizer",
        "mixture",
        "fourier",
        "hartley",
        "linear",
        "random",
        "identity",
        "gated_convolution",
        "state_space",
    ),
    "activation": ("relu", "gelu", "gelu_tanh", "silu", "tanh"),
    "ffn": ("linear", "conv1d", "none"),
    "norm_kind": ("layer",),
    "pooling": ("mean", "max", "first", "flatten", "none", "pooler"),
    "output": ("softmax", "sigmoid", "mean_squared_error"),
}
"""What ``model.js`` can compute."""

TABLES: dict[str, Registry[Any]] = {
    "activation": ACTIVATIONS,
    "ffn": FFNS,
    "norm_kind": NORMS,
    "pooling": POOLINGS,
    "output": LOSSES,
}

OF_TODAY: list[tuple[str, tuple[Any, ...], str]] = [
    ("positions", ("sinusoidal", "sinusoidal_halves", "learned", "none"), "a page's are added"),
    ("n_kv_heads", (None,), "on a page each head has its own keys"),
    ("d_head", (None,), "on a page heads divide the features"),
    ("window", (None,), "on a page tokens see all others"),
    ("qk_norm", (False,), "on a page queries and keys have no norm"),
    ("bias", (True,), "on a page all maps have one"),
]
"""Settings, the values that ``model.js`` knows, and what it knows instead of others."""

MOST_PARAMETERS = 3_000_000
"""Numbers that a page holds: 16 MB of text."""

MOST_POINTS = 500

N_SAMPLES = 12


class NotRunnableError(ValueError):
    """A model that ``model.js`` cannot compute; the message says why."""


def export_page(
    path: str | os.PathLike[str], model: Any, *, overwrite: bool = False, **what: Any
) -> Path:
    """Write the page of a run to a file, and return its path; `what` is as in `page_of_model`.

    With `overwrite`, an existing file is replaced.
    """
    return write_page(path, partial(page_of_model, model, **what), overwrite=overwrite)


def write_page(
    path: str | os.PathLike[str], made: Callable[[], str], *, overwrite: bool = False
) -> Path:
    """Write a page, made once it is known that it can be written there; return its path."""
    path = checks.path("path", path)
    checks.flag("overwrite", overwrite)
    check_place(path, "page.html", overwrite=overwrite)
    write_output(path, made().encode(), overwrite=overwrite)
    return path


def page_of_model(
    model: Any,
    *,
    run: Mapping[str, Any],
    points: Sequence[Mapping[str, Any]] = (),
    data: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    names: Names | None = None,
    ink: tuple[float, float] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Return the page of a run as HTML.

    Parameters
    ----------
    model : Model
        Any that `fit` can train. It is not changed.
    run : mapping
        "settings", and if they are known "classes", "kind_of_input" ("image": 8 rows of 8 pixels
        are drawn by hand) and "bug", the name of a bug of the museum that is in the model.
    points : sequence of mappings
        Of the curves: "step", "loss", "lr", "accuracy", "norms", "dead"; what is missing is None.
    data : (x, y) or (x, y, mask), optional
        Samples that the model was not trained on; the first are shown.
    texts : sequence of str, optional
        The same as people wrote them: ids do not have the words outside the vocabulary.
    names : Names, optional
        What tokens and classes are called.
    ink : (float, float), optional
        The numbers that stand for white and for black in pictures. None: 0 and 1.
    facts : mapping, optional
        Whatever else is known, by name, such as an accuracy.
    """
    names, runs, why = names or Names(), None, None
    try:
        runs = model_file(model)
    except NotRunnableError as error:
        why = str(error)
    state: dict[str, Any] = {"run": "run-1", "state": "finished", "error": None, "layers": []}
    state |= {"classes": None, "kind_of_input": "ids", "bug": None, **run}
    state["classes"] = names.classes or state["classes"]
    state["settings"] = {"task": "a model", "mixers": [type(model).__name__], **state["settings"]}
    facts = {"parameters": f"{model.n_parameters():,}", **(facts or {})}
    words, spelling = names.tokenizer, None
    if isinstance(words, WordTokenizer):  # how a text becomes ids, for ``spelling.js``
        spelling = {"lower": words.lower, "ngrams": words.ngrams}
    writable = words is None or spelling is not None
    if runs and not writable:
        facts |= {"tokenizer": "needs a library, so no text can be written on this page"}
    contents = {
        "model": runs,
        "why": why,
        "run": state,
        "points": thin_out(points),
        "bug": state["bug"] and described(state["bug"]),
        "samples": samples_to_show(model, data, texts, names, runs=runs is not None),
        "tokens": names.tokens if writable else None,
        "tokenizer": spelling,
        "ink": ink,
        "facts": facts,
    }
    replacements = {
        "style": read("play.css"),
        "script": bundle("export.js"),
        "made": f"Written by npformer {version('npformer')}. It needs no server and no network.",
        # "<" could end the element that holds it
        "data": json.dumps(finite(contents), separators=(",", ":")).replace("<", "\\u003c"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: replacements[found[1]], read("export.html"))


def describe_accuracy(accuracy: float, alone: float | None) -> str:
    """Return an accuracy, and beside it that of one answer for all, if it is known."""
    words = f"{100 * accuracy:.1f}\xa0% right on data that it was not trained on"
    return words if alone is None else f"{words}; always the same answer: {100 * alone:.1f}\xa0%"


def thin_out(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return some points of long curves, including all that end an epoch."""
    every = 1 + len(points) // MOST_POINTS
    return [
        p
        for k, p in enumerate(points)
        if k % every == 0 or p.get("loss") is None or p.get("accuracy") is not None
    ]


def model_file(model: Any) -> dict[str, Any]:
    """Return what ``model.js`` computes a model from: configuration, arguments and weights."""
    _check_class_and_size(model)
    try:
        description = rebuildable(model)
    except (TypeError, ValueError) as error:
        raise NotRunnableError(re.split(r"; expected|\. ", str(error))[0] + ".") from error
    config, arguments = description["config"], description["arguments"]
    _check_settings(config)
    if model.config.starts_normed:
        raise NotRunnableError("its first norm is that of the embeddings, and a page has both.")
    config["mixer"] = list(model.config.mixers())
    for name in config["mixer"]:
        check_known("mixer", MIXERS.parse(name, "mixer")[0])
    for setting, table in TABLES.items():
        settings = config if setting in config else arguments
        name, options = table.parse(settings[setting], setting)
        check_known(setting, name)
        if options.get("approximate") == "tanh":
            settings[setting] = "gelu_tanh"
    tensors = {
        name: {"shape": list(parameter.shape), "data": pack(to_numpy(parameter.value))}
        for name, parameter in model.named_parameters().items()
    }
    return {"config": config, "arguments": arguments, "tensors": tensors}


def _check_class_and_size(model: Any) -> None:
    """Raise NotRunnableError for a model of another class, or for one too large for a page."""
    if isinstance(model, SequenceClassifierWithBug):
        raise NotRunnableError("it has a bug of the museum, which is not written out for the page.")
    if type(model) not in (SequenceClassifier, WideSequenceClassifier):
        kind = type(model).__name__
        raise NotRunnableError(f"it is of the kind {kind}, and only classifiers of sequences do.")
    if (n := model.n_parameters()) > MOST_PARAMETERS:
        raise NotRunnableError(f"it has {n:,} parameters, and a page holds {MOST_PARAMETERS:,}.")


def _check_settings(config: Mapping[str, Any]) -> None:
    """Raise NotRunnableError for a configuration that ``model.js`` does not compute."""
    if config["position_padding_id"] is not None:
        raise NotRunnableError("its positions count tokens, as RoBERTa's do, and a page's places.")
    for setting, plain, of_page in OF_TODAY:
        if config[setting] not in plain:
            raise NotRunnableError(f"its {setting} is {config[setting]!r}, and {of_page}.")


def check_known(setting: str, name: str) -> None:
    """Raise NotRunnableError for a name that ``model.js`` does not have."""
    if name not in KNOWN[setting]:
        raise NotRunnableError(f"its {setting} {name!r} is not among those that do.")


def samples_to_show(
    model: Any, data: Any, texts: Sequence[str] | None, names: Names, *, runs: bool
) -> list[dict[str, Any]]:
    """Return the first samples; if the model does not run in a page, with its answers."""
    if data is None:
        return []
    x, y, mask = (*data, None)[:3]
    answers = []
    for i in range(min(N_SAMPLES, len(x))):
        one = np.asarray(to_numpy(x[i]))
        if mask is not None:
            one = one[np.asarray(to_numpy(mask[i]))]
        sample = sample_to_show(model, names, i, one, y[i], texts[i] if texts else None)
        if runs:
            sample["x"] = one.tolist()
        else:
            sample["answer"] = answer_of(model, one, names)
        answers.append(sample)
    return answers


def finite(value: Any) -> Any:
    """Return plain values that JSON has: NaN and infinity become None, and tuples lists."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
