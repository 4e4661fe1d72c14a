"""The layers of a task in transformers' folders: read into a classifier, and written back."""

import warnings
from dataclasses import dataclass
from typing import Any

from npformer.core import Layer, Seed, checks, generators
from npformer.data.lists import check_list
from npformer.data.tokenizers.tokenizer import check_texts
from npformer.interop.architecture import Architecture, Arrays, Head, Settings
from npformer.interop.encoders import OF_TASKS
from npformer.interop.sentences import WAYS
from npformer.layers import POOLINGS, Linear
from npformer.models.trainable import SequenceClassifier

REGRESSION, ONE_LABEL = "regression", "single_label_classification"
OUTPUTS = {REGRESSION: "mean_squared_error", ONE_LABEL: "softmax", "multi_label_classification": ""}
"""{``problem_type`` in config.json: `output` of a `SequenceClassifier`}; "" for several labels."""


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
        That of a `SequenceClassifier`; "" for several labels per text, which it does not have.
    """

    head: Head
    arrays: Arrays
    classes: list[str]
    output: str


def read_head(architecture: Architecture, hf_config: Settings, state: Arrays) -> TrainedHead | None:
    """Return the head that a configuration names; None, and a warning, if npformer lacks it."""
    head = architecture.head_of(hf_config)
    own = [name for name in state if name.startswith(OF_TASKS)]
    if head is None:
        if own:
            named = ", ".join(map(str, hf_config.get("architectures") or ["no class"]))
            warnings.warn(
                f"the weights have {', '.join(own)}, and the configuration names {named}: no head "
                "that npformer has. Only the encoder is read; save does not write them",
                stacklevel=3,
            )
        return None
    whole = architecture.with_head(head)
    needed = whole.places([*head.names(), "pool.dense.weight"])
    layers = {theirs.partition(".")[0] for theirs in head.layers.values()}
    of_head = {name for name in state if name in own or name.partition(".")[0] in layers}
    if unknown := of_head - needed.keys():
        raise ValueError(
            f"the weights have {min(unknown)}, which a {architecture.class_name(head)} does not "
            "have; expected the class that it belongs to among the configuration's architectures"
        )
    short = {name.removeprefix(architecture.prefix) for name in state}
    if missing := [key for key in needed if key.removeprefix(architecture.prefix) not in short]:
        raise ValueError(
            f"the weights have no {missing[0]}; expected those of a "
            f"{architecture.class_name(head)}, which the configuration names"
        )
    return trained_head(head, whole.ours(head.names(), state), hf_config)


def trained_head(head: Head, arrays: Arrays, hf_config: Settings) -> TrainedHead:
    """Return a head with its weights, and with what a configuration says of its outputs."""
    n = arrays["classify.bias"].size
    kind = hf_config.get("problem_type") or (REGRESSION if n == 1 else ONE_LABEL)
    checks.choice("problem_type", kind, OUTPUTS)
    usual = {str(i): f"LABEL_{i}" for i in range(n)}  # which transformers leaves out for two
    named = usual if hf_config.get("id2label") is None else hf_config["id2label"]
    checks.instance("id2label", named, dict)
    by_id = {str(i): str(name) for i, name in named.items()}
    if by_id.keys() != usual.keys():
        raise ValueError(
            f"id2label has {len(by_id)} classes, and the weights {n}; expected one name for each"
        )
    return TrainedHead(head, arrays, [by_id[i] for i in usual], OUTPUTS[kind])


def head_for(architecture: Architecture, model: SequenceClassifier) -> Head:
    """Return the head that computes what a classifier does; ValueError if there is none."""
    found = [head for head in architecture.heads if head.pooling == model.pooling]
    if model.pooling in WAYS:
        found = [Head("", model.pooling, {"classify": "linear"})]
    if not found:
        others = [head.pooling for head in architecture.heads]
        raise ValueError(
            f"the model has pooling={model.pooling!r}, which no head of transformers'"
            f" {architecture.family} has; expected "
            f"{', '.join(repr(way) for way in (*WAYS, *others))}. Choose it before "
            "training, pretrained.classifier(n, pooling=...); npformer.save writes any model, and "
            "head=False only the encoder"
        )
    if model.output not in ("softmax", "mean_squared_error"):
        raise ValueError(
            f"the model has output={model.output!r}, which no head of transformers has; expected "
            "'softmax' or 'mean_squared_error'. npformer.save writes any model"
        )
    return found[0]


def check_settings(architecture: Architecture, head: Head, config: Settings) -> None:
    """Raise ValueError if an encoder has other settings than a head of transformers goes with."""
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
    """Return what config.json says about a head."""
    n = model.n_classes
    if classes is None:
        classes = [f"LABEL_{i}" for i in range(n)]
    given = check_list("classes", classes, "a name for each class")
    names = check_texts(map(str, given), "classes")
    if len(names) != n or len(set(names)) != n:
        raise ValueError(f"classes has {names}; expected {n} different names, as n_classes is {n}")
    written: dict[str, Any] = {
        "architectures": [architecture.class_name(head if head.task else None)],
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
        **head.settings,
    }
    if model.pooling != "none":
        written["problem_type"] = {ours: theirs for theirs, ours in OUTPUTS.items()}[model.output]
    return written


def usable_head(head: TrainedHead | None, pooling: str | None) -> TrainedHead:
    """Check that a folder has a head that can be used, and return it."""
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


def drawn_weights(model: SequenceClassifier, seed: Seed) -> Arrays:
    """Return initial weights of a new head: of the pooling, and of the last layer."""
    rng, dtype = generators.from_seed(seed), model.dtype
    d_pooled, n_outputs = model.classify.weight.shape
    head: dict[str, Layer] = {
        "pool": POOLINGS.make(model.pooling, model.config.d_model, rng, dtype),
        "classify": Linear(d_pooled, n_outputs, seed=rng, dtype=dtype),
    }
    return {
        f"{place}.{name}": parameter.value
        for place, layer in head.items()
        for name, parameter in layer.named_parameters().items()
    }
