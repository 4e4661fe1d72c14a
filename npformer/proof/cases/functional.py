"""Cases of functions: linear maps, activations, norms, transforms, losses."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.proof.cases.case import Case, draw, keep, pair


def _linear_maps() -> Iterator[Case]:
    yield pair("with bias", F.linear, (2, 3, 5), (5, 4), (4,))
    yield pair("without bias", F.linear, (2, 5), (5, 4))
    yield pair("a single row", F.linear, (5,), (5, 4), (4,))
    yield pair("weights along random directions", F.linear, (3, 12), (12, 10), (10,))
    yield pair("kernel 1", F.conv1d, (2, 5, 3), (1, 3, 4), (4,))
    yield pair("kernel 3, without bias", F.conv1d, (2, 5, 3), (3, 3, 4))
    yield pair("kernel 4, longer than x", F.conv1d, (2, 3, 3), (4, 3, 4), (4,))
    for kernel in (2, 3):
        for padding in ("same", "valid"):
            label = f"kernel {kernel}, {padding}"
            yield pair(label, F.conv1d, (2, 5, 3), (kernel, 3, 4), (4,), padding=padding)


def _elementwise() -> Iterator[Case]:
    at_corner = draw(3, 4)
    at_corner[::2, 1:3] = 0.0
    generator = np.random.default_rng(2)
    yield pair("random points", F.relu, (3, 4))
    yield pair("4 points at exactly 0, where it has no derivative", F.relu, at_corner)
    yield pair("exact", F.gelu, 2.0 * draw(3, 4))
    yield pair("tanh form", F.gelu, 2.0 * draw(3, 4), approximate="tanh")
    yield pair("random points", F.tanh, (3, 4))
    yield pair("random points", F.sigmoid, 3.0 * draw(3, 4))
    yield pair("random points", F.silu, 3.0 * draw(3, 4))
    yield pair("training", F.dropout, (4, 6), 0.4, generator)
    yield pair("evaluation", F.dropout, (4, 6), 0.4)
    yield pair("rate 0", F.dropout, (4, 6), 0.0, generator)
    yield pair("training", F.token_dropout, (3, 5, 2), 0.4, generator)
    yield pair("evaluation", F.token_dropout, (3, 5, 2), 0.4)


def _normalisations() -> Iterator[Case]:
    gamma, beta = 1.5 + draw(6, seed=1), draw(6, seed=2)
    kept_entries = np.random.default_rng(0).random((3, 5)) < 0.6
    kept_entries[1] = False
    by_row = np.array([[True], [False], [True]])
    yield pair("gamma away from 1", F.layer_norm, (2, 3, 6), gamma, beta)
    yield pair("without a shift", F.layer_norm, (2, 3, 6), gamma, None)
    yield pair("mean of 100", F.layer_norm, 100.0 + draw(4, 6), gamma, beta)
    yield pair("large epsilon", F.layer_norm, (4, 6), gamma, beta, eps=0.5)
    yield pair("gamma away from 1", F.rms_norm, (2, 3, 6), gamma)
    yield pair("large epsilon", F.rms_norm, (4, 6), gamma, eps=0.5)
    yield pair("last axis", F.softmax, (2, 3, 4))
    yield pair("first axis", F.softmax, (3, 4), axis=0)
    yield pair("masked, one row fully", F.softmax, (3, 5), mask=kept_entries)
    yield pair("masked, first axis", F.softmax, (3, 5), axis=0, mask=by_row)


def _transforms() -> Iterator[Case]:
    for transform in (F.fourier_mixing, F.hartley_mixing):
        yield pair("even sizes", transform, (2, 4, 6))
        yield pair("odd sizes", transform, (2, 5, 3))
        yield pair("a single token", transform, (2, 1, 4))
        yield pair("more leading axes", transform, (2, 2, 3, 2))
    yield pair("at full length", F.linear_mixing, (2, 3, 4), (3, 3), (4, 4))
    yield pair("cropped", F.linear_mixing, (2, 3, 4), (5, 5), (4, 4))
    yield pair("a single token", F.linear_mixing, (2, 1, 4), (3, 3), (4, 4))


def _modern_parts() -> Iterator[Case]:
    for layout in ("halves", "neighbours"):
        yield pair(layout, F.rotary, (2, 3, 4), np.arange(3), layout=layout)
    at = np.array([[[0], [9]], [[4], [1]]])
    yield pair("two of each head", F.repeat_heads, (2, 2, 3, 4), 2)
    yield pair("each head once", F.repeat_heads, (2, 2, 3, 4), 1)
    yield pair("positions of each row, slow", F.rotary, (2, 2, 1, 6), at, theta=500.0)
    for activation in ("silu", "gelu", "sigmoid"):
        yield pair(activation, F.gated, (2, 3, 4), (4, 6), (4, 6), (6, 4), activation=activation)


def _tokens_and_losses() -> Iterator[Case]:
    ids = np.array([[1, 3, 1], [1, 0, 3]])
    yield pair("repeated ids", F.embedding, ids, (5, 4))
    yield pair("a row of ids", F.embedding, np.array([4, 2, 4]), (5, 4))
    yield pair("without a mask", F.mean_pooling, (3, 4, 5))
    yield pair("one sequence is all padding", F.mean_pooling, (3, 4, 5), mask=keep([4, 2, 0], 4))

    yield pair("without a mask", F.max_pooling, (3, 4, 5))
    yield pair("one sequence is all padding", F.max_pooling, (3, 4, 5), mask=keep([4, 2, 0], 4))

    crossed, logits, by_token = F.softmax_cross_entropy, (4, 3), (2, 3, 3)
    labels, labels_of_tokens = np.array([0, 2, 1, 2]), np.array([[0, -1, 2], [1, 1, -1]])
    yield pair("one label a row", crossed, logits, labels)
    yield pair("label smoothing", crossed, logits, labels, label_smoothing=0.1)
    yield pair("some without a label", crossed, by_token, labels_of_tokens)
    label = "some without a label, label smoothing"
    yield pair(label, crossed, by_token, labels_of_tokens, label_smoothing=0.3)
    yield pair("no label at all", crossed, logits, np.full(4, F.NO_LABEL))

    z, targets = 3.0 * draw(4, 2), np.random.default_rng(0).random((4, 2))
    binary, squared = F.binary_cross_entropy_with_logits, F.mean_squared_error
    yield pair("soft targets", binary, z, targets, wrt=["logits"])
    yield pair("hard targets", binary, z, targets.round(), wrt=["logits"])
    yield pair("random points", squared, z, targets, wrt=["prediction"])


def _losses_with_weights() -> Iterator[Case]:
    weights, classes = np.array([0.5, 0.0, 2.0, 1.5]), np.array([0.2, 3.0, 1.0])
    labels = np.array([0, 2, -1, 1])
    of_samples: dict[str, Any] = {"weights": weights, "wrt": ["logits"]}
    crossed, squared = F.softmax_cross_entropy, F.mean_squared_error
    yield pair("weights", crossed, (4, 3), labels, **of_samples)
    label = "weights of samples and classes, label smoothing"
    yield pair(
        label, crossed, (4, 3), labels, label_smoothing=0.3, class_weights=classes, **of_samples
    )
    z, targets = 3.0 * draw(4), np.random.default_rng(0).random(4)
    binary = F.binary_cross_entropy_with_logits
    yield pair("weights", binary, z, targets, **of_samples)
    label = "weights of samples and classes"
    yield pair(label, binary, z, targets, class_weights=classes[:2], **of_samples)
    yield pair(
        "weights of rows",
        squared,
        draw(4, 2),
        draw(4, 2, seed=1),
        weights=weights,
        wrt=["prediction"],
    )


SUBJECTS = (
    _linear_maps,
    _elementwise,
    _normalisations,
    _transforms,
    _modern_parts,
    _tokens_and_losses,
    _losses_with_weights,
)
