import math

import numpy as np
import pytest

import npformer as nf
from npformer.models.losses import LOSSES
from tests.extending import plugin

pytestmark = pytest.mark.usefixtures("registered")

PARTS = {
    "swish": {"activation": "swish(beta=1.5)"},
    "glu": {"ffn": "glu"},
    "local": {"mixer": "local(reach=2)"},
    "local, causal": {"mixer": "local", "causal": True},
    "spatial": {"mixer": "spatial(gain=0.5)"},
    "one mixer a layer": {"mixer": ("local(reach=2)", "spatial")},
    "largest": {"pooling": "largest"},
    "orthogonal": {"initializer": "orthogonal(gain=1.2)"},
    "focal": {"output": "focal(gamma=1.0)"},
    "all of it": {
        "activation": "swish",
        "mixer": ("spatial", "local(reach=2)"),
        "ffn": "glu",
        "pooling": "largest",
        "initializer": "orthogonal",
        "output": "focal",
        "share_layers": False,
        "norm": "pre",
    },
}
each_part = pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))


def build(small_model, part, **more):
    padding = {"padding": "per_length"} if "spatial" in str(part.get("mixer")) else {}
    return small_model(**(padding | part | more))


def moved(layer, rng):
    """Change the initial parameters, because a gate of 1 and a bias of 0 hide mistakes."""
    for array in layer.parameters().values():
        array += 0.3 * rng.standard_normal(array.shape)
    return layer


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_the_loss_has_the_right_gradient(gamma, rng):
    loss = LOSSES.make(f"focal(gamma={gamma})")
    outputs = rng.standard_normal((4, 3))
    y = np.array([0, 2, 1, 2])
    assert nf.gradcheck((loss.forward, loss.backward), outputs, y, wrt=["outputs"]).passed


@each_part
def test_a_model_has_the_right_gradients(small_model, part, token_batch, rng):
    ids, _, mask = token_batch
    model = moved(build(small_model, part), rng)
    for mask_or_none in (mask[:3], None):
        assert nf.gradcheck(model, ids[:3], mask=mask_or_none, max_entries=3, directions=1).passed


def test_a_mixer_of_whole_sequences_refuses_a_mask(small_model, token_batch):
    ids, _, mask = token_batch
    with pytest.raises(ValueError, match="mixer 'spatial' got a padding mask, and it mixes every"):
        small_model(mixer="spatial")(ids, mask)


def test_a_mixer_of_whole_sequences_cannot_be_causal(small_model):
    with pytest.raises(ValueError, match="causal=True with mixer 'spatial'"):
        small_model(mixer="spatial", causal=True)


@each_part
def test_the_engine_gives_the_same_results(small_model, part, token_batch):
    ids, labels, mask = token_batch
    model = build(small_model, part)
    fast = model(ids, mask)
    loss, gradients = model.loss_and_gradients(ids, labels, mask, workers=2, micro_batch=3)
    with nf.use_kernels(False):
        np.testing.assert_allclose(fast, model(ids, mask), rtol=1e-9, atol=1e-12)
        plain = model.loss_and_gradients(ids, labels, mask)
    assert loss == pytest.approx(plain[0], rel=1e-9)
    for name, gradient in plain[1].items():
        np.testing.assert_allclose(gradients[name], gradient, rtol=1e-7, atol=1e-11, err_msg=name)


@pytest.mark.parametrize(
    "layer",
    [
        plugin.Swish(),
        plugin.LocalMixer(),
        plugin.MaxPooling(),
    ],
    ids=repr,
)
def test_a_layer_of_a_plugin_has_no_twin(layer):
    assert nf.fast(layer) is layer


@each_part
def test_a_model_is_the_same_after_loading(small_model, part, token_batch, tmp_path):
    ids, labels, mask = token_batch
    model = build(small_model, part, seed=5, dtype="float32")
    nf.fit(model, (ids, labels, mask), epochs=1, progress=False)
    nf.save(model, tmp_path / "model")
    loaded = nf.load(tmp_path / "model")
    assert loaded.config == model.config
    assert (loaded.pooling, loaded.output) == (model.pooling, model.output)
    np.testing.assert_array_equal(loaded(ids, mask), model(ids, mask))
    np.testing.assert_array_equal(loaded.predict(ids, mask), model.predict(ids, mask))
    assert vars(loaded.loss) == vars(model.loss)


def test_it_learns_the_digits():
    options = PARTS["all of it"]
    data = nf.data.digits("stratified")
    splits = (data.train, data.validation, data.test)
    train, validation, test = [(x.astype("float32"), y) for x, y in splits]
    fields = {n: v for n, v in options.items() if n not in ("pooling", "output")}
    arguments = {n: options[n] for n in ("pooling", "output") if n in options}
    config = nf.EncoderConfig(
        d_model=32, n_layers=2, n_heads=4, d_ff=64, max_len=8, positions="learned", **fields
    )
    model = nf.SequenceClassifier(config, 10, n_features=8, **({"pooling": "flatten"} | arguments))
    schedule = f"straight(total={5 * math.ceil(len(train[0]) / 32)}, warmup=10)"
    history = nf.fit(
        model, train, validation=validation, epochs=5, lr=3e-3, schedule=schedule, progress=False
    )
    assert history.train_loss[-1] < 0.5 * history.train_loss[0]
    assert nf.evaluate(model, test).accuracy > 0.85
