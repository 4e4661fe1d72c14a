"""The seam: who has a twin, what it shares, and how its faults are found."""

from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer.engine import cpu, has_twin
from tests.engine import users

SMALL = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=12, max_len=6)


def test_a_twin_shares_the_layer_itself():
    layer = L.Linear(3, 2, seed=0)
    twin = nf.fast(layer)
    assert twin is not layer
    assert isinstance(twin, L.Linear)
    assert vars(twin) is vars(layer)
    layer.note = "written later"
    assert twin.note == "written later"
    twin.other = 1
    assert layer.other == 1


def test_a_twin_is_its_own_twin():
    twin = nf.fast(users.make())
    assert nf.fast(twin) is twin


def test_a_twin_is_made_once():
    model = users.make()
    assert nf.fast(model) is nf.fast(model)
    assert nf.fast(model).encoder.blocks[0] is nf.fast(model).encoder.blocks[0]


def test_only_layers_have_twins():
    with pytest.raises(TypeError, match="model is a function; expected a Layer"):
        nf.fast(F.linear)


def test_a_layer_of_ones_own_is_its_own_twin():
    layer = users.Square()
    assert nf.fast(layer) is layer
    assert not has_twin(layer)
    assert has_twin(L.Linear(2, 2, seed=0))
    assert not has_twin(users.Scaled(2, 2, seed=0))


def test_a_subclass_of_a_container_with_a_pass_of_its_own_runs_as_written(batch):
    class Doubled(nf.SequenceClassifier):
        def forward(self, x, context):
            logits, cache = super().forward(x, context)
            assert type(self.encoder) is nf.Encoder
            assert self.encoder is vars(self)["encoder"]
            return 2.0 * logits, cache

        def backward(self, dy, cache, gradients):
            return super().backward(2.0 * dy, cache, gradients)

    model = Doubled(SMALL, 3, vocab_size=7, dtype="float64")
    assert nf.fast(model) is model
    with nf.use_kernels(False):
        logits = model(batch[0], users.MASK)
    np.testing.assert_array_equal(model(batch[0], users.MASK), logits)
    users.assert_steps_agree(model, *batch)


def test_a_subclass_of_a_container_with_other_methods_is_one_like_any_other(batch):
    class Named(nf.SequenceClassifier):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.encoder.blocks[0].feed_forward = users.Square()

        def names(self, x):
            return [f"class {k}" for k in self.predict(x)]

    model = Named(SMALL, 3, vocab_size=7, dtype="float64")
    twin = nf.fast(model)
    assert isinstance(twin, Named)
    assert twin is not model
    users.assert_logits_agree(model, batch[0])
    assert len(model.names(batch[0])) == 8


def model_with_stem():
    class Stem(nf.SequenceClassifier):
        def forward(self, x, context):
            y, stem = self.stem.forward(x, context)
            logits, cache = super().forward(y, context)
            return logits, (stem, cache)

        def backward(self, dy, cache, gradients):
            stem, cache = cache
            return self.stem.backward(super().backward(dy, cache, gradients), stem, gradients)

    model = Stem(SMALL, 3, n_features=5, dtype="float64")
    model.stem = L.Linear(5, 5, seed=1, dtype="float64")
    return model


def model_with_residual_tokens():
    class Residual(L.Sequential):
        def forward(self, x, context):
            y, cache = super().forward(x, context)
            return x + y, cache

        def backward(self, dy, cache, gradients):
            return dy + super().backward(dy, cache, gradients)

    model = nf.SequenceClassifier(SMALL, 3, n_features=8, dtype="float64")
    network = L.PositionwiseFeedForward(8, 12, "gelu", seed=3, dtype="float64")
    model.embed.tokens = L.Sequential(users.linear(), Residual(network), users.linear())
    return model


def model_with_input_norm():
    class Normed(nf.models.InputEmbedding):
        def chain(self):
            return [self.before, *super().chain()]

    model = nf.SequenceClassifier(SMALL, 3, n_features=5, dtype="float64")
    embedding = Normed(SMALL, vocab_size=None, n_features=5, seed=2, dtype="float64")
    embedding.before = L.LayerNorm(5, dtype="float64")
    model.embed = embedding
    return model


@pytest.mark.parametrize(
    "make_model", [model_with_stem, model_with_residual_tokens, model_with_input_norm]
)
def test_what_stands_before_the_first_layer_gets_its_gradient(make_model):
    model = make_model()
    rng = np.random.default_rng(0)
    n_features = model.n_features
    users.assert_steps_agree(
        model, rng.normal(size=(8, 6, n_features)), rng.integers(0, 3, 8), users.MASK
    )


