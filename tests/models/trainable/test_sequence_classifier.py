import copy

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.engine import cpu
from npformer.mixers import MIXERS, SCORES
from npformer.models import accumulate
from tests.data.test_lengths import model_of


@pytest.mark.parametrize(
    ("pooling", "shape"),
    [("mean", (5, 3)), ("first", (5, 3)), ("flatten", (5, 3)), ("none", (5, 6, 3))],
)
def test_poolings_give_an_answer_a_sequence_or_a_token(small_model, rng, pooling, shape):
    model = small_model(pooling=pooling)
    ids = rng.integers(0, 7, (5, 6))
    assert small_model(pooling=pooling, n_features=2)(rng.normal(size=(5, 6, 2))).shape == shape
    assert model(ids).shape == shape
    assert model.predict_probabilities(ids).shape == shape
    assert model.predict(ids).shape == shape[:-1]


def test_is_embed_encode_pool_classify(small_model, token_batch):
    model = small_model()
    ids, _, mask = token_batch
    pooled, _ = F.mean_pooling(model.encoder(model.embed(ids), mask), mask)
    logits = model.classify(pooled)
    with nf.use_kernels(False):
        np.testing.assert_array_equal(model(ids, mask), logits)
    np.testing.assert_allclose(model(ids, mask), logits, rtol=1e-12, atol=1e-14)


def test_one_logit_stands_for_two_classes(small_model, token_batch):
    ids, _, _ = token_batch
    model = small_model(n_classes=2, output="sigmoid")
    p = model.predict_probabilities(ids)
    assert model(ids).shape == (8, 1)
    assert p.shape == (8, 2)
    np.testing.assert_allclose(p[:, 1], F.sigmoid(model(ids))[0][:, 0])
    np.testing.assert_allclose(p.sum(axis=-1), 1.0)


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_no_samples_have_no_answers(small_model, mixer):
    ids = np.zeros((2, 6), dtype=int)
    for pooling in ("mean", "first", "flatten", "none", "pooler", "one logit"):
        of_one = {"pooling": "mean", "output": "sigmoid"}
        changes = of_one if pooling == "one logit" else {"pooling": pooling}
        model = small_model(mixer=mixer, n_classes=2, **changes)
        assert model(ids[:0]).shape == (0, *model(ids).shape[1:]), pooling
        p = model.predict_probabilities(ids[:0])
        assert (p.shape, p.dtype) == ((0, *model(ids).shape[1:-1], 2), "float64"), pooling
        assert model.predict(ids[:0]).shape == p.shape[:-1], pooling


def test_masked_arrays_are_refused_with_what_to_do(small_model, token_batch):
    ids, labels, mask = token_batch
    hidden = np.ma.array(ids, mask=~mask)
    model = small_model()
    for call in (
        lambda: model(hidden),
        lambda: model.predict(hidden),
        lambda: model.loss_and_gradients(ids, np.ma.array(labels)),
        lambda: model(ids, np.ma.array(mask)),
        lambda: nf.fit(model, (hidden, labels), progress=False),
    ):
        with pytest.raises(TypeError, match="is a masked array; expected a plain one"):
            call()


def test_a_hole_in_the_padding_is_named_by_its_row_in_the_data(small_model, token_batch):
    ids, _, mask = token_batch
    mask[6] = [True, False, True, True, False, False]
    model = small_model(mixer="fourier", padding="per_length")
    labels = np.zeros(8, dtype="int64")
    for call in (
        lambda: model.predict_probabilities(ids, mask, batch_size=2),
        lambda: model(ids, mask),
        lambda: model.loss_and_gradients(ids, labels, mask, micro_batch=2),
        lambda: model.loss_and_gradients(ids, labels, mask, workers=2),
    ):
        with pytest.raises(ValueError, match="mask keeps tokens after padding in row 6"):
            call()
    with pytest.raises(TypeError, match="mask has dtype int64; expected a boolean array"):
        model.predict(ids, 1 - mask.astype("int64"))  # ones at the padding
    assert small_model(padding="per_length").predict(ids, mask).shape == (8,)  # it may skip tokens


def test_the_loss_of_one_logit_is_the_binary_cross_entropy(small_model, token_batch):
    """With label smoothing, it is the cross-entropy of two logits of which one is 0."""
    ids, y, _ = token_batch
    model = small_model(n_classes=2, output="sigmoid")
    y = y % 2
    z = model(ids)
    plain, _ = F.binary_cross_entropy_with_logits(z[:, 0], y.astype("float64"))
    assert model.loss_and_gradients(ids, y)[0] == pytest.approx(float(plain), rel=1e-13)
    smoothed, _ = F.softmax_cross_entropy(np.concatenate([0.0 * z, z], axis=-1), y, 0.2)
    loss, _ = model.loss_and_gradients(ids, y, label_smoothing=0.2)
    assert loss == pytest.approx(float(smoothed), rel=1e-13)


@pytest.mark.parametrize("output", ["softmax", "sigmoid"])
def test_a_numpy_number_smooths_labels_of_a_float32_model(small_model, token_batch, output):
    ids, y, mask = token_batch
    model = small_model(n_classes=2, output=output, dtype="float32")
    y = y % 2
    expected, _ = model.loss_and_gradients(ids, y, mask, label_smoothing=0.1)
    assert model.loss_and_gradients(ids, y, mask, label_smoothing=np.float64(0.1))[0] == expected


