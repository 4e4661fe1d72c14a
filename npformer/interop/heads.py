"""Heads (layers for a task) in transformers' folders: read into a classifier, and written."""

import warnings
from dataclasses import dataclass
from typing import Any

from npformer.core import Layer, Seed, checks, generators
from npformer.data.lists import check_list
from npformer.data.tokenizers.tokenizer import check_texts
from npformer.interop.architecture import Architecture, Arrays, Head, Settings
from npformer.interop.encoders import TASK_PREFIXES
from npformer.interop.sentences import POOLING_LAYERS
from npformer.layers import POOLINGS, Linear
from npformer.models.trainable import SequenceClassifier

REGRESSION, ONE_LABEL = "regression", "single_label_classification"
OUTPUTS = {REGRESSION: "mean_squared_error", ONE_LABEL: "softmax", "multi_label_classification": ""}
"""{``problem_type`` in config.json: `output` of a `SequenceClassifier`}; "" if unsupported."""


@dataclass(frozen=True)
class TrainedHead:
    """A head with its weights.

    Attributes
    ----------
    head : Head
    arrays : mapping of str to array
        Under our names and in our layout.
    classes : list of str
        The names of the classes, in the order of the outputs.
    output : str
        The `output` of a `SequenceClassifier`; "" for several labels per text (unsupported).
    """

    head: Head
    arrays: Arrays
    classes: list[str]
    output: str


def read_head(architecture: Architecture, hf_config: Settings, state: Arrays) -> TrainedHead | None:
    """Return the head that a configuration names; None, with a warning, if npformer lacks it."""
    head = architecture.find_head(hf_config)
    task_weights = [name for name in state if name.startswith(TASK_PREFIXES)]
    if head is None:
        if task_weights:
            classes = ", ".join(map(str, hf_config.get("architectures") or ["no class"]))
            warnings.warn(
                f"the weights have {', '.join(task_weights)}, and the configuration names "
                f"{classes}: no head that npformer has. Only the encoder is read; save does not "
                "write them",
                stacklevel=3,
            )
        return None
    model = architecture.add_head(head)
    needed = model.places([*head.names(), "pool.dense.weight"])
    layers = {theirs.partition(".")[0] for theirs in head.layers.values()}
    head_weights = {name for name in state if name.partition(".")[0] in layers}
    unknown = head_weights.union(task_weights) - needed.keys()
    if unknown:
        raise ValueError(
            f"the weights have {min(unknown)}, which a {architecture.class_name(head)} does not "
            "have; expected its class among the architectures in the configuration"
        )
    names = {name.removeprefix(architecture.prefix) for name in state}
    missing = [name for name in needed if name.removeprefix(architecture.prefix) not in names]
    if missing:
        raise ValueError(
            f"the weights have no {missing[0]}; expected the weights of a "
            f"{architecture.class_name(head)}, which the configuration names"
        )
    return make_trained_head(head, model.our_arrays(head.names(), state), hf_config)


def make_trained_head(head: Head, arrays: Arrays, hf_config: Settings) -> TrainedHead:
    """Return a head with its weights, and with the classes and the output of a configuration."""
    n = arrays["classify.bias"].size
    problem_type = hf_config.get("problem_type") or (REGRESSION if n == 1 else ONE_LABEL)
    checks.choice("problem_type", problem_type, OUTPUTS)
    id2label = hf_config.get("id2label")
    if id2label is None:  # transformers leaves it out for two classes
        id2label = {str(i): f"LABEL_{i}" for i in range(n)}
    checks.instance("id2label", id2label, dict)
    name_of_id = {str(i): str(name) for i, name in id2label.items()}
    ids = [str(i) for i in range(n)]
    if name_of_id.keys() != set(ids):
        raise ValueError(
            f"id2label has {len(name_of_id)} classes, and the weights {n}; expected one name for "
            "each"
        )
    return TrainedHead(head, arrays, [name_of_id[id] for id in ids], OUTPUTS[problem_type])


def choose_head(architecture: Architecture, model: SequenceClassifier) -> Head:
    """Return the head that computes the same as a classifier; ValueError if there is none."""
    heads = [head for head in architecture.heads if head.pooling == model.pooling]
    if model.pooling in POOLING_LAYERS:
        heads = [Head("", model.pooling, {"classify": "linear"})]
    if not heads:
        poolings = [*POOLING_LAYERS, *(head.pooling for head in architecture.heads)]
        raise ValueError(
            f"the model has pooling={model.pooling!r}, which no head of transformers'"
            f" {architecture.family} has; expected "
            f"{', '.join(map(repr, poolings))}. Choose it before training, "
            "pretrained.classifier(n, pooling=...); npformer.save writes any model, and head=False "
            "only the encoder"
        )
    if model.output not in ("softmax", "mean_squared_error"):
        raise ValueError(
            f"the model has output={model.output!r}, which no head of transformers has; expected "
            "'softmax' or 'mean_squared_error'. npformer.save writes any model"
        )
    return heads[0]


def check_settings(architecture: Architecture, head: Head, config: Settings) -> None:
    """Raise ValueError if the settings of an encoder differ from those that a head requires."""
    for key in sorted({*architecture.settings.values()} & head.settings.keys()):
        if config[key] != head.settings[key]:
            raise ValueError(
                f"the encoder has {key} = {config[key]!r}; expected {head.settings[key]!r}, with "
                f"which transformers' {architecture.class_name(head)} computes the same. "
                "npformer.save writes any model, and head=False only the encoder"
            )


def head_config(
    architecture: Architecture, head: Head, model: SequenceClassifier, classes: Any
) -> dict[str, Any]:
    """Return the entries of config.json for a head."""
    n = model.n_classes
    if classes is None:
        classes = [f"LABEL_{i}" for i in range(n)]
    entries = check_list("classes", classes, "a name for each class")
    names = check_texts(map(str, entries), "classes")
    if len(names) != n or len(set(names)) != n:
        raise ValueError(f"classes has {names}; expected {n} different names, as n_classes is {n}")
    settings: dict[str, Any] = {
        "architectures": [architecture.class_name(head if head.task else None)],
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
        **head.settings,
    }
    if model.pooling != "none":
        problem_types = {output: problem_type for problem_type, output in OUTPUTS.items()}
        settings["problem_type"] = problem_types[model.output]
    return settings


def usable_head(head: TrainedHead | None, pooling: str | None) -> TrainedHead:
    """Return a folder's head, after checking that it can be used."""
    if head is None:
        raise ValueError(
            "n_classes is None and this folder has no trained head; expected the number of "
            "classes, for a new one: classifier(2)"
        )
    if pooling is not None:
        raise ValueError(
            f"pooling is {pooling!r} and n_classes is None; expected both, for a new head, or "
            "neither, for the folder's own"
        )
    if not head.output:
        raise ValueError(
            "this folder's head gives several labels per text, which npformer does not have; "
            "expected one label. Pass n_classes for a new head"
        )
    return head


def draw_weights(model: SequenceClassifier, seed: Seed) -> Arrays:
    """Return initial weights of a new head: of the pooling, and of the last layer."""
    rng = generators.from_seed(seed)
    dtype = model.dtype
    d_pooled, n_outputs = model.classify.weight.shape
    layers: dict[str, Layer] = {
        "pool": POOLINGS.make(model.pooling, model.config.d_model, rng, dtype),
        "classify": Linear(d_pooled, n_outputs, seed=rng, dtype=dtype),
    }
    weights = {}
    for layer_name, layer in layers.items():
        for name, parameter in layer.named_parameters().items():
            weights[f"{layer_name}.{name}"] = parameter.value
    return weights
