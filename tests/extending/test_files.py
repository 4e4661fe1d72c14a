"""Files of models with names that are not registered, and models that were changed by hand."""

import copy
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

import npformer as nf
from npformer import layers as L
from npformer.cli.plugins import load_plugins
from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import Identity
from npformer.models.losses import LOSSES, MeanSquaredError, SoftmaxCrossEntropy
from npformer.training.storage.model_file import write_model_file

pytestmark = pytest.mark.usefixtures("empty")


class Mine(nf.Layer):
    def __init__(self, by=2.0):
        self.by = by

    def forward(self, x, context):
        return self.by * x, None

    def backward(self, dy, cache, gradients):
        return self.by * dy


MyMixer = type("MyMixer", (Identity,), {})
MyPooling = type("MyPooling", (L.MeanPooling,), {})
MyLoss = type("MyLoss", (SoftmaxCrossEntropy,), {"__module__": __name__})
MyFeedForward = type("MyFeedForward", (L.PositionwiseFeedForward,), {})
MyNorm = type("MyNorm", (L.RMSNorm,), {})
FirstGelu = type("FirstGelu", (L.GELU,), {})


def my_initializer():
    return lambda rng, shape: rng.standard_normal(shape)


MINE = {
    "mixer": (nf.MIXERS, MyMixer, {"mixer": "mine"}),
    "activation": (ACTIVATIONS, Mine, {"activation": "mine(by=3.0)"}),
    "feed-forward network": (FFNS, MyFeedForward, {"ffn": "mine"}),
    "norm": (NORMS, MyNorm, {"norm_kind": "mine"}),
    "initializer": (INITIALIZERS, my_initializer, {"initializer": "mine"}),
    "pooling": (POOLINGS, lambda d_model, seed, dtype: MyPooling(), {"pooling": "mine"}),
    "loss": (LOSSES, MyLoss, {"output": "mine"}),
}


@pytest.fixture
def saved(path, small_model):
    model = small_model()
    nf.save(model, path)
    return model


def header_of(path):
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["npformer"])


def rewrite(path, **changes):
    header = header_of(path) | changes
    write_model_file(path, header, load_file(path))


def config_in(path, **changes):
    return header_of(path)["config"] | changes


def refusal(path):
    with pytest.raises(nf.CheckpointError) as error:
        nf.load(path)
    return error.value


@pytest.mark.parametrize("kind", MINE)
def test_a_file_of_an_unregistered_name_says_what_to_register(path, small_model, kind):
    table, builder, changes = MINE[kind]
    table.register("mine", builder)
    model = small_model(**changes)
    nf.save(model, path)
    np.testing.assert_array_equal(nf.load(path).parameters().flat, model.parameters().flat)
    del table["mine"]
    assert header_of(path)["registered"] == [{"kind": kind, "name": "mine", "module": __name__}]
    error = refusal(path)
    message = str(error)
    assert message.startswith(f"{path}: its description cannot be used: ")
    assert "is 'mine'; expected one of" in message
    assert f"{table.table}.register('mine', ...)" in message
    assert f"The file needs the {kind} 'mine': before nf.load, register it, or import " in message
    assert f"{__name__}; on the command line, --plugin {__name__}." in message
    assert error.unregistered == (f"the {kind} 'mine'",)


def test_a_name_from_a_plugin_file_is_traced_to_that_file(path, small_model):
    plugin = path.parent / "my_square.py"
    plugin.write_text(
        "import npformer as nf\n\n\n"
        "class Square(nf.layers.Tanh):\n    pass\n\n\n"
        "nf.layers.ACTIVATIONS.register('of_a_file', Square)\n"
    )
    load_plugins([str(plugin)])
    nf.save(small_model(activation="of_a_file"), path)
    del ACTIVATIONS["of_a_file"]
    assert header_of(path)["registered"][0]["module"] == "my_square.py"
    expected = "import the file my_square.py; on the command line, --plugin my_square.py."
    assert expected in str(refusal(path))


def test_all_missing_names_are_reported_at_once(path, small_model):
    everything = {}
    for table, builder, changes in MINE.values():
        table.register("mine", builder)
        everything |= changes
    nf.save(small_model(**everything), path)
    for table, *_ in MINE.values():
        del table["mine"]
    assert set(refusal(path).unregistered) == {f"the {kind} 'mine'" for kind in MINE}


OF_A_SCRIPT = "import a module that registers it (a script or notebook did, when it was sav"
OF_NOBODY = "import the module that registers it; on the command line, --plugin MODULE."


@pytest.mark.parametrize(
    ("module", "words"), [("__main__", OF_A_SCRIPT), ("", OF_NOBODY), (None, OF_NOBODY)]
)
@pytest.mark.usefixtures("saved")
def test_a_name_without_a_module_to_import_says_so(path, module, words):
    config = config_in(path, mixer="mine(a=1)")
    if module is None:
        rewrite(path, config=config)
    else:
        names = [{"kind": "mixer", "name": "mine", "module": module}]
        rewrite(path, config=config, registered=names)
    assert words in str(refusal(path))