@pytest.mark.parametrize("mixer", MIXERS)
def test_buffers_used_again_change_no_number(small_model, token_batch, mixer):
    model = small_model(mixer=mixer)
    ids, y, _ = token_batch
    _, gradients = model.loss_and_gradients(ids, y)  # with a workspace
    without = nf.Gradients(model)
    twin = nf.fast(model, of_data=True)
    batch = model.batch(ids, y)
    accumulate(twin, model.loss, batch, nf.Context(training=True), without)
    np.testing.assert_array_equal(gradients.flat, without.flat)


def test_a_later_call_changes_no_array_of_an_earlier_one(small_model, token_batch):
    model = small_model()
    ids, y, mask = token_batch
    before = copy.deepcopy(token_batch)
    logits = model(ids, mask)
    _, gradients = model.loss_and_gradients(ids, y, mask)
    inputs = {"ids": ids, "y": y, "mask": mask}
    arrays = {"logits": logits, "gradients": gradients.flat, **gradients, **inputs}
    arrays_before = copy.deepcopy(arrays) | dict(zip(inputs, before, strict=True))
    other = (ids + 1) % 7
    model.loss_and_gradients(other, y)
    model(other)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_before[name], err_msg=name)


def test_parameters_are_the_model_itself(small_model, token_batch):
    model = small_model()
    ids, _, _ = token_batch
    model.parameters()["classify.weight"][...] = 0.0
    model.parameters()["classify.bias"][...] = [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(model(ids), np.tile([1.0, 2.0, 3.0], (8, 1)))


@pytest.mark.parametrize("mixer", MIXERS)
def test_a_step_of_training_lowers_the_loss_whatever_the_mixer(small_model, token_batch, mixer):
    model = small_model(mixer=mixer, mixture=tuple(SCORES), padding="per_length")
    before, gradients = model.loss_and_gradients(*token_batch)
    assert np.isfinite(gradients.flat).all()
    silent = [name for name, gradient in gradients.items() if not gradient.any()]
    assert silent == []
    nf.Adam(model.parameters(), lr=1e-3).step(gradients)
    after, _ = model.loss_and_gradients(*token_batch)
    assert after < before


def test_the_gradient_of_features_is_not_computed(small_model, rng, monkeypatch):
    model = small_model(n_features=5)
    input_gradients = []

    def record_gradients(backward):
        def run(dy, cache, **options):
            gradients = backward(dy, cache, **options)
            input_gradients.append(gradients[0])
            return gradients

        return run

    for name, (forward, backward) in cpu.KERNELS.items():
        monkeypatch.setitem(cpu.KERNELS, name, (forward, record_gradients(backward)))
    model.loss_and_gradients(rng.normal(size=(4, 6, 5)), np.array([0, 1, 2, 0]))
    assert len(input_gradients) > 5
    assert input_gradients[-1] is None
    assert all(dx is not None for dx in input_gradients[:-1])


def test_nan_has_no_most_probable_class(small_model, rng):
    model = small_model(n_features=5)
    x = rng.normal(size=(4, 6, 5))
    x[2, 1] = np.nan
    words = r"for sample 2 are NaN or infinite; .* x holds NaN .*npformer.trace"
    with pytest.raises(ValueError, match=words):
        model.predict(x)
    wrong = np.isnan(model.predict_probabilities(x)).any(axis=1)
    assert wrong.tolist() == [False, False, True, False]
    with pytest.raises(ValueError, match="the outputs for sample 2 are NaN or infinite"):
        nf.evaluate(model, (x, np.array([0, 0, 0, 0])))


def test_an_error_names_the_shape_of_the_whole_input(small_model):
    model = small_model()
    x = np.zeros((9, 6), int)
    with pytest.raises(ValueError, match=r"mask has shape \(9, 5\); expected \(9, 6\)"):
        model.predict(x, np.ones((9, 5), bool), batch_size=2)
    with pytest.raises(ValueError, match=r"x has shape \(9, 6\); expected \(batch, length, 5\)"):
        small_model(n_features=5).predict(x.astype(float), batch_size=2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((4, 1), int), r"y has shape \(4, 1\); expected \(4,\).*: y\[\.\.\., 0\]"),
        (np.eye(3, dtype=int)[[0, 1, 2, 0]], r"y.argmax\(axis=-1\) if this is one-hot"),
        (np.array(list("abca")), r"expected whole numbers. numpy.unique\(y, return_inverse=True\)"),
    ],
)
def test_labels_of_another_kind_are_told_how_to_become_numbers(small_model, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        small_model().loss_and_gradients(np.zeros((4, 6), int), y)


@pytest.mark.parametrize("changes", [{"n_features": 5, "pooling": "first"}, {"vocab_size": 100}])
def test_a_seed_gives_the_same_blocks_whatever_goes_in(small_model, changes):
    expected = small_model().encoder.parameters().flat
    np.testing.assert_array_equal(small_model(**changes).encoder.parameters().flat, expected)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"mixer": "fourier"}, True),
        ({"mixer": "fourier", "padding": "zero"}, False),
        ({"padding": "zero"}, True),  # attention skips padding, whatever the setting says
        ({"pooling": "flatten"}, False),
    ],
)
def test_whether_the_amount_of_padding_changes_no_output(settings, expected):
    assert model_of(**settings).skips_padding() == expected
