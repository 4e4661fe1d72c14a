"""to_onnx: write a model to a file that other programs can run."""

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
from npformer.models.trainable import LanguageModel, MaskedLanguageModel, SequenceClassifier
from npformer.training.storage.outputs import check_place, write_output

LARGEST = 2**31 - 2**20
"""Maximum size of an ONNX file in bytes: it is one protobuf message."""


@runtime_checkable
class Pipeline(Protocol):
    """An estimator that contains models, such as a `TextClassifier`."""

    def model_part(self) -> tuple[Sequence[Any], Mapping[str, Any], str]:
        """Return the models, values for JSON, and a note.

        The probabilities of several models are averaged. The note describes what the caller has to
        do before and after the models.
        """


@dataclass(frozen=True)
class Exported:
    """The result of `to_onnx`.

    Attributes
    ----------
    inputs, outputs : list of str
        Their names.
    left : str
        What the caller has to do before and after the model; "" if nothing.
    metadata : dict of str to str
        Stored in the file: `onnxruntime` returns it as ``get_modelmeta().custom_metadata_map``.
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

    The file computes the evaluation outputs of the model, in float32, for any batch size and any
    length up to max_len. Its inputs are x, and mask and types where the model has them, with the
    same meaning as here: x is (batch, length), int64, for token ids, and (batch, length,
    n_features), float32, for vectors; mask is True at tokens. The outputs of a classifier are
    logits and probabilities; a model that predicts numbers has outputs.

    Parameters
    ----------
    model : SequenceClassifier, LanguageModel, MaskedLanguageModel, or an estimator
        Of a TextClassifier, SeriesClassifier or EncoderClassifier, only the models are written; the
        metadata has the class names and the preparation of inputs.
    path : path
    mask : bool, optional
        Whether the file takes a mask. None: yes, unless a mixer refuses padding.
    types : bool, optional
        Whether it takes token types. None: yes, if the model has more than one type.
    overwrite : bool
        Whether to replace an existing file.

    Returns
    -------
    Exported
        The names of inputs and outputs, and what the caller still has to do.
    """
    library("onnx", "onnx", "to_onnx")
    file = checks.path("path", path)
    checks.flag("overwrite", overwrite)
    check_place(file, "model.onnx", overwrite=overwrite)
    for name, flag in (("mask", mask), ("types", types)):
        if flag is not None:
            checks.flag(name, flag)
    models: Sequence[Any] = [model]
    json_values: Mapping[str, Any] = {}
    left = ""
    if isinstance(model, Pipeline):
        models, json_values, left = model.model_part()
    for member in models:
        _check_model(member)
    names = _parameter_names(models)
    size = 4 * sum(parameter.size for parameter in names)
    if size > LARGEST:
        raise ValueError(f"the weights are {size:,} bytes; expected at most {LARGEST:,} in a file")
    graph = Graph(names, models[0].config.max_len, models[0].config.d_model)
    x = _inputs(graph, models[0], mask, types)
    _outputs(graph, models, x)
    metadata = {key: json.dumps(value, ensure_ascii=False) for key, value in json_values.items()}
    write_output(file, graph.model(metadata).SerializeToString(), overwrite=overwrite)
    inputs = [value.name for value in graph.inputs]
    outputs = [value.name for value in graph.outputs]
    return Exported(inputs, outputs, left, metadata)


def _parameter_names(models: Sequence[Any]) -> dict[Parameter, str]:
    """Return the name of each parameter in the file; with several models it has their number."""
    if len(models) == 1:
        return {parameter: name for name, parameter in models[0].named_parameters().items()}
    names = {}
    for i, member in enumerate(models):
        for name, parameter in member.named_parameters().items():
            names[parameter] = f"{i}.{name}"
    return names


def _check_model(model: Any) -> None:
    """Raise TypeError for a model that cannot be written in ONNX."""
    checks.instance("model", model, Layer, "Pass pretrained.classifier(), or writer.model")
    if not isinstance(model, SequenceClassifier | LanguageModel | MaskedLanguageModel):
        raise TypeError(
            f"model is {a_type(model)}; expected a SequenceClassifier, a LanguageModel or a "
            "MaskedLanguageModel. Models with two inputs, and caches, cannot be written in ONNX"
        )


def _inputs(graph: Graph, model: Any, mask: bool | None, types: bool | None) -> Value:
    """Add the inputs of a model to a graph, and return x."""
    unmasked_mixers = _mixers_without_mask(model)
    if mask and unmasked_mixers:
        raise ValueError(
            f"mask is True, and {unmasked_mixers[0]} refuses padding; expected False, or a model "
            "with EncoderConfig(padding='per_length')"
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
        mask = not unmasked_mixers
    if types is None:
        types = n_types > 1
    if mask:
        graph.mask = graph.input("mask", "bool", tokens)
    if types:
        graph.types = graph.input("types", "int64", tokens)
    graph.length = graph.node("Shape", x, start=1, end=2)
    return x


def _mixers_without_mask(model: Any) -> list[str]:
    """Return the class names of the mixers that refuse padding."""
    return [
        type(layer).__name__
        for _, layer in model.layers()
        if isinstance(layer, WholeSequenceMixer) and layer.padding == "refuse"
    ]


def _outputs(graph: Graph, models: Sequence[Any], x: Value) -> None:
    """Add the outputs of models to a graph."""
    logits = [graph.apply(model, x) for model in models]
    probabilities_of_models = []
    for model, logits_of_model in zip(models, logits, strict=True):
        value = probabilities(model, logits_of_model, graph)
        if value is not None:
            probabilities_of_models.append(value)
    model = models[0]
    target_shape: list[Any] = ["batch"] if model.targets_of is None else ["batch", "length"]
    if len(models) == 1:
        shape = [*target_shape, *model.loss.answer_shape(model.n_classes)]
        graph.output("logits" if probabilities_of_models else "outputs", logits[0], shape)
    if not probabilities_of_models or isinstance(model, LanguageModel | MaskedLanguageModel):
        return
    mean, *rest = probabilities_of_models
    if rest:
        mean = sum(rest, mean) / float(len(models))
    graph.output("probabilities", mean, [*target_shape, model.n_classes])
