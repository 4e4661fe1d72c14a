"""Files and models that are not npformer's alone: unregistered names, and trees changed by hand."""

import copy
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import npformer as nf
from npformer import layers as L
from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS
from npformer.losses import LOSSES, MeanSquaredError, SoftmaxCrossEntropy
from npformer.mixers import Identity
from npformer.tools.plugins import load_plugins


class Mine(nf.Layer):
    def __init__(self, by=2.0):
        self.by = by

    def forward(self, x, context):
        return self.by * x, None

    def backward(self, dy, cache, gradients):
        return self.by * dy


class MyMixer(Identity):
    pass


class MyPooling(L.MeanPooling):
    pass


class MyLoss(SoftmaxCrossEntropy):
    pass


class MyFeedForward(L.PositionwiseFeedForward):
    pass


def my_initializer():
    return lambda rng, shape: rng.standard_normal(shape)


MINE = {
    "mixer": (nf.MIXERS, MyMixer, {"mixer": "mine"}),
    "activation": (ACTIVATIONS, Mine, {"activation": "mine(by=3.0)"}),
    "feed-forward network": (FFNS, MyFeedForward, {"ffn": "mine"}),
    "initializer": (INITIALIZERS, my_initializer, {"initializer": "mine"}),
    "pooling": (POOLINGS, lambda d_model, seed, dtype: MyPooling(), {"pooling": "mine"}),
    "loss": (LOSSES, MyLoss, {"output": "mine"}),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def header_of(path):
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["npformer"])


def rewrite(path, header):
    save_file(load_file(path), path, metadata={"npformer": json.dumps(header)})


# Names that are not registered --------------------------------------------------------------------


@pytest.mark.parametrize("kind", MINE)
def test_a_file_of_an_unregistered_name_says_what_to_register(path, small_model, kind):
    table, builder, changes = MINE[kind]
    table.register("mine", builder)
    try:
        model = small_model(**changes)
        nf.save(model, path)
        np.testing.assert_array_equal(nf.load(path).parameters().flat, model.parameters().flat)
    finally:
        del table["mine"]
    assert header_of(path)["registered"] == [{"kind": kind, "name": "mine", "module": __name__}]
    with pytest.raises(nf.CheckpointError) as error:
        nf.load(path)
    message = str(error.value)
    assert message.startswith(f"{path}: its description cannot be used: ")
    assert "is 'mine'; expected one of" in message
    assert f"{table.table}.register('mine', ...)" in message
    assert f"The file needs the {kind} 'mine': before nf.load, register it, or import " in message
    assert f"{__name__}; on the command line, --plugin {__name__}." in message
    assert error.value.unregistered == (f"the {kind} 'mine'",)


def test_a_name_of_a_plugin_that_is_a_file_is_said_to_be_from_that_file(path, small_model):
    plugin = path.parent / "my_square.py"
    plugin.write_text(
        "import npformer as nf\n\n\n"
        "class Square(nf.layers.Tanh):\n    pass\n\n\n"
        "nf.layers.ACTIVATIONS.register('of_a_file', Square)\n"
    )
    load_plugins([str(plugin)])
    try:
        nf.save(small_model(activation="of_a_file"), path)
    finally:
        del nf.layers.ACTIVATIONS["of_a_file"]
    assert header_of(path)["registered"][0]["module"] == "my_square.py"
    said = r"import the file my_square\.py; on the command line, --plugin my_square\.py\."
    with pytest.raises(nf.CheckpointError, match=said):
        nf.load(path)