@pytest.mark.parametrize("registered", [5, [5], [{}], {"a": 1}, None], ids=repr)
@pytest.mark.usefixtures("saved")
def test_a_damaged_list_of_names_does_no_harm(path, registered):
    rewrite(path, registered=registered)
    nf.load(path)
    rewrite(path, config=config_in(path, mixer="mine"))
    assert "mixer is 'mine'; expected one of" in str(refusal(path))
    rewrite(path, config={"activation": "mine(a=1)", "ffn": "mine("})
    error = refusal(path)
    assert "activation is 'mine'; expected one of" in str(error)
    assert error.unregistered == ("the activation 'mine'",)


@pytest.mark.usefixtures("saved")
def test_options_that_are_unknown_are_named(path):
    assert header_of(path)["registered"] == []
    rewrite(path, config=config_in(path, activation="gelu(sharpness=3)"))
    assert "'gelu' has no option 'sharpness'; expected appr" in str(refusal(path))


class MyLinear(L.Linear):
    def forward(self, x, context):
        y, cache = super().forward(x, context)
        return 2.0 * y, cache


def put(model, where, value):
    *parents, last = where.split(".")
    for name in parents:
        model = model[int(name)] if name.isdigit() else getattr(model, name)
    if last.isdigit():
        model[int(last)] = value
    else:
        setattr(model, last, value)


DRAWN = {"seed": 0, "dtype": "float64"}
IDENTITIES = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=12, max_len=6, mixer="identity")
FFN = "encoder.blocks.0.feed_forward"
MIXER = "encoder.blocks.0.mixer"
NORM = "encoder.blocks.1.mixer_norm"


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (f"{FFN}.activation", L.ReLU(), rf"{FFN}.activation is a ReLU, and .* makes a GELU"),
        (f"{FFN}.activation", FirstGelu(), rf"{FFN}.activation is a FirstGelu, and .* a GELU"),
        (f"{FFN}.activation.approximate", "tanh", r"approximate is 'tanh', and .* makes 'none'"),
        (f"{FFN}.forward", lambda x, context: (x, None), rf"^{FFN} overrides forward; exp"),
        (
            f"{MIXER}.query",
            MyLinear(8, 8, **DRAWN),
            rf"^{MIXER}.query is a MyLinear, and .* a Linear",
        ),
        (f"{MIXER}.causal", True, rf"^{MIXER}.causal is True, and .* makes False"),
        (f"{NORM}.eps", 1e-3, rf"^{NORM}.eps is 0.001, and .* makes 1e-05"),
        ("encoder.blocks.0.norm", "pre", r"^encoder.blocks.0.norm is 'pre', and .* makes 'post'"),
        ("embed.positions", None, r"^embed.positions is None, and the model's .* makes a Position"),
        ("pool", L.FirstToken(), r"^pool is a FirstToken, and the model's .* makes a MeanPool"),
        ("pooling", "first", r"^pool is a MeanPooling, and .* makes a FirstToken"),
        ("classify", L.Linear(8, 5, **DRAWN), r" classify.weight has shape \(8, 5\) .* \(8, 3\)"),
        ("classify", L.Linear(8, 3, seed=0), r" classify.weight .* dtype float32, .* float64"),
        ("classify", L.Linear(8, 3, bias=False, **DRAWN), "^classify.bias is None, and .* a Param"),
        ("loss", MeanSquaredError(), "^loss is a MeanSquaredError, and .* a SoftmaxCrossEntropy"),
        ("encoder", nf.Encoder(IDENTITIES, dtype="float64"), r"^encoder.config is"),
    ],
)
def test_a_model_that_loading_would_change_is_not_saved(path, small_model, where, value, message):
    model = small_model()
    put(model, where, value)
    is_refused(model, path, message)


def is_refused(model, path, message):
    with pytest.raises(ValueError, match=message) as error:
        nf.save(model, path)
    assert "register the layer" in str(error.value) or "could not be loaded" in str(error.value)
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda blocks: blocks[:1], "^encoder.blocks has 1 parts, and the model's .* makes 2"),
        (lambda b: [*b, copy.deepcopy(b[0])], "^encoder.blocks has 3 parts, and the .* makes 2"),
        (lambda blocks: 2 * blocks[:1], r": encoder.blocks.1.* is missing"),
    ],
    ids=["one less", "one more", "the same one twice"],
)
def test_an_edited_list_of_blocks_is_not_saved(path, small_model, change, message):
    model = small_model()
    model.encoder.blocks[:] = change(model.encoder.blocks)
    is_refused(model, path, message)


