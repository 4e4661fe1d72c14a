"""fit and evaluate with weights of samples and of classes."""

import numpy as np
import pytest

import npformer as nf
from npformer.core.support.weights import moderate
from npformer.models.losses import BinaryCrossEntropy, MeanSquaredError, SoftmaxCrossEntropy
from tests.needs import NEEDS
from tests.training.common import assert_same_weights, fit

pytest.importorskip("hypothesis", reason=NEEDS["hypothesis"])
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = {"softmax": {}, "sigmoid": {"n_classes": 2, "output": "sigmoid"}}
KINDS["mean_squared_error"] = {"n_classes": 2, "output": "mean_squared_error"}
KINDS["tokens"] = {"pooling": "none"}


def samples_of(kind, rng, n=10):
    """Return ids, targets and a mask for a model of this kind."""
    ids = rng.integers(0, 7, (n, 6))
    mask = np.arange(6) < rng.integers(1, 7, n)[:, None]
    if kind == "mean_squared_error":
        return ids, rng.normal(size=(n, 2)), mask
    classes = 2 if kind == "sigmoid" else 3
    return ids, rng.integers(0, classes, (n, 6) if kind == "tokens" else n), mask


def step(model, samples, **options):
    ids, y, mask = samples
    loss, gradients = model.loss_and_gradients(ids, y, mask, **options)
    return loss, gradients.flat.copy()


def assert_same_step(one, other):
    assert one[0] == pytest.approx(other[0], rel=1e-10)
    np.testing.assert_allclose(one[1], other[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 999), micro_batch=st.sampled_from([None, 1, 3]))
