"""Cases of gradcheck for models that can be trained, and for their losses."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from npformer.layers import POOLINGS
from npformer.models.trainable.encoder_decoder import EncoderDecoder
from npformer.models.trainable.language_model import LanguageModel
from npformer.models.trainable.masked_language_model import MaskedLanguageModel
from npformer.models.trainable.model import Model
from npformer.models.trainable.sequence_classifier import SequenceClassifier
from npformer.models.trainable.text_encoder import TextEncoder
from npformer.proof.cases import SUBJECTS
from npformer.proof.cases.case import MODEL, SEEDED, Case, draw, layer, small
from npformer.proof.cases.decoders import SOURCE, TARGET
from npformer.proof.cases.models import BERT, FEATURES, FNET, IDS, MASK, TYPES
from npformer.proof.gradcheck import gradcheck


def _classifiers() -> Iterator[Case]:
    def classifier(label: str, x: Any = FEATURES, changes: Any = (), **options: Any) -> Case:
        arguments = {"n_classes": 3, **options.pop("arguments", {})}
        model = SequenceClassifier(
            small(**dict(changes)),
            vocab_size=5 if x is IDS else None,
            n_features=None if x is IDS else 2,
            **arguments,
            **SEEDED,
        )
        return layer(label, model, x, covers=("SequenceModel",), **MODEL, **options)

    yield classifier("tokens", IDS)
    learned = {"positions": "learned"}
    yield classifier("tokens, padding mask, learned positional encoding", IDS, learned, mask=MASK)
    yield classifier("features")
    for pooling in POOLINGS:
        arguments = {"pooling": pooling}
        yield classifier(f"pooling {pooling}, padding mask", arguments=arguments, mask=MASK)
    yield classifier("one logit", arguments={"n_classes": 2, "output": "sigmoid"})
    dropped = {"dropout": 0.2, "norm": "pre"}
    yield classifier("tokens, dropout, pre-norm", IDS, dropped, training=True)
    yield classifier("ffn as convolutions", changes={"ffn": "conv1d"})
    mixed = {"mixer": ("fourier", "attention"), "activation": "gelu_tanh"}
    yield classifier("fourier and attention", IDS, mixed)


def _text_encoders() -> Iterator[Case]:
    for label, changes, pooler, options in (
        ("both outputs", BERT, True, {}),
        ("BERT", BERT, True, {"types": TYPES}),
        ("BERT, padding mask", BERT, True, {"types": TYPES, "mask": MASK}),
        ("BERT without a pooler", BERT, False, {"mask": MASK}),
        ("FNet, dropout", FNET, True, {"types": TYPES, "training": True}),
    ):
        encoder = TextEncoder(small(**changes), 5, pooler=pooler, dtype="float64")
        yield layer(label, encoder, IDS, **MODEL, **options)


def _writers() -> Iterator[Case]:
    pre: dict[str, Any] = {"norm": "pre", "dropout": 0.2}
    for label, tied in (("tied", True), ("not tied", False)):
        language_model = LanguageModel(small(causal=True, **pre), 6, tied=tied, **SEEDED)
        yield layer(f"{label}, pre-norm, dropout", language_model, SOURCE, training=True, **MODEL)
        model = EncoderDecoder(small(**pre), 6, 6, tied=tied, **SEEDED)
        yield layer(f"{label}, pre-norm, dropout", model, SOURCE, TARGET, training=True, **MODEL)
    decoder_config = replace(small(causal=True), d_model=6, n_heads=3)
    fourier = EncoderDecoder(small(mixer="fourier"), 6, 5, decoder=decoder_config, **SEEDED)
    source, target = 1 + SOURCE % 5, 1 + TARGET % 4  # the model takes ids of 0 for padding
    yield layer("Fourier below attention", fourier, source, target, **MODEL)


def _losses_of_hidden_tokens() -> Iterator[Case]:
    y = np.where(np.arange(IDS.size).reshape(IDS.shape) % 3, -1, (IDS + 1) % 5)
    covers = "Padded", "ChosenTokens"
    for n in (1, 2):
        model = MaskedLanguageModel(small(n_layers=1), 5, **SEEDED)
        label = f"hidden tokens, workers={n}"
        yield _loss_of(model, label, y, workers=n, mask=MASK, covers=covers)
    model = MaskedLanguageModel(small(n_layers=1), 5, tied=False, head_activation="silu", **SEEDED)
    label = "hidden tokens, not tied, another activation"
    yield _loss_of(model, label, y, mask=MASK, covers=covers)


def _losses() -> Iterator[Case]:
    labels = np.array([0, 1, 1])
    token_labels = np.array([[0, 1, 2, -1], [1, -1, -1, -1], [2, 2, 0, 1]])
    smooth: dict[str, Any] = {"label_smoothing": 0.1}
    sigmoid = {"output": "sigmoid"}
    no_pooling = {"pooling": "none"}
    yield case_of_loss("softmax, label smoothing", labels, {}, {}, **smooth)
    yield case_of_loss("sigmoid", labels, sigmoid, {})
    yield case_of_loss("sigmoid, label smoothing", labels, sigmoid, {}, **smooth)
    yield case_of_loss("one label a token, some without", token_labels, no_pooling, {})
    yield case_of_loss("two workers, dropout", labels, {}, {"dropout": 0.2}, workers=2, seed=0)
    yield case_of_loss("two workers, one label a token", token_labels, no_pooling, {}, workers=2)
    yield case_of_loss(
        "token types",
        labels,
        {"pooling": "pooler"},
        BERT,
        workers=2,
        mask=MASK,
        types=TYPES,
        title="SequenceClassifier",
    )


def case_of_loss(
    label: str,
    y: np.ndarray,
    arguments: dict[str, Any],
    changes: dict[str, Any],
    model_class: type[SequenceClassifier] = SequenceClassifier,
    title: str = "loss_and_gradients",
    **options: Any,
) -> Case:
    """Return a case for `loss_and_gradients`, as a function of all parameters."""
    n_classes = int(y.max()) + 1
    config = small(n_layers=1, **changes)
    model = model_class(config, n_classes, vocab_size=5, **arguments, **SEEDED)
    return _loss_of(model, label, y, title, **options)


def _loss_of(
    model: Model,
    label: str,
    y: np.ndarray,
    title: str = "loss_and_gradients",
    covers: tuple[str, ...] = (),
    **options: Any,
) -> Case:
    """Return a case for a model's `loss_and_gradients`, as a function of all parameters."""
    flat: Any = model.parameters().flat

    def forward(parameters: np.ndarray) -> tuple[Any, Any]:
        flat[...] = parameters
        return model.loss_and_gradients(IDS, y, **options)

    def backward(dloss: Any, gradients: Any) -> Any:
        return dloss * gradients.flat

    start = flat + 0.3 * draw(*flat.shape, seed=1)
    run = partial(gradcheck, (forward, backward), start)
    covers = type(model).__name__, "loss_and_gradients", *covers
    return Case(f"{title}: {label}", "models", covers, run)


SUBJECTS += [_classifiers, _text_encoders, _losses, _writers, _losses_of_hidden_tokens]