def dropout(model):
    for _, layer in model.layers():
        if isinstance(layer, L.Dropout):
            layer.rate = 0.0


def frozen(model):
    for parameter in model.embed.named_parameters().values():
        parameter.trainable = False
    model.flatten()


def trained(model):
    rng = np.random.default_rng(0)
    nf.fit(model, (rng.integers(0, 7, (8, 6)), rng.integers(0, 3, 8)), epochs=1, progress=False)


def copied(model):
    model.encoder = copy.deepcopy(model.encoder)
    model.flatten()


@pytest.mark.parametrize(
    "change",
    [
        dropout,
        frozen,
        trained,
        copied,
        lambda model: put(model, "encoder.blocks.0.mixer.memory", "stored"),
        lambda model: put(model, "loss", SoftmaxCrossEntropy(label_smoothing=0.2)),
        lambda model: put(model, "encoder.author", "me"),
        lambda model: put(model, "encoder.blocks.0._seen", np.zeros(3)),
        lambda model: put(model, "encoder.blocks.0.mixer.calls", [1, 2]),
    ],
)
def test_what_predictions_do_not_depend_on_may_differ(path, small_model, rng, change):
    model = small_model(dropout=0.3)
    ids = rng.integers(0, 7, (3, 6))
    change(model)
    nf.save(model, path)
    np.testing.assert_array_equal(nf.load(path)(ids), model(ids))


@pytest.mark.parametrize("shared", [True, False])
def test_layers_must_be_shared_as_configured(path, small_model, shared):
    model = small_model(share_layers=shared, n_layers=3)
    nf.save(model, path.with_name("before.safetensors"))
    model.encoder.blocks[2] = copy.deepcopy(model.encoder.blocks[0])
    if shared:
        is_refused(model, path, r"encoder.blocks.2.* is unknown.*share_layers")
    else:
        nf.save(model, path)
        assert nf.load(path).config == model.config


def test_encoders_are_checked_too(path, small_config):
    encoder = nf.Encoder(small_config(norm="pre"))
    encoder.final_norm = None
    is_refused(encoder, path, r"^final_norm is None, and the model's configuration makes")
    text = nf.TextEncoder(small_config(), 7)
    text.pool.activation = L.ReLU()
    is_refused(text, path, r"^pool.activation is a ReLU, and .* makes a Tanh")
    text.pool = None  # that is what the argument says
    nf.save(text, path)
    assert nf.load(path).pool is None


def test_a_class_can_be_defined_again(path, small_model, rng):
    def define(factor):
        class Anew(Mine):
            def forward(self, x, context):
                return factor * x, None

        return ACTIVATIONS.register("anew", Anew)

    ids = rng.integers(0, 7, (2, 6))
    define(2.0)
    model = small_model(activation="anew")
    define(3.0)  # as when a notebook's cell is changed and run again
    nf.save(model, path)
    assert not np.allclose(nf.load(path)(ids), model(ids))


class Tabled(nf.Layer):
    """Holds an array that is not a parameter, so that no file has it."""

    def __init__(self, drawn=False):
        self.table = np.random.default_rng().random(4) if drawn else np.arange(4.0)

    def forward(self, x, context):
        return x * self.table[0], None

    def backward(self, dy, cache, gradients):
        return dy * self.table[0]


def test_an_array_that_is_not_a_parameter_must_be_as_built(path, small_model):
    ACTIVATIONS.register("tabled", Tabled)
    model = small_model(activation="tabled")
    nf.save(model, path)
    model.encoder.blocks[0].feed_forward.activation.table[0] = 5.0
    for changed in (model, small_model(activation="tabled(drawn=True)")):
        with pytest.raises(ValueError, match=r"activation.table is .*belong in a Parameter"):
            nf.save(changed, path)


def test_a_name_that_is_no_longer_registered_is_not_saved(path, small_model):
    ACTIVATIONS.register("mine", Mine)
    model = small_model(activation="mine")
    del ACTIVATIONS["mine"]
    with pytest.raises(ValueError, match="activation is 'mine'; expected one of"):
        nf.save(model, path)


@pytest.fixture
def counted(small_model):
    """Return a model whose weights are ones, and the shapes that were drawn."""
    shapes = []
    INITIALIZERS.register("counted", lambda: lambda rng, s: shapes.append(s) or np.ones(s))
    return small_model(initializer="counted"), shapes


def test_saving_draws_no_weights(counted, path):
    model, shapes = counted
    n = len(shapes)
    nf.save(model, path)
    assert len(shapes) == n > 0


def test_loading_draws_no_weights(counted, path):
    model, shapes = counted
    n = len(shapes)
    nf.save(model, path)
    loaded = nf.load(path)
    assert len(shapes) == n
    np.testing.assert_array_equal(loaded.parameters().flat, model.parameters().flat)