def test_a_twin_takes_no_twins():
    twin = nf.fast(users.make())
    with pytest.raises(TypeError, match="encoder of a twin is set to a twin; expected the layer"):
        twin.encoder = twin.encoder


def test_use_kernels_switches_a_twin_off_that_is_held(monkeypatch):
    layer, x = users.linear(), np.ones((2, 8))
    twin = nf.fast(layer)
    monkeypatch.setitem(cpu.KERNELS, "linear", (None, None))
    with nf.use_kernels(False):
        np.testing.assert_array_equal(twin.forward(x, nf.Context())[0], layer(x))


def test_a_loss_of_other_outputs_is_refused(batch):
    model = users.make()
    with pytest.raises(ValueError, match="needs 1 outputs and this model has 3"):
        model.loss_and_gradients(*batch, loss=nf.losses.BinaryCrossEntropy())
    with pytest.raises(TypeError, match="is the class SoftmaxCrossEntropy; expected a Loss"):
        nf.fit(model, batch, loss=nf.losses.SoftmaxCrossEntropy)
    with pytest.raises(TypeError, match="y is None; expected targets"):
        model.loss_and_gradients(batch[0], None)


def test_by_hand_a_layer_is_the_plain_one(batch, monkeypatch):
    refuse = Mock(side_effect=AssertionError("a kernel was used"))
    for name in cpu.KERNELS:
        monkeypatch.setitem(cpu.KERNELS, name, (refuse, refuse))
    model = users.make()
    y, cache = model.forward(batch[0], nf.Context())
    model.backward(y, cache, nf.Gradients(model))
    model.encoder(np.ones((1, 6, 8)))
    nf.trace(model, batch[0])
    with pytest.raises(AssertionError, match="a kernel was used"):
        model(batch[0])


def test_summary_says_what_runs_as_written(batch):
    model = users.make()

    def plain_layers():
        lines = nf.summary(model, batch[0]).splitlines()
        return [line.split()[1] for line in lines if line.endswith("runs as written")]

    assert plain_layers() == []
    users.block(model).feed_forward.activation = users.Square()
    assert plain_layers() == ["Square"]
    users.block(model).feed_forward.expand = users.linear(8, 12, users.Scaled)
    assert plain_layers() == ["Scaled", "Square"]
    with nf.use_kernels(False):
        assert plain_layers() == []


def test_a_fault_that_only_the_twin_has_is_named(batch, monkeypatch):
    kernel, backward = cpu.KERNELS["feed_forward"]

    def write_nan(*arguments, **options):
        y, cache = kernel(*arguments, **options)
        y[0] = np.nan
        return y, cache

    monkeypatch.setitem(cpu.KERNELS, "feed_forward", (write_nan, backward))
    model = users.make()
    with pytest.raises(nf.NonFiniteLossError, match=r"blocks\.0\.feed_forward .*engine"):
        nf.fit(model, batch, epochs=1, progress=False)


def test_gradcheck_says_that_the_twin_is_wrong(monkeypatch):
    kernel, backward = cpu.KERNELS["linear"]

    def wrong_backward(dy, cache, **options):
        dx, dW, *db = backward(dy, cache, **options)
        return dx, dW * 1.001, *db

    layer = L.Linear(4, 3, seed=0, dtype="float64")
    x = np.random.default_rng(0).normal(size=(5, 4))
    monkeypatch.setitem(cpu.KERNELS, "linear", (kernel, wrong_backward))
    with pytest.raises(nf.GradcheckError, match="the twin is wrong") as caught:
        nf.gradcheck(layer, x)
    assert "the layer itself is right" in str(caught.value)
    assert all(tensor.error < 1e-6 for tensor in caught.value.report.tensors)


def test_gradcheck_sees_a_twin_that_is_wrong_in_float32_alone(monkeypatch):
    kernel, backward = cpu.KERNELS["linear"]

    def coarse(x, *arguments, **options):
        y, cache = kernel(x, *arguments, **options)
        return (1.002 * y if y.dtype == "float32" else y).astype(y.dtype), cache

    layer = L.Linear(4, 3, seed=0, dtype="float64")
    x = 1.0 + np.random.default_rng(0).random(size=(50, 4))
    monkeypatch.setitem(cpu.KERNELS, "linear", (coarse, backward))
    with pytest.raises(nf.GradcheckError, match=r"twin in float32: .*the twin is wrong") as caught:
        nf.gradcheck(layer, x)
    assert [twin.passed for twin in caught.value.report.twins] == [True, False]
