"""What a user puts into a model is what runs, trains and is judged: with the engine and without."""

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.mixers import DenseSynthesizer, Fourier, GeneralAttention
from tests.engine import users
from tests.sampling import mark_others


def set_at(path, value):
    """Return a change of a model: ``block.<path> = value()``."""

    def change(model):
        *outer, name = path.split(".")
        target = users.block(model)
        for attribute in outer:
            target = getattr(target, attribute)
        setattr(target, name, value())

    return change


def own_forward(model):
    """Set a forward pass on one object, as a debugger does."""
    layer = users.block(model).feed_forward.expand
    plain = layer.forward
    layer.forward = lambda x, context: plain(0.5 * x, context)
    layer.backward = lambda *passed: 0.5 * L.Linear.backward(layer, *passed)


def own_heads(model):
    """The same for the heads of one mixer: twice what they were."""
    mixer = GeneralAttention(8, 2, seed=0, dtype="float64")
    users.block(model).mixer = mixer
    plain, plain_backward = mixer.attend, mixer.attend_backward

    def attend(query, key, value, context):
        heads, cache = plain(query, key, value, context)
        return 2.0 * heads, cache

    mixer.attend = attend
    mixer.attend_backward = lambda dheads, cache: plain_backward(2.0 * dheads, cache)


def own_scores(model):
    """The same for the scores of one mixer: twice what they were."""
    mixer = users.block(model).mixer
    plain, plain_backward = mixer.scores, mixer.scores_backward

    def scores(x, context):
        unscaled_scores, cache = plain(x, context)
        return 2.0 * unscaled_scores, cache

    mixer.scores = scores
    mixer.scores_backward = lambda dy, cache, gradients: plain_backward(2.0 * dy, cache, gradients)


def synthesizer_with_own_scores(model):
    users.block(model).mixer = DenseSynthesizer(8, 2, 6, seed=0, dtype="float64")
    own_scores(model)


def another_list(model):
    model.encoder.blocks = [users.block(model, 1), users.block(model, 0), users.block(model, 1)]


def tie(model):
    users.block(model, 1).feed_forward.expand = users.block(model).feed_forward.expand
    users.block(model, 1).mixer = users.block(model).mixer


CHANGES = {
    "an activation of one's own": set_at("feed_forward.activation", users.Square),
    "another activation": set_at("feed_forward.activation", L.ReLU),
    "the other GELU": set_at("feed_forward.activation", lambda: L.GELU("tanh")),
    "a convolution of 3": set_at(
        "feed_forward.expand", lambda: users.linear(8, 12, L.Conv1d, kernel=3)
    ),
    "a convolution of 1": set_at("feed_forward.contract", lambda: users.linear(12, 8, L.Conv1d)),
    "a subclassed map": set_at("feed_forward.expand", lambda: users.linear(8, 12, users.Scaled)),
    "a map without a bias": set_at(
        "feed_forward.contract", lambda: users.linear(12, 8, bias=False)
    ),
    "a feed-forward network of one's own": set_at("feed_forward", users.Square),
    "a subclassed query": set_at("mixer.query", lambda: users.linear(kind=users.Scaled)),
    "another query": set_at("mixer.query", users.linear),
    "a query without a bias": set_at("mixer.query", lambda: users.linear(bias=False)),
    "a value without a bias": set_at("mixer.value", lambda: users.linear(bias=False)),
    "a subclassed output": set_at("mixer.output", lambda: users.linear(kind=users.Scaled)),
    "a mixer of one's own": set_at("mixer", users.Reversed),
    "another mixer": set_at("mixer", lambda: Fourier("zero")),
    "a synthesizer": set_at("mixer", lambda: DenseSynthesizer(8, 2, 6, seed=0, dtype="float64")),
    "a subclassed mixer": set_at("mixer", lambda: users.HeadsOfOne(8, 2, seed=0, dtype="float64")),
    "no norm": set_at("mixer_norm", users.Nothing),
    "a norm of one's own": set_at("feed_forward_norm", users.Square),
    "another eps": set_at("mixer_norm.eps", lambda: 0.5),
    "a dropout of one's own": set_at("mixer_dropout", users.Square),
    "causal afterwards": set_at("mixer.causal", lambda: True),
    "another pooling": lambda model: setattr(model, "pool", L.FirstToken()),
    "a pooling of one's own": lambda model: setattr(model, "pool", users.Last()),
    "a forward pass of the object's own": own_forward,
    "heads of the object's own": own_heads,
    "a synthesizer with scores of the object's own": synthesizer_with_own_scores,
    "a list of blocks edited": another_list,
    "blocks taken away": lambda model: model.encoder.blocks.pop(),
    "a block of one's own": lambda model: model.encoder.blocks.__setitem__(
        0, users.Block(model.config, seed=0, dtype="float64")
    ),
    "another embedding": lambda model: setattr(
        model.embed, "tokens", L.Embedding(7, 8, scale=True, seed=9, dtype="float64")
    ),
    "no positions": lambda model: setattr(model.embed, "positions", None),
    "tied layers": tie,
}
changes = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@changes
@pytest.mark.parametrize("mask", [users.MASK, None], ids=["masked", "whole"])
@pytest.mark.usefixtures("short_samples_have_kernels")
def test_what_is_put_into_a_model_runs(change, batch, mask):
    model = users.make()
    before = model(batch[0], mask)
    change(model)
    users.assert_logits_agree(model, batch[0], mask)
    assert np.abs(model(batch[0], mask) - before).max() > 1e-4, "the change shows in nothing"


