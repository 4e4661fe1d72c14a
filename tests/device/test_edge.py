"""What comes in from the host, what stays on the device, and two backends side by side."""

from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import Padding
from npformer.mixers.padding import per_length, zero
from npformer.training.inspection.non_finite import first_non_finite
from tests.device import cases
from tests.device.cases import IDS, LABELS, LABELS_OF_TOKENS, MASK, X, classifier, on_device, same

pytestmark = pytest.mark.usefixtures("plain")


def test_explain_uploads_what_comes_from_the_host() -> None:
    model = classifier("float64").to("fake")
    here, there = classifier("float64").explain(IDS, MASK), model.explain(IDS, MASK)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(nf.to_numpy(other.matrices), one.matrices, rtol=1e-12)


def test_the_first_tensor_that_is_not_finite_is_found() -> None:
    model = classifier("float32").to("fake")
    model.parameters()["encoder.blocks.1.mixer.value.bias"][...] = float("nan")
    description = first_non_finite(model, on_device(IDS))
    assert description == "parameter encoder.blocks.1.mixer.value.bias"


@pytest.mark.parametrize("name", ["x", "y", "mask"])
def test_each_array_of_a_batch_may_be_on_the_device_of_the_model(name) -> None:
    model = classifier("float64").to("fake")
    arrays = {"x": IDS, "y": LABELS, "mask": MASK}
    loss, gradients = model.loss_and_gradients(**arrays)
    arrays[name] = on_device(arrays[name])
    loss_there, gradients_there = model.loss_and_gradients(**arrays)
    assert loss_there == loss
    same(gradients_there, gradients)


@pytest.mark.parametrize("name", ["x", "y", "mask"])
def test_no_array_of_a_batch_may_be_on_another_device(name) -> None:
    arrays = {"x": IDS, "y": LABELS, "mask": MASK}
    arrays[name] = on_device(arrays[name])
    with pytest.raises(TypeError, match=rf"{name} is a fake array and the model is on numpy"):
        classifier("float32").loss_and_gradients(**arrays)


@pytest.mark.parametrize("there", ["", "y", "mask", "y, mask"])
def test_labels_of_padding_do_not_count_on_any_device(there) -> None:
    model = classifier("float64", pooling="none").to("fake")
    loss, gradients = model.loss_and_gradients(IDS, LABELS_OF_TOKENS, MASK)
    arrays = {"y": np.where(MASK, LABELS_OF_TOKENS, 2), "mask": MASK}
    arrays |= {name: on_device(arrays[name]) for name in there.split(", ") if name}
    loss_there, gradients_there = model.loss_and_gradients(IDS, **arrays)
    assert loss_there == loss
    same(gradients_there, gradients)


def test_labels_on_the_device_may_be_missing() -> None:
    model = classifier("float64", pooling="none").to("fake")
    loss, _ = model.loss_and_gradients(IDS, LABELS_OF_TOKENS)
    assert model.loss_and_gradients(IDS, on_device(LABELS_OF_TOKENS))[0] == loss


HALVES = np.array([0.0, 1.0, 0.5], dtype="float32")
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "labels of floats on the device": (
        lambda model: model.loss_and_gradients(IDS, on_device(HALVES)),
        TypeError,
        r"y has dtype float32; expected whole numbers",
    ),
    "a label out of range": (
        lambda model: model.loss_and_gradients(IDS, np.array([0, 9, 1])),
        ValueError,
        "y holds 9",
    ),
    "an id out of range": (lambda model: model(IDS + 1), ValueError, "x holds 7"),
    "workers": (
        lambda model: model.loss_and_gradients(*cases.batch(model), workers=2),
        ValueError,
        "workers are CPU threads",
    ),
}


@pytest.mark.parametrize("output", ["softmax", "sigmoid"])
@pytest.mark.parametrize("what", REFUSED)
def test_a_model_on_the_device_refuses(what, output) -> None:
    use, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        use(classifier("float32", output=output).to("fake"))


def test_a_part_of_a_model_does_not_move_alone() -> None:
    model = classifier("float32")
    with pytest.raises(ValueError, match=r"move the whole model: model\.to\('fake'\)"):
        model.encoder.to("fake")
    assert model.encoder.backend == model.backend == "numpy"


# Mixing backends

HEADS = MASK[:, None, None, :]


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, there: F.linear(there, np.ones((8, 4))),
        lambda x, there: F.layer_norm(x, on_device(np.ones(8)), on_device(np.ones(8))),
        lambda x, there: F.softmax(there, mask=MASK[..., None]),
        lambda x, there: F.mean_pooling(there, mask=MASK),
        lambda x, there: F.attention_scores(there, x),
        lambda x, there: F.average(there, on_device(np.ones((3, 8, 2))), MASK[:, :, None]),
        lambda x, there: F.average(there, np.ones((3, 8, 2))),
        lambda x, there: F.averaging_weights(there, mask=MASK[:, :, None]),
        lambda x, there: F.averaging_weights(there, mask=MASK[:, :, None], causal=True),
        lambda x, there: F.scaled_dot_product_attention(*[there] * 3, mask=MASK[:, None, :]),
        lambda x, there: F.scaled_dot_product_attention(there, there, x),
        lambda x, there: F.blockwise_attention(*[there] * 3, mask=MASK[:, None, :]),
        lambda x, there: F.blockwise_attention(there, there, x),
        lambda x, there: F.dense_synthesizer(
            *[there] * 2,
            *[on_device(np.ones(s)) for s in ((8, 8), 8, (8, 5), 5)],
            MASK[:, None, :],
            True,
        ),
        lambda x, there: F.dense_scores(
            there, *[np.ones(s) for s in ((8, 8), 8, (8, 5), 5)], columns=5
        ),
        lambda x, there: F.random_synthesizer(there, np.ones((5, 5))),
        lambda x, there: F.factorized_random_synthesizer(
            there, on_device(np.ones((5, 2))), np.ones((5, 2))
        ),
        lambda x, there: F.mixture_scores(on_device(np.ones(2)), there, x),
        lambda x, there: F.linear_mixing(there, np.ones((5, 5)), np.ones((8, 8))),
        lambda x, there: F.embedding(IDS, there[0]),
        lambda x, there: F.softmax_cross_entropy(there[:, 0], LABELS),
        lambda x, there: nf.layers.Linear(8, 4, seed=0, dtype="float64").to("fake")(x),
        lambda x, there: nf.layers.Flatten()(there, MASK),
        lambda x, there: zero(F.fourier_mixing, there, Padding(MASK), "fourier"),
        lambda x, there: per_length(F.fourier_mixing, there, Padding(MASK), "fourier"),
        lambda x, there: nf.Encoder(cases.config(), dtype="float64").to("fake")(there, MASK),
        lambda x, there: nf.Encoder(cases.config(), dtype="float64")(x, on_device(MASK)),
    ],
)
def test_mixed_backends_are_an_error_that_says_what_to_do(mix) -> None:
    expected = (
        r"[\w\[\]]+ is a (fake|numpy) array and \S+ is a (fake|numpy) array; .*npformer\.asarray\("
    )
    with pytest.raises(TypeError, match=expected):
        mix(X, on_device(X))


def test_adam_names_both_sides_when_only_the_model_moved() -> None:
    model = classifier("float32")
    optimizer = nf.Adam(model.parameters())
    _, gradients = model.loss_and_gradients(IDS, LABELS)
    model.to("fake")
    with pytest.raises(TypeError, match="parameters is a fake array and gradients is a numpy"):
        optimizer.step(gradients)