@settings(max_examples=8, deadline=None)
def test_a_sample_of_weight_k_counts_as_k_samples(kind, seed, micro_batch, request):
    small_model = request.getfixturevalue("small_model")
    model = small_model(**KINDS[kind])
    rng = np.random.default_rng(seed)
    samples = samples_of(kind, rng)
    k = rng.integers(0, 4, 10)
    k[rng.integers(10)] = 2
    if kind == "tokens":
        samples[2][k.argmax(), 0] = True
    repeated = tuple(np.repeat(array, k, axis=0) for array in samples)
    weighted = step(model, samples, sample_weight=k, micro_batch=micro_batch, workers=2)
    assert_same_step(weighted, step(model, repeated))
    evaluation = nf.evaluate(model, samples, sample_weight=k)
    expected = nf.evaluate(model, repeated)
    for name in ("loss", "accuracy", "macro_f1", "balanced_accuracy"):
        value = getattr(evaluation, name)
        assert value == pytest.approx(getattr(expected, name), rel=1e-10, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_only_the_ratios_of_weights_matter(small_model, rng, kind, smoothing):
    if kind == "mean_squared_error" and smoothing:
        smoothing = 0.0
    model = small_model(**KINDS[kind])
    samples = samples_of(kind, rng)
    weights = rng.random(10)
    options = {"label_smoothing": smoothing}
    one = step(model, samples, sample_weight=weights, **options)
    for sharing in ({}, {"micro_batch": 3}, {"workers": 2}):
        settings = options | sharing
        assert_same_step(one, step(model, samples, sample_weight=0.001 * weights, **settings))
    plain = step(model, samples, **options)
    assert_same_step(plain, step(model, samples, sample_weight=np.full(10, 7), **options))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("micro_batch", [None, 2])
def test_a_batch_without_weight_has_a_gradient_of_0(small_model, rng, kind, micro_batch):
    model = small_model(**KINDS[kind])
    loss, gradients = step(
        model, samples_of(kind, rng), sample_weight=np.zeros(10), micro_batch=micro_batch
    )
    assert loss == 0.0
    np.testing.assert_array_equal(gradients, 0.0)


def test_targets_of_weight_0_may_be_nan(small_model, rng):
    model = small_model(**KINDS["mean_squared_error"])
    ids, y, mask = samples_of("mean_squared_error", rng)
    weights = np.arange(10) % 3 != 0
    batch = (ids, np.where(weights[:, None], y, np.nan), mask)
    one = step(model, batch, sample_weight=weights.astype(float), workers=2, micro_batch=1)
    assert_same_step(one, step(model, tuple(array[weights] for array in (ids, y, mask))))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_a_class_of_weight_0_is_left_out_however_it_is_shared(small_model, rng, kind, smoothing):
    model = small_model(**KINDS[kind])
    samples = samples_of(kind, rng)
    loss = SoftmaxCrossEntropy(smoothing, [1.0, 0.0, 2.0])
    if kind == "sigmoid":
        loss = BinaryCrossEntropy(smoothing, [1.0, 0.0])
    expected = step(model, samples, loss=loss)
    for sharing in ({"workers": 3}, {"micro_batch": 1}, {"workers": 2, "micro_batch": 2}):
        assert_same_step(expected, step(model, samples, loss=loss, **sharing))
    keep = samples[1] != 1
    assert_same_step(expected, step(model, tuple(array[keep] for array in samples), loss=loss))


# fit ----------------------------------------------------------------------------------------------
@pytest.fixture
def imbalanced(rng):
    """20 samples of which 3 are of class 1."""
    x = rng.normal(size=(20, 4, 2))
    return x, np.array([1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("output", ["softmax", "sigmoid"])
def test_balanced_is_n_over_classes_times_count(make, imbalanced, output):
    balanced = make(n_classes=2, output=output)
    explicit = make(n_classes=2, output=output)
    fit(balanced, imbalanced, class_weight="balanced", label_smoothing=0.1)
    fit(explicit, imbalanced, class_weight=[20 / (2 * 17), 20 / (2 * 3)], label_smoothing=0.1)
    assert_same_weights(balanced, explicit)


def assert_same_class_weights(make, data, class_weight, expected, **options):
    """Check that two ways to write weights of classes give the same training."""
    one, other = make(), make()
    fit(one, data, class_weight=class_weight, **options)
    fit(other, data, class_weight=expected, **options)
    assert_same_weights(one, other)


def test_balanced_counts_the_weights_of_samples(make, imbalanced):
    """Class 2 has no labels, so it weighs 1."""
    weights = np.where(imbalanced[1] == 1, 2.0, 1.0)
    expected = (23 / 34, 23 / 12, 1.0)
    assert_same_class_weights(make, imbalanced, "balanced", expected, sample_weight=weights)


def test_a_class_without_an_entry_weighs_1(make, imbalanced):
    assert_same_class_weights(make, imbalanced, {1: 5.0}, np.array([1, 5, 1]))


@pytest.fixture
def weighted(make, imbalanced):
    """Return a model that was trained with weights of classes, and its history."""
    model = make(n_classes=2)
    return model, fit(model, imbalanced, validation=imbalanced, class_weight=[1.0, 9.0])


def test_a_model_does_not_keep_class_weights(weighted):
    model, _ = weighted
    assert model.loss.class_weight is None


def test_an_evaluation_has_no_class_weights(weighted, imbalanced):
    model, history = weighted
    evaluation = nf.evaluate(model, imbalanced)
    assert evaluation.loss == pytest.approx(history.validation_loss[history.best_epoch - 1])
    loss = SoftmaxCrossEntropy(0.3, [1.0, 9.0])
    assert nf.evaluate(model, imbalanced, loss=loss) == evaluation


def test_tokens_have_weights_of_their_own_or_their_samples(small_model, rng):
    ids, y, mask = samples_of("tokens", rng)
    weights = rng.random(10)
    by_sample = small_model(pooling="none")
    fit(by_sample, (ids, y, mask), sample_weight=weights, batches="by_length")
    by_token = small_model(pooling="none")
    of_tokens = np.repeat(weights[:, None], 6, axis=1)
    fit(by_token, (ids, y, mask), sample_weight=of_tokens, batches="by_length")
    assert_same_weights(by_sample, by_token)


class Unweighted(nf.losses.Loss):
    def forward(self, outputs, y):
        return abs(outputs[:, 0] - y).mean(), np.sign(outputs[:, 0] - y)

    def backward(self, dloss, cache):
        return np.stack([dloss * cache / len(cache), *np.zeros((2, len(cache)))], axis=1)


def of_classes(weights):
    return {"loss": SoftmaxCrossEntropy(class_weight=weights)}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sample_weight": np.ones(19)}, ValueError, r"shape \(19,\); expected \(20,\)"),
        ({"sample_weight": -np.ones(20)}, ValueError, r"sample_weight holds -1.0 at 0; expected"),
        ({"sample_weight": [np.nan] * 20}, ValueError, "sample_weight holds nan at 0; expected"),
        ({"sample_weight": np.zeros(20)}, ValueError, "sample_weight is 0 for every sample of dat"),
        ({"sample_weight": "a"}, TypeError, "sample_weight is a str; expected numbers"),
        ({"sample_weight": 3.0}, TypeError, "sample_weight is a float; expected numbers"),
        ({"class_weight": "even"}, ValueError, "class_weight is 'even'; expected one of 'balance"),
        ({"class_weight": [1.0]}, ValueError, r"class_weight has shape \(1,\); expected \(3,\)"),
        ({"class_weight": [1.0, 1.0, -1.0]}, ValueError, "class_weight holds -1.0 at 2; expected"),
        ({"class_weight": [0.0, 0.0, 1.0]}, ValueError, "every label to train on has the weight 0"),
        ({"class_weight": {3: 1.0}}, ValueError, "is 3; expected .* at most 2"),
        ({"class_weight": {"b": 1.0}}, ValueError, "of 3 classes. is 'b'; expected a whole number"),
        ({"class_weight": {0: "a"}}, ValueError, r"class_weight\[0\] is 'a'; expected"),
        ({"class_weight": 3}, TypeError, "class_weight is 3; expected 'balanced', a number"),
        (
            {"class_weight": "balanced", "loss": SoftmaxCrossEntropy()},
            ValueError,
            "class_weight and a loss are given; expected one of the two",
        ),
        (
            {"loss": Unweighted(), "sample_weight": np.ones(20)},
            TypeError,
            "Unweighted weighs no targets; expected a loss",
        ),
        (of_classes([1.0, 2.0]), ValueError, "class_weight has 2 numbers and there are 3 classes"),
        (of_classes([0.0, 0.0, 1.0]), ValueError, "data has no labels; expected at least 1"),
    ],
)
def test_wrong_weights_are_refused_in_words(make, data, options, error, message):
    model = make()
    with pytest.raises(error, match=message):
        fit(model, data, **options)
    assert_same_weights(model, make())


def test_a_loss_without_classes_takes_no_class_weights(make, rng):
    model = make(output="mean_squared_error")
    data = rng.normal(size=(20, 4, 2)), rng.normal(size=(20, 3))
    with pytest.raises(TypeError, match="class_weight is given and the loss is a MeanSquaredError"):
        fit(model, data, class_weight="balanced")
    fit(model, data, sample_weight=np.arange(20), loss=MeanSquaredError())


@pytest.mark.parametrize("factor", [1e-320, 1e-40, 1e38, 1e39, 1e300])
def test_a_common_factor_of_weights_changes_nothing(make, data, factor):
    x, y = data
    single = x.astype("float32"), y
    powers = np.array([1.0, 2.0, 4.0])[np.arange(20) % 3]  # exact, times any power of two
    factor = 2.0 ** round(np.log2(factor))
    by_sample, by_class, ordinary, of_classes = (make(dtype="float32") for _ in range(4))
    fit(ordinary, single, sample_weight=powers)
    fit(by_sample, single, sample_weight=factor * powers)
    assert_same_weights(by_sample, ordinary)
    fit(of_classes, single, class_weight=[1.0, 2.0, 1.0])
    fit(by_class, single, class_weight=[factor, 2.0 * factor, factor])
    assert_same_weights(by_class, of_classes)
    with_loss = make(dtype="float32")
    loss = SoftmaxCrossEntropy(class_weight=[factor, 2.0 * factor, factor])
    fit(with_loss, single, loss=loss)
    assert_same_weights(with_loss, of_classes)
    results = [nf.evaluate(ordinary, single, sample_weight=f * powers) for f in (1.0, factor)]
    assert results[0].loss == results[1].loss
    assert results[0].accuracy == results[1].accuracy


@pytest.mark.parametrize("factor", [2.0**-1060, 2.0**-133, 2.0**127, 2.0**1000])
def test_one_step_is_the_same_whatever_the_common_factor(make, data, factor):
    model = make(dtype="float32")
    samples = data[0].astype("float32"), data[1]
    weights = np.array([1.0, 2.0, 4.0, 0.0])[np.arange(20) % 4]
    loss, gradients = model.loss_and_gradients(*samples, sample_weight=weights)
    loss_of_scaled, gradients_of_scaled = model.loss_and_gradients(
        *samples, sample_weight=factor * weights
    )
    assert loss == loss_of_scaled
    np.testing.assert_array_equal(gradients.flat, gradients_of_scaled.flat)


@pytest.mark.parametrize("weights", [[1.0, 2.0, 4.0], [2.0**-32, 1.0, 2.0**31]])
def test_ordinary_weights_stay_as_they_are(weights):
    np.testing.assert_array_equal(moderate(np.array(weights)), weights)


def test_weights_of_tokens_in_files_are_divided_by_one_number(small_model, rng, tmp_path):
    """Not by one for each piece that is read, or ratios between pieces would be lost."""
    ids, y = rng.integers(0, 7, (12, 6)), rng.integers(0, 3, (12, 6))
    weights = np.ones((12, 6))
    weights[:6] *= 2.0**-40
    models = []
    for factor in (1.0, 2.0**-300):
        np.save(tmp_path / "w.npy", factor * weights)
        np.save(tmp_path / "x.npy", ids)
        in_files = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xw")
        x, sample_weight = in_files
        models.append(small_model(pooling="none", dtype="float32"))
        fit(models[-1], (x, y), sample_weight=sample_weight, batch_size=3)
    in_memory = small_model(pooling="none", dtype="float32")
    fit(in_memory, (ids, y), sample_weight=weights, batch_size=3)
    for model in models:
        assert_same_weights(model, in_memory)