@changes
@pytest.mark.parametrize("workers", [1, 2], ids=["one worker", "two workers"])
def test_what_is_put_into_a_model_trains(change, workers, batch):
    model = users.make()
    model.loss_and_gradients(*batch, workers=workers)  # a twin that was made before
    change(model)
    users.assert_steps_agree(model, *batch, workers=workers)


@pytest.mark.parametrize(
    "change",
    mark_others([CHANGES["another eps"], CHANGES["a mixer of one's own"]], CHANGES.values()),
    ids=CHANGES,
)
def test_what_is_put_into_a_model_is_judged(change, batch):
    model = users.make()
    change(model)
    report = nf.gradcheck(model, batch[0][:2], mask=users.MASK[:2], directions=2, max_entries=4)
    assert [twin.dtype for twin in report.twins] == ["float64", "float32"]


@changes
def test_a_twin_that_was_kept_follows(change, batch):
    model = users.make()
    twin = nf.fast(model)
    change(model)
    x, _, mask = batch
    context = nf.Context(mask=mask, keep=False)
    plain, _ = model.forward(x, context)
    np.testing.assert_allclose(twin.forward(x, context)[0], plain, rtol=0, atol=users.DOUBLE)


@pytest.mark.parametrize(
    "name", ["an activation of one's own", "a mixer of one's own", "a subclassed query", "no norm"]
)
@pytest.mark.usefixtures("fake_backend")
def test_the_same_on_a_device(batch, name):
    model = users.make()
    CHANGES[name](model)
    expected = users.plain_step(model, *batch)
    users.assert_same_step(model.to("fake").loss_and_gradients(*batch), expected)


def test_an_activation_with_a_wrong_backward_pass_is_found_in_a_network():
    class Wrong(users.Square):
        def backward(self, dy, cache, gradients):
            return 2.002 * dy * cache

    network = L.PositionwiseFeedForward(8, 12, "gelu", seed=0, dtype="float64")
    network.activation = Wrong()
    with pytest.raises(nf.GradcheckError, match=r"expand\.weight"):
        nf.gradcheck(network, np.random.default_rng(0).normal(size=(2, 3, 8)))


def test_a_new_entry_of_the_table_of_activations_trains(monkeypatch, batch):
    monkeypatch.setitem(L.ACTIVATIONS, "square", users.Square)
    model = users.make(activation="square")
    x, y, mask = batch
    assert len(nf.fit(model, (x, y, mask), epochs=2, progress=False).train_loss) == 2
    assert isinstance(users.block(model).feed_forward.activation, users.Square)