def test_all_names_that_are_missing_are_told_at_once(path, small_model):
    for table, builder, _ in MINE.values():
        table.register("mine", builder)
    try:
        everything = {key: value for *_, changes in MINE.values() for key, value in changes.items()}
        nf.save(small_model(**everything), path)
    finally:
        for table, *_ in MINE.values():
            del table["mine"]
    with pytest.raises(nf.CheckpointError) as error:
        nf.load(path)
    assert set(error.value.unregistered) == {f"the {kind} 'mine'" for kind in MINE}


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (
            "__main__",
            "import a module that registers it (a script or notebook did, when it was sav",
        ),
        ("", "import the module that registers it; on the command line, --plugin MODULE."),
        (None, "import the module that registers it; on the command line, --plugin MODULE."),
    ],
)
def test_a_script_cannot_be_imported_and_nobody_says_so(path, small_model, module, words):
    nf.save(small_model(), path)
    header = header_of(path)
    header["config"]["mixer"] = "mine(a=1)"
    if module is not None:
        header["registered"] = [{"kind": "mixer", "name": "mine", "module": module}]
    rewrite(path, header)
    with pytest.raises(nf.CheckpointError) as error:
        nf.load(path)
    assert words in str(error.value)


@pytest.mark.parametrize("registered", [5, [5], [{}], {"a": 1}, None], ids=repr)
def test_an_edited_list_of_names_is_no_trouble(path, small_model, registered):
    nf.save(small_model(), path)
    header = header_of(path) | {"registered": registered}
    rewrite(path, header)
    nf.load(path)
    header["config"]["mixer"] = "mine"
    rewrite(path, header)
    with pytest.raises(nf.CheckpointError, match="mixer is 'mine'; expected one of"):
        nf.load(path)
    header["config"] = {"activation": "mine(a=1)", "ffn": "mine("}
    rewrite(path, header)
    with pytest.raises(nf.CheckpointError, match="activation is 'mine'; expected one of") as error:
        nf.load(path)
    assert error.value.unregistered == ("the activation 'mine'",)


def test_options_that_an_older_version_had_are_named(path, small_model):
    nf.save(small_model(), path)
    header = header_of(path)
    header["config"]["activation"] = "gelu(sharpness=3)"
    rewrite(path, header)
    with pytest.raises(nf.CheckpointError, match="'gelu' has no option 'sharpness'; expected appr"):
        nf.load(path)


def test_files_of_before_there_were_initializers_are_read(path, small_model):
    model = small_model()
    nf.save(model, path)
    header = header_of(path)
    del header["config"]["initializer"]
    rewrite(path, header)
    assert nf.load(path).config == model.config


def test_a_model_of_npformers_own_names_says_nothing_of_others(path, small_model):
    nf.save(small_model(), path)
    assert "registered" not in header_of(path)


# Trees that are not what the configuration makes --------------------------------------------------


class FirstGelu(L.GELU):
    """The same numbers today; nobody knows."""


class MyLinear(L.Linear):
    def forward(self, x, context):
        y, cache = super().forward(x, context)
        return 2.0 * y, cache


def swap_activation(model):
    model.encoder.blocks[1].feed_forward.activation = L.ReLU()


def swap_for_subclass(model):
    model.encoder.blocks[0].feed_forward.activation = FirstGelu()


def swap_projection(model):
    model.encoder.blocks[0].mixer.query = MyLinear(8, 8, seed=0, dtype="float64")


def swap_scores(model):
    class MyScores(type(model.encoder.blocks[0].mixer.scores)):
        pass

    model.encoder.blocks[0].mixer.scores = MyScores(8, 2, seed=0, dtype="float64")


def one_block_less(model):
    model.encoder.blocks.pop()


def one_block_more(model):
    model.encoder.blocks.append(copy.deepcopy(model.encoder.blocks[0]))


def the_same_block_twice(model):
    model.encoder.blocks[1] = model.encoder.blocks[0]


def no_positions(model):
    model.embed.positions = None


def another_pooling(model):
    model.pool = L.FirstToken()


def another_head(model):
    model.classify = L.Linear(8, 5, seed=0, dtype="float64")


def a_head_of_float32(model):
    model.classify = L.Linear(8, 3, seed=0)


def a_head_without_bias(model):
    model.classify = L.Linear(8, 3, bias=False, seed=0, dtype="float64")


def another_loss(model):
    model.loss = MeanSquaredError()


def approximate(model):
    model.encoder.blocks[0].feed_forward.activation.approximate = "tanh"


