"""Twins stay with their model, and out of sight: through copies, moves, edits and its end."""

import copy
import gc
import itertools
import pickle
import sys
import weakref

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.engine.team import Team
from npformer.mixers import Attention
from tests.engine import users
from tests.engine.helpers import run_in_threads


# Copies, files, moves, freezing -------------------------------------------------------------------
def pickle_model(model):
    return pickle.loads(pickle.dumps(model))


def freeze_value(model):
    users.block(model).mixer.value.weight.trainable = False
    return model


def unfreeze(model):
    for parameter in model.named_parameters().values():
        parameter.trainable = True
    return model


def flatten(model):
    return model.flatten()


def move_there_and_back(model):
    x = np.zeros((1, 6), "int64")
    model.to("fake")
    model(x)
    return model.to("numpy")


def swap_activation(model):
    users.block(model).feed_forward.activation = L.Tanh()
    return model


HANDLINGS = [
    copy.deepcopy,
    pickle_model,
    freeze_value,
    unfreeze,
    flatten,
    move_there_and_back,
    swap_activation,
]


@pytest.mark.parametrize(
    "handlings",
    [*itertools.permutations(HANDLINGS, 2), tuple(HANDLINGS), tuple(reversed(HANDLINGS))],
    ids=lambda handlings: "-".join(h.__name__ for h in handlings),
)
@pytest.mark.usefixtures("fake_backend")
def test_handled_in_any_order(handlings, batch):
    model = users.make()
    for handling in handlings:
        model.loss_and_gradients(*batch)
        model = handling(model)
        users.assert_steps_agree(model, *batch)


def test_a_copy_of_a_model_is_another_model(batch):
    model = users.make()
    before = model(batch[0])
    other = copy.deepcopy(model)
    for array in other.parameters().values():
        array += 1.0
    other(batch[0])
    np.testing.assert_array_equal(model(batch[0]), before)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, pickle_model])
def test_a_copy_of_a_twin_is_a_copy_of_its_layer(copied, batch):
    model = users.make()
    expected = model(batch[0], users.MASK)
    other = copied(nf.fast(model))
    assert type(other) is nf.SequenceClassifier
    assert type(other.encoder.blocks[0].mixer) is Attention
    np.testing.assert_array_equal(other(batch[0], users.MASK), expected)
    np.testing.assert_array_equal(model(batch[0], users.MASK), expected)


def test_gradients_from_a_pickle_are_views_of_one_buffer(batch):
    _, gradients = users.make().loss_and_gradients(*batch)
    other = pickle.loads(pickle.dumps(gradients))
    other.flat[...] = 1.0
    assert all((g == 1.0).all() for g in other.values())
    assert list(other) == list(gradients)


def test_gradients_that_are_held_are_not_lent_again(batch):
    model = users.make()
    held = [model.loss_and_gradients(*batch)[1] for _ in range(3)]
    views = [gradients["classify.weight"] for gradients in held]
    copies = [gradients.flat.copy() for gradients in held]
    for k in range(5):
        users.make(dropout=0.1 * k).loss_and_gradients(*batch, seed=k)
        model.loss_and_gradients(batch[0][::-1].copy(), batch[1], seed=k)
    for gradients, as_it_was in zip(held, copies, strict=True):
        np.testing.assert_array_equal(gradients.flat, as_it_was)
    last = views.pop()
    last_copy, held[:] = last.copy(), []  # a view holds the memory as well
    del gradients
    model.loss_and_gradients(batch[0][::-1].copy(), batch[1])
    np.testing.assert_array_equal(last, last_copy)


def test_threads_may_call_a_model_that_another_one_edits(batch):
    model, errors = users.make(), []
    x = batch[0]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def call_or_edit(i):
        try:
            for k in range(40):
                if i == 0:
                    model.tag = k
                else:
                    model(x)
        except Exception as error:
            errors.append(error)

    try:
        run_in_threads(5, call_or_edit)
    finally:
        sys.setswitchinterval(before)
    assert errors == []


def test_nobody_but_the_engine_sees_a_twin(batch):
    model = users.make()
    names = [name for name, _ in model.layers()]
    before = {name: dict(vars(layer)) for name, layer in model.layers()}
    model.loss_and_gradients(*batch)
    assert [name for name, _ in model.layers()] == names
    assert {name: dict(vars(layer)) for name, layer in model.layers()} == before


@pytest.mark.parametrize("refers_to_itself", [False, True])
def test_a_model_that_nobody_holds_is_gone(refers_to_itself, batch):
    model = users.make()
    if refers_to_itself:
        model.log = model.predict
        users.block(model).owner = {"of": model}
    nf.fast(model)
    model.loss_and_gradients(*batch)
    model(batch[0])
    nf.fit(model, batch, epochs=1, progress=False)
    references = weakref.ref(model), weakref.ref(users.block(model).mixer)
    del model
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_a_twin_that_is_held_alone_works_on(batch):
    model = users.make()
    model.log = model.predict  # a circle, which is collected and not counted out
    twin = nf.fast(model)
    expected, _ = twin.forward(batch[0], nf.Context(keep=False))
    del model
    gc.collect()
    np.testing.assert_array_equal(twin.forward(batch[0], nf.Context(keep=False))[0], expected)


@pytest.mark.usefixtures("fake_backend")
def test_a_layer_that_was_taken_out_is_gone(batch):
    model = users.make()
    model.loss_and_gradients(*batch)
    references = []
    for _ in range(3):
        references.append(weakref.ref(users.block(model).mixer))
        users.block(model).mixer = Attention(8, 2, seed=0, dtype="float64")
        model.loss_and_gradients(*batch)
    assert [reference() for reference in references] == [None] * 3
    model.classify = users.linear(8, 3)
    model.to("fake")  # no layer that was taken out stands in the way


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

    model, loss = users.make(), Tempered()
    if change in ("array", "dict"):
        users.block(model).mixer_norm = Table()
        model.flatten()
    with Team(model, 2, loss=loss) as team:
        for step in range(3):
            if change == "array":
                users.block(model).mixer_norm.array += step
            elif change == "dict":
                users.block(model).mixer_norm.options["by"] = 1.0 + step
            elif change == "constant":
                model.embed.positions.table.value[...] *= 0.5
            else:
                loss.k = 1.0 + step
            expected = users.plain_step(model, *batch, loss=loss)
            users.assert_same_step(team.step(model.check(*batch, loss=loss)), expected)


def test_layers_that_say_themselves_what_their_children_are(batch):
    class Holder(nf.Layer):
        def __init__(self):
            self.table = {"a": users.linear()}

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

    model = users.make()
    holder = Holder()
    users.block(model).mixer_norm = holder
    model.loss_and_gradients(*batch)
    holder.table["b"] = users.linear()
    _, gradients = model.loss_and_gradients(*batch)
    assert "encoder.blocks.0.mixer_norm.b.weight" in gradients


def test_a_layer_replaced_in_the_middle_of_a_training_is_told(batch):
    model = users.make()

    def replace(state):
        state.model.classify = users.linear(8, 3)

    with pytest.raises(ValueError, match=r"no longer the optimizer's: .* a layer was replaced"):
        nf.fit(model, batch, epochs=3, progress=False, callbacks=[replace])