# What a user's layer keeps ------------------------------------------------------------------------
class Keeper(nf.Layer):
    """Keeps what it was given, and what it returned."""

    def __init__(self):
        self.kept = []
        self.copies = []

    def keep(self, *arrays):
        self.kept += arrays
        self.copies += [a.copy() for a in arrays]

    def forward(self, x, context):
        y = 1.5 * x
        self.keep(x, y)
        return y, None

    def backward(self, dy, cache, gradients):
        dx = 1.5 * dy
        self.keep(dy, dx)
        return dx


PLACES = ["mixer", "mixer_dropout", "mixer_norm", "feed_forward", "feed_forward_norm"]
PLACES += ["feed_forward.activation", "feed_forward.contract", "mixer.output"]


class Widen(Keeper):
    """Stands where 12 features become 8."""

    def forward(self, x, context):
        self.keep(x)
        return x[..., :8] * 1.0, x.shape

    def backward(self, dy, cache, gradients):
        self.keep(dy)
        dx = np.zeros(cache, dy.dtype)
        dx[..., :8] = dy
        return dx


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("place", PLACES)
def test_what_a_layer_keeps_stays_as_it_was(place, norm, batch):
    model = users.make(norm=norm)
    keeper = Widen() if place == "feed_forward.contract" else Keeper()
    set_at(place, lambda: keeper)(model)
    for _ in range(3):
        model.loss_and_gradients(*batch)
        model(batch[0], users.MASK)
    assert len(keeper.kept) > 8
    for stored_array, copy in zip(keeper.kept, keeper.copies, strict=True):
        np.testing.assert_array_equal(stored_array, copy)


def test_a_backward_pass_leaves_the_callers_gradient_alone():
    config = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=12, max_len=6)
    layer = nf.EncoderBlock(config, seed=0, dtype="float64")
    layer.feed_forward_norm = users.Nothing()
    x = np.random.default_rng(0).normal(size=(2, 6, 8))
    twin = nf.fast(layer)
    _, cache = twin.forward(x, nf.Context())
    dy = np.ones_like(x)
    twin.backward(dy, cache, nf.Gradients(layer))
    assert (dy == 1.0).all()


def test_a_kept_twin_sees_that_a_layer_has_another_class():
    network, x = L.Sequential(users.linear(), users.linear()), np.ones((2, 8))
    twin = nf.fast(network)
    twin.forward(x, nf.Context())
    network.chain[1].__class__ = users.Scaled
    expected, _ = network.forward(x, nf.Context())
    np.testing.assert_allclose(
        twin.forward(x, nf.Context())[0], expected, rtol=0, atol=users.DOUBLE
    )


def test_a_convolution_in_a_network_refuses_what_it_refuses_alone():
    network = L.PositionwiseFeedForward(8, 12, "gelu", seed=0, dtype="float64")
    network.contract = users.linear(12, 8, L.Conv1d)
    for layer in (network, nf.fast(network)):
        with pytest.raises(ValueError, match="x has shape"):
            layer.forward(np.ones((2, 8)), nf.Context())


class Counting(users.Square):
    """Sets an attribute of its own in each forward pass."""

    calls = 0

    def forward(self, x, context):
        self.calls += 1
        return super().forward(x, context)


def test_a_layer_that_writes_to_itself_writes_to_the_layer_in_the_model(batch):
    class Remembering(Counting):
        def forward(self, x, context):
            self.last = x
            return super().forward(x, context)

    model = users.make()
    layer = Remembering()
    users.block(model).feed_forward.activation = layer
    for _ in range(2):
        model(batch[0], users.MASK)
    model.loss_and_gradients(*batch)  # compares two arrays that the layer has kept
    assert layer.calls == 3
    assert layer.last.shape == (8, 6, 12)
