"""One model, one answer: all ways to call a model agree, whatever stands in its padding."""

import copy

import numpy as np
import pytest

import npformer as nf
from npformer.core import Context, Gradients
from tests.needs import NEEDS
from tests.training.distributed.fake_ranks import run_threads

POOLINGS = ("mean", "max", "first", "none", "pooler", "flatten")
SOME, MORE = range(18), range(18, 120)


class Drawn:
    """A model, samples with a mask that may have holes, and the same samples otherwise padded."""

    def __init__(self, seed, dtype=None):
        rng = np.random.default_rng(seed)
        n = rng.integers(1, 5)
        length = int(rng.integers(2, 7))
        self.pooling = POOLINGS[seed % 6]
        self.dtype = dtype or ("float32", "float64")[seed // 6 % 2]
        config = nf.EncoderConfig(
            d_model=8,
            n_layers=int(rng.integers(1, 3)),
            n_heads=2,
            d_ff=12,
            max_len=length if self.pooling == "flatten" else length + int(rng.integers(3)),
            mixer=str(rng.choice([*nf.MIXERS])),
            padding="zero",
            norm=str(rng.choice(["pre", "post"])),
            positions=str(rng.choice(["none", "learned", "sinusoidal"])),
        )
        of_ids = rng.random() < 0.5
        self.model = nf.SequenceClassifier(
            config,
            3,
            vocab_size=9 if of_ids else None,
            n_features=None if of_ids else 4,
            pooling=self.pooling,
            seed=seed,
            dtype=self.dtype,
        )
        self.mask = rng.random((n, length)) < 0.6
        self.mask[0, int(rng.integers(length))] = True  # the others may be padding throughout
        if of_ids:
            self.x, other = rng.integers(1, 9, (2, n, length))
            self.otherwise = np.where(self.mask, self.x, other)
        else:
            self.x = rng.standard_normal((n, length, 4)).astype(self.dtype)
            other = self.dtype, rng.choice([7.0, np.nan, np.inf])
            self.otherwise = np.where(self.mask[..., None], self.x, np.array(other[1], other[0]))
        labels = rng.integers(0, 3, (n, length) if self.pooling == "none" else n)
        self.y = np.where(self.mask, labels, -1) if self.pooling == "none" else labels

    def assert_close(self, found, expected):
        tolerance = 2e-4 if self.dtype == "float32" else 1e-9
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance / 10)

    def by_hand(self, x):
        """Return loss and gradients by the passes themselves."""
        model = self.model
        gradients = Gradients(self.model)
        outputs, cache = model.forward(x, Context(True, np.random.default_rng(0), mask=self.mask))
        loss, loss_cache = model.loss.forward(outputs, self.y)
        model.backward(model.loss.backward(1.0, loss_cache), cache, gradients)
        return loss, gradients


def draws():
    slow = pytest.mark.slow
    return [*SOME, *(pytest.param(seed, marks=slow) for seed in MORE)]


@pytest.mark.filterwarnings("ignore:.* sequences in data have no token")
@pytest.mark.parametrize("seed", draws())
def test_all_ways_give_one_answer(seed, tmp_path):
    drawn = Drawn(seed)
    model, mask, y = drawn.model, drawn.mask, drawn.y
    logits, _ = model.forward(drawn.x, Context(mask=mask))
    nf.save(model, tmp_path / "model.safetensors")
    loaded = nf.load(tmp_path / "model.safetensors")
    loss, gradients = drawn.by_hand(drawn.x)
    for x in (drawn.x, drawn.otherwise):
        for outputs in (model(x, mask), loaded(x, mask), copy.deepcopy(model)(x, mask)):
            drawn.assert_close(outputs, logits)
        with nf.use_kernels(False):
            drawn.assert_close(model(x, mask), logits)
        for layer in (model, nf.fast(model)):
            drawn.assert_close(layer.forward(x, Context(mask=mask))[0], logits)
        drawn.assert_close(model.predict_probabilities(x, mask), nf.functional.softmax(logits)[0])
        found_loss, outputs = model.loss_and_gradients(x, y, mask)
        drawn.assert_close(found_loss, loss)
        scale = max(np.abs(gradient).max() for gradient in gradients.values())
        for name in gradients:
            drawn.assert_close(outputs[name] / scale, gradients[name] / scale)
        drawn.assert_close(nf.evaluate(model, (x, y, mask)).loss, loss)
        trained = copy.deepcopy(model)
        history = nf.fit(trained, (x, y, mask), epochs=1, batch_size=len(x), progress=False)
        drawn.assert_close(history.train_loss[0], loss)