def another_epsilon(model):
    model.encoder.blocks[1].mixer_norm.eps = 1e-3


def causal(model):
    model.encoder.blocks[0].mixer.causal = True


def pre_norm(model):
    model.encoder.blocks[0].norm = "pre"


def a_forward_of_its_own(model):
    model.encoder.blocks[0].feed_forward.forward = lambda x, context: (x, None)


def another_word_for_pooling(model):
    model.pooling = "first"


def another_encoder(model):
    config = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=12, max_len=6, mixer="identity")
    model.encoder = nf.Encoder(config, dtype="float64")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap_activation, r"blocks.1.feed_forward.activation is a ReLU, and .* makes a GELU"),
        (
            swap_for_subclass,
            r"blocks.0.feed_forward.activation is a FirstGelu, and .* makes a GELU",
        ),
        (swap_projection, r"encoder.blocks.0.mixer.scores.query is a MyLinear, and .* a Linear"),
        (swap_scores, r"encoder.blocks.0.mixer.scores is a MyScores, and .* a AttentionScores"),
        (one_block_less, "^encoder.blocks has 1 parts, and the model's configuration makes 2"),
        (one_block_more, "^encoder.blocks has 3 parts, and the model's configuration makes 2"),
        (the_same_block_twice, "encoder.blocks.1.* is a parameter that only the configuration mak"),
        (
            no_positions,
            r"^embed.positions is None, and the model's configuration makes a Positions",
        ),
        (another_pooling, r"^pool is a FirstToken, and the model's configuration makes a MeanPool"),
        (another_head, r"^classify.weight has shape \(8, 5\) .* configuration makes \(8, 3\)"),
        (a_head_of_float32, r"^classify.weight has shape \(8, 3\) and dtype float32, .* float64"),
        (
            a_head_without_bias,
            r"^classify.bias is None, and the model's configuration makes a Param",
        ),
        (another_loss, r"^loss is a MeanSquaredError, and .* makes a SoftmaxCrossEntropy"),
        (approximate, r"activation.approximate is 'tanh', and .* makes 'none'"),
        (another_epsilon, r"^encoder.blocks.1.mixer_norm.eps is 0.001, and .* makes 1e-05"),
        (causal, r"^encoder.blocks.0.mixer.causal is True, and .* makes False"),
        (pre_norm, r"^encoder.blocks.0.norm is 'pre', and .* makes 'post'"),
        (
            a_forward_of_its_own,
            r"^encoder.blocks.0.feed_forward has a forward of its own; expected",
        ),
        (another_word_for_pooling, r"^pool is a MeanPooling, and .* makes a FirstToken"),
        (another_encoder, r"^encoder.config is"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_tree_that_would_come_back_as_another_is_not_saved(path, small_model, change, message):
    model = small_model()
    change(model)
    with pytest.raises(ValueError, match=message) as error:
        nf.save(model, path)
    assert "register the layer" in str(error.value) or "could not be loaded" in str(error.value)
    assert not path.exists()


def dropout(model):
    for _, layer in model.layers():
        if isinstance(layer, L.Dropout):
            layer.rate = 0.0


def memory(model):
    model.encoder.blocks[0].mixer.memory = "stored"


def smoothing(model):
    model.loss = SoftmaxCrossEntropy(label_smoothing=0.2)


def frozen(model):
    for parameter in model.embed.named_parameters().values():
        parameter.trainable = False
    model.flatten()


def notes(model):
    model.encoder.author = "me"
    model.encoder.blocks[0]._seen = np.zeros(3)
    model.encoder.blocks[0].mixer.calls = [1, 2]


def trained(model):
    rng = np.random.default_rng(0)
    nf.fit(model, (rng.integers(0, 7, (8, 6)), rng.integers(0, 3, 8)), epochs=1, progress=False)


def copied(model):
    model.encoder = copy.deepcopy(model.encoder)
    model.flatten()


@pytest.mark.parametrize(
    "change", [dropout, memory, smoothing, frozen, notes, trained, copied], ids=lambda c: c.__name__
)
def test_what_no_prediction_depends_on_may_differ(path, small_model, rng, change):
    model, ids = small_model(dropout=0.3), rng.integers(0, 7, (3, 6))
    change(model)
    nf.save(model, path)
    np.testing.assert_array_equal(nf.load(path)(ids), model(ids))


@pytest.mark.parametrize("shared", [True, False])
def test_sharing_by_hand_is_told_from_sharing_by_configuration(path, small_model, shared):
    model = small_model(share_layers=shared, n_layers=3)
    nf.save(model, path)
    model.encoder.blocks[2] = copy.deepcopy(model.encoder.blocks[0])
    if shared:
        with pytest.raises(
            ValueError, match=r"encoder.blocks.2.* only the model has; .*share_layers"
        ):
            nf.save(model, path)
    else:
        nf.save(model, path)


def test_other_models_are_looked_at_too(path, small_config):
    encoder = nf.Encoder(small_config(norm="pre"))
    encoder.final_norm = None
    with pytest.raises(
        ValueError, match=r"^final_norm is None, and the model's configuration makes"
    ):
        nf.save(encoder, path)
    text = nf.TextEncoder(small_config(), 7)
    text.pool.activation = L.ReLU()
    with pytest.raises(ValueError, match=r"^pool.activation is a ReLU, and .* makes a Tanh"):
        nf.save(text, path)
    text.pool = None  # that is what the argument says
    nf.save(text, path)
    assert nf.load(path).pool is None


def test_a_class_that_was_defined_anew_is_the_same(path, small_model, rng):
    def define(factor):
        class Anew(Mine):
            def forward(self, x, context):
                return factor * x, None

        return ACTIVATIONS.register("anew", Anew)

    ids = rng.integers(0, 7, (2, 6))
    try:
        define(2.0)
        model = small_model(activation="anew")
        define(3.0)  # as a notebook's cell that is run again
        nf.save(model, path)
        assert not np.allclose(nf.load(path)(ids), model(ids))  # a cell that changed says so itself
    finally:
        del ACTIVATIONS["anew"]


class Tabled(nf.Layer):
    """Holds an array that is no parameter: no file would bring it back."""

    def __init__(self, drawn=False):
        self.table = np.random.default_rng().random(4) if drawn else np.arange(4.0)

    def forward(self, x, context):
        return x * self.table[0], None

    def backward(self, dy, cache, gradients):
        return dy * self.table[0]


def test_an_array_that_is_no_parameter_has_to_be_what_is_built(path, small_model):
    ACTIVATIONS.register("tabled", Tabled)
    try:
        model = small_model(activation="tabled")
        nf.save(model, path)
        model.encoder.blocks[0].feed_forward.activation.table[0] = 5.0
        with pytest.raises(ValueError, match=r"activation.table is .*belongs into a Parameter"):
            nf.save(model, path)
        with pytest.raises(ValueError, match=r"activation.table is .*belongs into a Parameter"):
            nf.save(small_model(activation="tabled(drawn=True)"), path)
    finally:
        del ACTIVATIONS["tabled"]


def test_a_name_that_is_registered_no_more_is_not_saved(path, small_model):
    ACTIVATIONS.register("mine", Mine)
    model = small_model(activation="mine")
    del ACTIVATIONS["mine"]
    with pytest.raises(ValueError, match="activation is 'mine'; expected one of"):
        nf.save(model, path)


def test_saving_and_loading_draw_no_weights(path, small_model, monkeypatch):
    drawn = []
    monkeypatch.setitem(
        INITIALIZERS, "counted", lambda: lambda rng, s: drawn.append(s) or np.ones(s)
    )
    model = small_model(initializer="counted")
    n = len(drawn)
    nf.save(model, path)
    loaded = nf.load(path)
    assert len(drawn) == n > 0
    np.testing.assert_array_equal(loaded.parameters().flat, model.parameters().flat)
