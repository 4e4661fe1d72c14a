"""to_onnx: a model in a file that other programs run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from npformer.core import Layer, Parameter, a_type, checks
from npformer.data.libraries import library
from npformer.interop.onnx.graph import Graph, Value
from npformer.interop.onnx.models import probabilities
from npformer.mixers import WholeSequenceMixer
from npformer.models.trainable import (
    LanguageModel,
    MaskedLanguageModel,
    SequenceClassifier,
    WideSequenceClassifier,
)
from npformer.training.storage.outputs import check_place, write_output

LARGEST = 2**31 - 2**20
"""The most bytes of an ONNX file, which is one protobuf message."""


@runtime_checkable
class Pipeline(Protocol):
    """Something with models inside, such as a `TextClassifier`."""

    def model_part(self) -> tuple[Sequence[Any], Mapping[str, Any], str]:
        """Return the models, whose probabilities are averaged, values for JSON, and a note.

        The note says what the caller has to do around the models.
        """


@dataclass(frozen=True)
class Exported:
    """What `to_onnx` wrote.

    Attributes
    ----------
    inputs, outputs : list of str
        The names.
    left : str
        What the caller has to do around the model; "" if nothing.
    metadata : dict of str to str
        In the file: `onnxruntime` returns it as ``get_modelmeta().custom_metadata_map``.
    """

    inputs: list[str]
    outputs: list[str]
    left: str = ""
    metadata: dict[str, str] = field(default_factory=dict)


def to_onnx(
    model: SequenceClassifier | LanguageModel | MaskedLanguageModel | Pipeline,
    path: str | os.PathLike[str],
    *,
    mask: bool | None = None,
    types: bool | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write a model to an ONNX file, for programs such as onnxruntime. Needs the extra `onnx`.

    The file computes what the model computes at evaluation, in float32, for any batch and any
    length up to max_len. Its inputs are x, and mask and types where the model has them, with the
    same meaning as here: x is (batch, length) of int64 for token ids, (batch, length, n_features)
    of float32 for vectors; mask is True at tokens. Its outputs are logits and, for a classifier,
    probabilities; for a model that predicts numbers, outputs.

    Parameters
    ----------
    model : SequenceClassifier, LanguageModel, MaskedLanguageModel, or an estimator
        Of a TextClassifier, SeriesClassifier or EncoderClassifier, only the model part is written;
        the class names and the preparation go into the metadata.
    path : path
    mask : bool, optional
        Whether the file takes a mask. None: yes, unless a mixer refuses padding.
    types : bool, optional
        Whether it takes the types of tokens. None: yes, if the model has more than one.
    overwrite : bool
        Whether to replace an existing file.

    Returns
    -------
    Exported
        The names of inputs and outputs, and what is left to the caller.
    """
    library("onnx", "onnx", "to_onnx")
    file = checks.path("path", path)
    checks.flag("overwrite", overwrite)
    check_place(file, "model.onnx", overwrite=overwrite)
    for name, chosen in (("mask", mask), ("types", types)):
        if chosen is not None:
            checks.flag(name, chosen)
    models: Sequence[Any] = [model]
    around: Mapping[str, Any] = {}
    left = ""
    if isinstance(model, Pipeline):
        models, around, left = model.model_part()
    for member in models:
        _check(member)
    names = _parameter_names(models)
    size = 4 * sum(parameter.size for parameter in names)
    if size > LARGEST:
        raise ValueError(f"the weights are {size:,} bytes; expected at most {LARGEST:,} in a file")
    graph = Graph(names, models[0].config.max_len, models[0].config.d_model)
    x = _inputs(graph, models[0], mask, types)
    _outputs(graph, models, x)
    metadata = {key: json.dumps(value, ensure_ascii=False) for key, value in around.items()}
    write_output(file, graph.model(metadata).SerializeToString(), overwrite=overwrite)
    inputs = [value.name for value in graph.inputs]
    outputs = [value.name for value in graph.outputs]
    return Exported(inputs, outputs, left, metadata)


def _parameter_names(models: Sequence[Any]) -> dict[Parameter, str]:
    """Return the name of each parameter in the file; of several models, with their number."""
    if len(models) == 1:
        return {parameter: name for name, parameter in models[0].named_parameters().items()}
    return {
        parameter: f"{i}.{name}"
        for i, member in enumerate(models)
        for name, parameter in member.named_parameters().items()
    }


def _check(model: Any) -> None:
    """Raise TypeError for a model that cannot be written in ONNX."""
    checks.instance("model", model, Layer, "Pass pretrained.classifier(), or writer.model")
    if not isinstance(model, SequenceClassifier | LanguageModel | MaskedLanguageModel):
        raise TypeError(
            f"model is {a_type(model)}; expected a SequenceClassifier, a LanguageModel or a "
            "MaskedLanguageModel. Models of two inputs and caches of tokens are not written in ONNX"
        )


def _inputs(graph: Graph, model: Any, mask: bool | None, types: bool | None) -> Value:
    """Add the inputs of a model to a graph, and return x."""
    refusing = _refusing_padding(model)
    if mask and refusing:
        raise ValueError(
            f"mask is True, and {refusing[0]} refuses padding; expected False, or a model with "
            "EncoderConfig(padding='per_length')"
        )
    n_types = model.embed.n_token_types
    if types and not n_types:
        raise ValueError("types is True and the model has no token types; expected False")
    tokens = ["batch", "length"]
    if model.embed.n_features is None:
        x = graph.input("x", "int64", tokens)
    else:
        x = graph.input("x", "float32", [*tokens, model.embed.n_features])
    if mask is None:
        mask = not refusing
    if types is None:
        types = n_types > 1
    if mask:
        graph.mask = graph.input("mask", "bool", tokens)
    if types:
        graph.types = graph.input("types", "int64", tokens)
    graph.length = graph.node("Shape", x, start=1, end=2)
    return x


def _refusing_padding(model: Any) -> list[str]:
    """Return the classes of the mixers that take no mask."""
    return [
        type(layer).__name__
        for _, layer in model.layers()
        if isinstance(layer, WholeSequenceMixer) and layer.padding == "refuse"
    ]


def _outputs(graph: Graph, models: Sequence[Any], x: Value) -> None:
    """Add the outputs of models to a graph."""
    logits = [graph.apply(model, x) for model in models]
    of_models = [probabilities(m, z, graph) for m, z in zip(models, logits, strict=True)]
    of_classes = [value for value in of_models if value is not None]
    model = models[0]
    answers = ["batch"] if model.targets_of is None else ["batch", "length"]
    if len(models) == 1:
        of_parts = [2] if isinstance(model, WideSequenceClassifier) else []
        shape = [*answers, *of_parts, model.loss.n_outputs(model.n_classes)]
        graph.output("logits" if of_classes else "outputs", logits[0], shape)
    if not of_classes or isinstance(model, LanguageModel | MaskedLanguageModel):
        return
    mean, *others = of_classes
    if others:
        mean = sum(others, mean) / float(len(models))
    graph.output("probabilities", mean, [*answers, model.n_classes])