@pytest.mark.filterwarnings("ignore:.* sequences in data have no token")
@pytest.mark.parametrize("seed", draws())
def test_ranks_give_the_same_answer(seed):
    drawn = Drawn(seed)
    data = (drawn.x, drawn.y, drawn.mask)
    loss = drawn.by_hand(drawn.x)[0]

    def train_on_rank(ranks):
        model = copy.deepcopy(drawn.model)
        evaluated = nf.evaluate(model, data, communicator=ranks).loss
        history = nf.fit(
            model,
            data,
            epochs=1,
            batch_size=len(drawn.x),
            communicator=ranks,
            progress=False,
        )
        return evaluated, history.train_loss[0]

    for losses in run_threads(2, train_on_rank):
        drawn.assert_close(losses, [loss, loss])


@pytest.mark.filterwarnings("ignore:.*a single sample|.*least populated")
@pytest.mark.parametrize("seed", draws())
def test_scikit_learn_gives_the_same_answer(seed):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    rng = np.random.default_rng(seed)
    n = 8
    longest = int(rng.integers(3, 7))
    lengths = rng.integers(1, longest + 1, n)
    of_ids = rng.random() < 0.5
    y = np.arange(n) % 3
    rows = [rng.integers(1, 9, k) if of_ids else rng.normal(size=(k, 2)) for k in lengths]
    rows[0] = rng.integers(1, 9, longest) if of_ids else rng.normal(size=(longest, 2))
    names = [name for name in POOLINGS if name not in ("none", "flatten")]
    classifier = nf.sklearn.EncoderClassifier(
        mixer=str(rng.choice([*nf.MIXERS])),
        pooling=names[seed % len(names)],
        padding_id=0 if of_ids else None,
        max_iter=1,
        random_state=seed,
        dtype=("float32", "float64")[seed // 6 % 2],
        d_model=8,
        n_layers=1,
        n_heads=2,
        d_ff=8,
    ).fit(rows, y)
    x, mask = classifier.reader_.read(rows)
    expected = nf.functional.softmax(classifier.model_.forward(x, Context(mask=mask))[0])[0]
    inputs_to_try = [rows, *([np.where(mask, x, 0)] if of_ids else [])]
    for inputs in inputs_to_try:
        for estimator in (classifier, copy.deepcopy(classifier)):
            np.testing.assert_allclose(
                estimator.predict_proba(inputs), expected, rtol=2e-4, atol=2e-5
            )
    for row, answer in zip(rows, expected, strict=True):  # alone, without any padding
        np.testing.assert_allclose(classifier.predict_proba([row])[0], answer, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("seed", draws())
def test_onnx_gives_the_same_answer(seed, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason=NEEDS["onnxruntime"])
    from npformer.interop.onnx.export import to_onnx

    drawn = Drawn(seed, "float32")
    to_onnx(drawn.model, tmp_path / "model.onnx", mask=True)
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    expected = drawn.model(drawn.x, drawn.mask)
    for x in (drawn.x, drawn.otherwise):
        logits, *_ = session.run(None, {"x": x, "mask": drawn.mask})
        np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)


def test_the_first_token_is_the_first_that_is_kept():
    x = np.arange(24.0).reshape(3, 4, 2)
    mask = np.array([[False, True, False, True], [True] * 4, [False] * 4])
    layer = nf.layers.FirstToken()
    np.testing.assert_array_equal(layer(x, mask), [x[0, 1], x[1, 0], [0.0, 0.0]])
    nf.gradcheck(layer, x, mask=mask)
