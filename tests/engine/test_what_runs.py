"""What a user puts into a model is what runs, trains and is judged: with the engine and without
it."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer.engine import has_twin
from npformer.engine.workers import Team
from npformer.mixers import Attention, DenseSynthesizer, Fourier
from tests import fake_device

DOUBLE = 1e-11
MASK = np.arange(6) < np.array([6, 4, 6, 1, 3, 6, 2, 5])[:, None]


def make(pooling="mean", **changes):
    """Return a float64 classifier of token ids, small and with everything in it."""
    changes = {"mixer": "attention", "activation": "gelu"} | changes
    config = nf.EncoderConfig(d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=6, **changes)
    model = nf.SequenceClassifier(config, 3, vocab_size=7, pooling=pooling, seed=0, dtype="float64")
    rng = np.random.default_rng(1)
    for array in model.parameters().values():  # no bias at 0, no gamma at 1
        array += 0.3 * rng.standard_normal(array.shape)
    return model


@pytest.fixture
def batch():
    rng = np.random.default_rng(2)
    return rng.integers(0, 7, (8, 6)), rng.integers(0, 3, 8), MASK


# What users put into models -----------------------------------------------------------------------


class Square(nf.Layer):
    """y = x^2."""

    def forward(self, x, context):
        return x * x, x

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * cache


class Scaled(L.Linear):
    """A linear map of which twice the result is taken."""

    def forward(self, x, context):
        y, cache = super().forward(x, context)
        return 2.0 * y, cache

    def backward(self, dy, cache, gradients):
        return super().backward(2.0 * dy, cache, gradients)


class Nothing(nf.Layer):
    """y = x: it hands on the very array that it was given."""

    def forward(self, x, context):
        return x, None

    def backward(self, dy, cache, gradients):
        return dy


class Reversed(nf.Layer):
    """Tokens in reverse."""

    def forward(self, x, context):
        return x[:, ::-1], None

    def backward(self, dy, cache, gradients):
        return dy[:, ::-1]


class Last(nf.Layer):
    """The last token."""

    def forward(self, x, context):
        return x[:, -1], x.shape

    def backward(self, dy, cache, gradients):
        dx = np.zeros(cache)
        dx[:, -1] = dy
        return dx


class HeadsOfOne(Attention):
    """Attention that only looks at the values."""

    def heads(self, x, context):
        value, cache = self.value.forward(x, context)
        return value, cache

    def heads_backward(self, dmerged, cache, gradients):
        return self.value.backward(dmerged, cache, gradients)


class Block(nf.EncoderBlock):
    """A block without a feed-forward network."""

    def forward(self, x, context):
        y, cache = self.mixer.forward(x, context)
        return x + y, cache

    def backward(self, dy, cache, gradients):
        return dy + self.mixer.backward(dy, cache, gradients)


def block(model, i=0):
    return model.encoder.blocks[i]


def linear(d_in=8, d_out=8, kind=L.Linear, **options):
    return kind(d_in, d_out, seed=5, dtype="float64", **options)


def set_at(path, value):
    """Return a change of a model: ``block.<path> = value()``."""

    def change(model):
        *outer, name = path.split(".")
        target = block(model)
        for part in outer:
            target = getattr(target, part)
        setattr(target, name, value())

    return change


def own_forward(model):
    """Set a forward pass on one object, as a debugger does."""
    layer = block(model).feed_forward.expand
    plain = layer.forward
    layer.forward = lambda x, context: plain(0.5 * x, context)
    layer.backward = lambda dy, cache, gradients: (
        0.5 * L.Linear.backward(layer, dy, cache, gradients)
    )


def another_list(model):
    model.encoder.blocks = [block(model, 1), block(model, 0), block(model, 1)]


def tie(model):
    block(model, 1).feed_forward.expand = block(model).feed_forward.expand
    block(model, 1).mixer = block(model).mixer


def causal(model):
    block(model).mixer.causal = True


def another_eps(model):
    block(model).mixer_norm.eps = 0.5


CHANGES = {
    "an activation of one's own": set_at("feed_forward.activation", Square),
    "another stock activation": set_at("feed_forward.activation", L.ReLU),
    "the other GELU": set_at("feed_forward.activation", lambda: L.GELU("tanh")),
    "a convolution of size 3": set_at(
        "feed_forward.expand", lambda: linear(8, 12, L.Conv1d, kernel=3)
    ),
    "a convolution of size 1": set_at("feed_forward.contract", lambda: linear(12, 8, L.Conv1d)),
    "a subclassed map": set_at("feed_forward.expand", lambda: linear(8, 12, Scaled)),
    "a map without a bias": set_at("feed_forward.contract", lambda: linear(12, 8, bias=False)),
    "a feed-forward network of one's own": set_at("feed_forward", Square),
    "a subclassed query": set_at("mixer.scores.query", lambda: linear(kind=Scaled)),
    "another query": set_at("mixer.query", linear),
    "a query without a bias": set_at("mixer.scores.query", lambda: linear(bias=False)),
    "a value without a bias": set_at("mixer.value", lambda: linear(bias=False)),
    "a subclassed output": set_at("mixer.output", lambda: linear(kind=Scaled)),
    "a mixer of one's own": set_at("mixer", Reversed),
    "another stock mixer": set_at("mixer", lambda: Fourier("zero")),
    "a synthesizer": set_at("mixer", lambda: DenseSynthesizer(8, 2, 6, seed=0, dtype="float64")),
    "a subclassed mixer": set_at("mixer", lambda: HeadsOfOne(8, 2, seed=0, dtype="float64")),
    "no norm": set_at("mixer_norm", Nothing),
    "a norm of one's own": set_at("feed_forward_norm", Square),
    "another eps": another_eps,
    "a dropout of one's own": set_at("mixer_dropout", Square),
    "causal afterwards": causal,
    "another pooling": lambda model: setattr(model, "pool", L.FirstToken()),
    "a pooling of one's own": lambda model: setattr(model, "pool", Last()),
    "a forward pass of the object's own": own_forward,
    "a list of blocks edited": another_list,
    "blocks taken away": lambda model: model.encoder.blocks.pop(),
    "a block of one's own": lambda model: model.encoder.blocks.__setitem__(
        0, Block(model.config, seed=0, dtype="float64")
    ),
    "another embedding": lambda model: setattr(
        model.embed, "tokens", L.Embedding(7, 8, scale=True, seed=9, dtype="float64")
    ),
    "no positions": lambda model: setattr(model.embed, "positions", None),
    "tied layers": tie,
}
changes = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def plain_step(model, x, y, mask):
    """Return logits, loss and gradients of the plain tree."""
    with nf.use_kernels(False):
        loss, gradients = model.loss_and_gradients(x, y, mask, seed=0)
        return model(x, mask), loss, dict(gradients)


def assert_close(found, expected, tolerance=DOUBLE):
    scale = max(np.abs(g).max(initial=0.0) for g in expected.values())
    assert list(found) == list(expected)
    for name, g in expected.items():
        np.testing.assert_allclose(
            nf.to_numpy(found[name]), g, rtol=0, atol=tolerance * scale, err_msg=name
        )


@changes
def test_what_is_put_into_a_model_runs(change, batch):
    model = make()
    before = model(batch[0], MASK)
    change(model)
    logits, _, _ = plain_step(model, *batch)
    np.testing.assert_allclose(model(batch[0], MASK), logits, rtol=0, atol=DOUBLE)
    assert np.abs(model(batch[0], MASK) - before).max() > 1e-4, "the change shows in nothing"


@changes
@pytest.mark.parametrize("workers", [1, 2], ids=["one worker", "two workers"])
def test_what_is_put_into_a_model_trains(change, workers, batch):
    model = make()
    model.loss_and_gradients(*batch, workers=workers)  # a twin that was made before
    change(model)
    _, loss, gradients = plain_step(model, *batch)
    found_loss, found = model.loss_and_gradients(*batch, workers=workers)
    assert found_loss == pytest.approx(loss, rel=1e-12)
    assert_close(found, gradients)


@changes
def test_what_is_put_into_a_model_reaches_copies_of_the_process(change, batch):
    model = make()
    with Team(model, 2, processes=True) as team:
        team.step(model.batch(*batch))  # copies that know the model as it was
        change(model)
        model.flatten()
        _, loss, gradients = plain_step(model, *batch)
        found_loss, found = team.step(model.batch(*batch))
        assert float(found_loss) == pytest.approx(loss, rel=1e-12)
        assert_close(found, gradients)


@changes
def test_what_is_put_into_a_model_is_judged(change, batch):
    model = make()
    change(model)
    report = nf.gradcheck(model, batch[0][:2], mask=MASK[:2], directions=2, max_entries=4)
    assert [twin.dtype for twin in report.twins] == ["float64", "float32"]


@changes
def test_a_twin_that_was_kept_follows(change, batch):
    model = make()
    twin = nf.fast(model)
    change(model)
    x, _, mask = batch
    context = nf.Context(mask=mask, keep=False)
    plain, _ = model.forward(x, context)
    np.testing.assert_allclose(twin.forward(x, context)[0], plain, rtol=0, atol=DOUBLE)


@pytest.mark.parametrize(
    "name", ["an activation of one's own", "a mixer of one's own", "a subclassed query", "no norm"]
)
def test_the_same_on_a_device(name, batch, fake_backend):
    model = make()
    CHANGES[name](model)
    _, loss, gradients = plain_step(model, *batch)
    model.to("fake")
    found_loss, found = model.loss_and_gradients(*batch)
    assert found_loss == pytest.approx(loss, rel=1e-12)
    assert_close(found, gradients)


@pytest.fixture
def fake_backend(monkeypatch):
    from npformer.core import arrays as backends

    monkeypatch.setattr(backends, "_backends", {"numpy": backends.NUMPY})
    backends.register(fake_device.backend())


def test_an_activation_with_a_wrong_backward_pass_is_found_in_a_network(batch):
    class Wrong(Square):
        def backward(self, dy, cache, gradients):
            return 2.002 * dy * cache

    network = L.PositionwiseFeedForward(8, 12, "gelu", seed=0, dtype="float64")
    network.activation = Wrong()
    with pytest.raises(nf.GradcheckError, match=r"expand\.weight"):
        nf.gradcheck(network, np.random.default_rng(0).normal(size=(2, 3, 8)))


def test_a_new_entry_of_the_table_of_activations_trains(monkeypatch, batch):
    monkeypatch.setitem(L.ACTIVATIONS, "square", Square)
    model = make(activation="square")
    x, y, mask = batch
    history = nf.fit(model, (x, y, mask), epochs=2, progress=False)
    assert len(history.train_loss) == 2
    assert isinstance(block(model).feed_forward.activation, Square)


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


PLACES = [
    "mixer",
    "mixer_dropout",
    "mixer_norm",
    "feed_forward",
    "feed_forward_norm",
    "feed_forward.activation",
    "feed_forward.contract",
    "mixer.output",
]


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
    model = make(norm=norm)
    keeper = Widen() if place == "feed_forward.contract" else Keeper()
    set_at(place, lambda: keeper)(model)
    for _ in range(3):
        model.loss_and_gradients(*batch)
        model(batch[0], MASK)
    assert len(keeper.kept) > 8
    for kept, as_it_was in zip(keeper.kept, keeper.copies, strict=True):
        np.testing.assert_array_equal(kept, as_it_was)


def test_a_backward_pass_leaves_the_callers_gradient_alone():
    config = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=12, max_len=6)
    layer = nf.EncoderBlock(config, seed=0, dtype="float64")
    layer.feed_forward_norm = Nothing()
    x = np.random.default_rng(0).normal(size=(2, 6, 8))
    twin = nf.fast(layer)
    _, cache = twin.forward(x, nf.Context())
    dy = np.ones_like(x)
    twin.backward(dy, cache, nf.Gradients(layer))
    assert (dy == 1.0).all()


def test_a_layer_that_writes_to_itself_writes_to_the_layer_in_the_model(batch):
    class Counting(Square):
        calls = 0

        def forward(self, x, context):
            self.calls += 1
            self.last = x
            return super().forward(x, context)

    model = make()
    layer = Counting()
    block(model).feed_forward.activation = layer
    model(batch[0], MASK)
    model.loss_and_gradients(*batch)
    assert layer.calls == 2
    assert layer.last.shape == (8, 6, 12)


def test_workers_are_threads_where_a_layer_writes_to_itself_at_each_step(batch):
    class Counting(Square):
        calls = 0

        def forward(self, x, context):
            self.calls += 1
            return super().forward(x, context)

    model = make()
    layer = Counting()
    block(model).feed_forward.activation = layer
    with Team(model, 2, processes="auto") as team:
        for _ in range(3):
            team.step(model.batch(*batch))
        assert team._copies is None
    assert layer.calls == 1 + 1 + 2  # two steps beside a copy, then both shares in this process


# Copies, files, moves, freezing -------------------------------------------------------------------


def deepcopied(model):
    return copy.deepcopy(model)


def pickled(model):
    return pickle.loads(pickle.dumps(model))


def frozen(model):
    block(model).mixer.value.weight.trainable = False
    return model


def thawed(model):
    for parameter in model.named_parameters().values():
        parameter.trainable = True
    return model


def flattened(model):
    return model.flatten()


def there_and_back(model):
    x = np.zeros((1, 6), "int64")
    model.to("fake")
    model(x)
    return model.to("numpy")


def swapped(model):
    block(model).feed_forward.activation = L.Tanh()
    return model


HANDLINGS = [deepcopied, pickled, frozen, thawed, flattened, there_and_back, swapped]


@pytest.mark.parametrize(
    "handlings",
    [*itertools.permutations(HANDLINGS, 2), tuple(HANDLINGS), tuple(reversed(HANDLINGS))],
    ids=lambda handlings: "-".join(h.__name__ for h in handlings),
)
def test_handled_in_any_order(handlings, batch, fake_backend):
    model = make()
    for handling in handlings:
        model.loss_and_gradients(*batch)
        model = handling(model)
        _, loss, gradients = plain_step(model, *batch)
        found_loss, found = model.loss_and_gradients(*batch)
        assert found_loss == pytest.approx(loss, rel=1e-12)
        assert_close(found, gradients)


def test_a_copy_of_a_model_is_another_model(batch):
    model = make()
    before = model(batch[0])
    other = copy.deepcopy(model)
    for array in other.parameters().values():
        array += 1.0
    other(batch[0])
    np.testing.assert_array_equal(model(batch[0]), before)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, pickled])
def test_a_copy_of_a_twin_is_a_copy_of_its_layer(copied, batch):
    model = make()
    expected = model(batch[0], MASK)
    other = copied(nf.fast(model))
    assert type(other) is nf.SequenceClassifier
    assert type(other.encoder.blocks[0].mixer) is Attention
    np.testing.assert_array_equal(other(batch[0], MASK), expected)
    np.testing.assert_array_equal(model(batch[0], MASK), expected)


def test_gradients_from_a_pickle_are_views_of_one_buffer(batch):
    _, gradients = make().loss_and_gradients(*batch)
    other = pickle.loads(pickle.dumps(gradients))
    other.flat[...] = 1.0
    assert all((g == 1.0).all() for g in other.values())
    assert list(other) == list(gradients)


def test_gradients_that_are_held_are_not_lent_again(batch):
    model = make()
    held = [model.loss_and_gradients(*batch)[1] for _ in range(3)]
    views = [gradients["classify.weight"] for gradients in held]
    copies = [gradients.flat.copy() for gradients in held]
    for k in range(5):
        other = make(dropout=0.1 * k)
        other.loss_and_gradients(*batch, seed=k)
        model.loss_and_gradients(batch[0][::-1].copy(), batch[1], seed=k)
    for gradients, as_it_was in zip(held, copies, strict=True):
        np.testing.assert_array_equal(gradients.flat, as_it_was)
    last = views.pop()
    kept, held[:] = last.copy(), []  # a view holds the memory as well
    del gradients
    model.loss_and_gradients(batch[0][::-1].copy(), batch[1])
    np.testing.assert_array_equal(last, kept)


def test_threads_may_call_a_model_that_another_one_edits(batch, monkeypatch):
    import sys
    import threading

    model, errors = make(), []
    x = batch[0]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def call():
        try:
            for _ in range(40):
                model(x)
        except Exception as error:
            errors.append(error)

    try:
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for k in range(40):
            model.tag = k
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert errors == []


def test_nobody_but_the_engine_sees_a_twin(batch):
    model = make()
    names = [name for name, _ in model.layers()]
    before = {name: dict(vars(layer)) for name, layer in model.layers()}
    model.loss_and_gradients(*batch)
    assert [name for name, _ in model.layers()] == names
    assert {name: dict(vars(layer)) for name, layer in model.layers()} == before


def test_a_model_that_nobody_holds_is_gone(batch):
    import gc
    import weakref

    model = make()
    model.loss_and_gradients(*batch)
    model(batch[0])
    nf.fit(model, batch, epochs=1, progress=False)
    gone = weakref.ref(model), weakref.ref(block(model).mixer)
    del model
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


# The seam -----------------------------------------------------------------------------------------


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


def test_a_twin_is_made_once_and_is_its_own_twin():
    model = make()
    assert nf.fast(model) is nf.fast(model)
    assert nf.fast(nf.fast(model)) is nf.fast(model)
    assert nf.fast(model).encoder.blocks[0] is nf.fast(model).encoder.blocks[0]


def test_without_the_engine_a_model_is_its_own_twin():
    model = make()
    with nf.use_kernels(False):
        assert nf.fast(model) is model


def test_only_layers_have_twins():
    with pytest.raises(TypeError, match="model is a function; expected a Layer"):
        nf.fast(F.linear)


def test_a_layer_of_ones_own_is_its_own_twin():
    layer = Square()
    assert nf.fast(layer) is layer
    assert not has_twin(layer)
    assert has_twin(L.Linear(2, 2, seed=0))
    assert not has_twin(Scaled(2, 2, seed=0))


SMALL = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=12, max_len=6)


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
    logits, loss, gradients = plain_step(model, *batch)
    np.testing.assert_array_equal(model(batch[0], MASK), logits)
    found_loss, found = model.loss_and_gradients(*batch)
    assert found_loss == pytest.approx(loss, rel=1e-12)
    assert_close(found, gradients)


def test_a_subclass_of_a_container_with_other_methods_is_one_like_any_other(batch):
    class Named(nf.SequenceClassifier):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.encoder.blocks[0].feed_forward = Square()

        def names(self, x):
            return [f"class {k}" for k in self.predict(x)]

    model = Named(SMALL, 3, vocab_size=7, dtype="float64")
    twin = nf.fast(model)
    assert isinstance(twin, Named)
    assert twin is not model
    logits, _, _ = plain_step(model, *batch)
    np.testing.assert_allclose(model(batch[0], MASK), logits, rtol=0, atol=DOUBLE)
    assert len(model.names(batch[0])) == 8


def stemmed():
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


def residual_tokens():
    class Residual(L.Sequential):
        def forward(self, x, context):
            y, cache = super().forward(x, context)
            return x + y, cache

        def backward(self, dy, cache, gradients):
            return dy + super().backward(dy, cache, gradients)

    model = nf.SequenceClassifier(SMALL, 3, n_features=8, dtype="float64")
    network = L.PositionwiseFeedForward(8, 12, "gelu", seed=3, dtype="float64")
    model.embed.tokens = L.Sequential(linear(), Residual(network), linear())
    return model


def normed_input():
    class Normed(nf.models.InputEmbedding):
        def chain(self):
            return [self.before, *super().chain()]

    model = nf.SequenceClassifier(SMALL, 3, n_features=5, dtype="float64")
    own = Normed(SMALL, vocab_size=None, n_features=5, seed=2, dtype="float64")
    own.before = L.LayerNorm(5, dtype="float64")
    model.embed = own
    return model


@pytest.mark.parametrize("make_model", [stemmed, residual_tokens, normed_input])
def test_what_stands_before_the_first_layer_gets_its_gradient(make_model):
    model = make_model()
    rng = np.random.default_rng(0)
    n_features = model.n_features
    x, y = rng.normal(size=(8, 6, n_features)), rng.integers(0, 3, 8)
    _, loss, gradients = plain_step(model, x, y, MASK)
    found_loss, found = model.loss_and_gradients(x, y, MASK)
    assert found_loss == pytest.approx(loss, rel=1e-12)
    assert_close(found, gradients)


def test_a_model_that_leads_back_to_itself_is_gone_when_nobody_holds_it(batch):
    import gc
    import weakref

    model = make()
    model.log = model.predict
    block(model).owner = {"of": model}
    model.loss_and_gradients(*batch)
    model(batch[0])
    nf.fast(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_a_twin_that_is_held_alone_works_on(batch):
    import gc

    model = make()
    model.log = model.predict  # a circle, which is collected and not counted out
    twin = nf.fast(model)
    expected, _ = twin.forward(batch[0], nf.Context(keep=False))
    del model
    gc.collect()
    np.testing.assert_array_equal(twin.forward(batch[0], nf.Context(keep=False))[0], expected)


def test_a_layer_that_was_taken_out_is_gone(batch, fake_backend):
    import weakref

    model = make()
    model.loss_and_gradients(*batch)
    gone = []
    for _ in range(3):
        gone.append(weakref.ref(block(model).mixer))
        block(model).mixer = Attention(8, 2, seed=0, dtype="float64")
        model.loss_and_gradients(*batch)
    assert [reference() for reference in gone] == [None] * 3
    model.classify = linear(8, 3)
    model.to("fake")  # no layer that was taken out stands in the way


def test_a_twin_takes_no_twins(batch):
    twin = nf.fast(make())
    with pytest.raises(TypeError, match="encoder of a twin is set to a twin; expected the layer"):
        twin.encoder = twin.encoder


class Table(nf.Layer):
    """y = x + table[k], with an array and a dict of its own that nobody watches."""

    def __init__(self):
        self.array = np.zeros(8)
        self.options = {"by": 1.0}

    def forward(self, x, context):
        return self.options["by"] * (x + self.array), self.options["by"]

    def backward(self, dy, cache, gradients):
        return cache * dy


@pytest.mark.parametrize("change", ["array", "dict", "constant", "loss"])
def test_no_worker_computes_with_what_is_stale(change, batch):
    class Tempered(nf.losses.SoftmaxCrossEntropy):
        k = 1.0

        def __init__(self):
            super().__init__()
            self.k = 1.0

        def forward(self, outputs, y):
            loss, cache = super().forward(outputs, y)
            return self.k * loss, (self.k, cache)

        def backward(self, dloss, cache):
            return super().backward(cache[0] * dloss, cache[1])

    model, loss = make(), Tempered()
    if change in ("array", "dict"):
        block(model).mixer_norm = Table()
        model.flatten()
    with Team(model, 2, processes="auto", loss=loss) as team:
        for step in range(3):
            if change == "array":
                block(model).mixer_norm.array += step
            elif change == "dict":
                block(model).mixer_norm.options["by"] = 1.0 + step
            elif change == "constant":
                model.embed.positions.table.value[...] *= 0.5
            else:
                loss.k = 1.0 + step
            with nf.use_kernels(False):
                value, gradients = model.loss_and_gradients(*batch, loss=loss)
            found, sums = team.step(model.batch(*batch, loss=loss))
            assert float(found) == pytest.approx(value, rel=1e-12)
            assert_close(sums, dict(gradients))


def test_use_kernels_switches_a_twin_off_that_is_held(monkeypatch):
    from npformer.engine import cpu

    layer, x = linear(), np.ones((2, 8))
    twin = nf.fast(layer)
    monkeypatch.setitem(cpu.KERNELS, "linear", (None, None))
    with nf.use_kernels(False):
        np.testing.assert_array_equal(twin.forward(x, nf.Context())[0], layer(x))


def test_layers_that_say_themselves_what_their_children_are(batch):
    class Holder(nf.Layer):
        def __init__(self):
            self.table = {"a": linear()}

        def children(self):
            yield from self.table.items()

        def forward(self, x, context):
            caches = []
            for layer in self.table.values():
                x, cache = layer.forward(x, context)
                caches.append(cache)
            return x, caches

        def backward(self, dy, cache, gradients):
            for layer, saved in zip(reversed(self.table.values()), reversed(cache), strict=True):
                dy = layer.backward(dy, saved, gradients)
            return dy

    model = make()
    holder = Holder()
    block(model).mixer_norm = holder
    model.loss_and_gradients(*batch)
    holder.table["b"] = linear()
    _, found = model.loss_and_gradients(*batch)
    assert "encoder.blocks.0.mixer_norm.b.weight" in found


def test_a_loss_of_other_outputs_is_refused(batch):
    model = make()
    with pytest.raises(ValueError, match="wants 1 outputs and this model has 3"):
        model.loss_and_gradients(*batch, loss=nf.losses.BinaryCrossEntropy())
    with pytest.raises(TypeError, match="is the class SoftmaxCrossEntropy; expected an object"):
        nf.fit(model, batch, loss=nf.losses.SoftmaxCrossEntropy)
    with pytest.raises(TypeError, match="y is None; expected targets"):
        model.loss_and_gradients(batch[0], None)


def test_a_layer_replaced_in_the_middle_of_a_training_is_told(batch):
    model = make()

    def replace(state):
        state.model.classify = linear(8, 3)

    with pytest.raises(ValueError, match="parameters are no longer the optimizer's: a layer was"):
        nf.fit(model, batch, epochs=3, progress=False, callbacks=[replace])


def test_by_hand_a_layer_is_the_plain_one(batch, monkeypatch):
    from npformer.engine import cpu

    def refuse(*arguments, **options):
        raise AssertionError("a kernel was used")

    for name in cpu.KERNELS:
        monkeypatch.setitem(cpu.KERNELS, name, (refuse, refuse))
    model = make()
    y, cache = model.forward(batch[0], nf.Context())
    model.backward(y, cache, nf.Gradients(model))
    model.encoder(np.ones((1, 6, 8)))
    nf.trace(model, batch[0])
    with pytest.raises(AssertionError, match="a kernel was used"):
        model(batch[0])


def test_summary_says_what_runs_as_written(batch):
    model = make()

    def as_written():
        lines = nf.summary(model, batch[0]).splitlines()
        return [line.split()[1] for line in lines if line.endswith("runs as written")]

    assert as_written() == []
    block(model).feed_forward.activation = Square()
    assert as_written() == ["Square"]
    block(model).feed_forward.expand = linear(8, 12, Scaled)
    assert as_written() == ["Scaled", "Square"]
    with nf.use_kernels(False):
        assert as_written() == []


def test_a_fault_that_only_the_twin_has_is_named(batch, monkeypatch):
    from npformer.engine import cpu

    kernel, backward = cpu.KERNELS["feed_forward"]

    def broken(*arguments, **options):
        y, cache = kernel(*arguments, **options)
        y[0] = np.nan
        return y, cache

    monkeypatch.setitem(cpu.KERNELS, "feed_forward", (broken, backward))
    model = make()
    x, y, mask = batch
    with pytest.raises(nf.NonFiniteLossError, match=r"blocks\.0\.feed_forward .*engine"):
        nf.fit(model, (x, y, mask), epochs=1, progress=False, processes=False)


def test_gradcheck_says_that_the_twin_is_wrong(monkeypatch):
    from npformer.engine import cpu

    kernel, backward = cpu.KERNELS["linear"]

    def off(dy, cache, **options):
        dx, dW, *db = backward(dy, cache, **options)
        return dx, dW * 1.001, *db

    layer = L.Linear(4, 3, seed=0, dtype="float64")
    x = np.random.default_rng(0).normal(size=(5, 4))
    monkeypatch.setitem(cpu.KERNELS, "linear", (kernel, off))
    with pytest.raises(nf.GradcheckError, match="the twin is wrong") as caught:
        nf.gradcheck(layer, x)
    assert "the layer itself is right" in str(caught.value)
    assert all(tensor.error < 1e-6 for tensor in caught.value.report.tensors)


def test_gradcheck_sees_a_twin_that_is_wrong_in_float32_alone(monkeypatch):
    from npformer.engine import cpu

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
