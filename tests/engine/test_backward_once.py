"""Caches that a training step drops as its backward pass goes on, to use their memory again."""

import numpy as np
import pytest

import npformer as nf
from npformer.core import Context, Gradients
from npformer.engine.context import EngineContext
from npformer.engine.one_use import OneUse
from npformer.engine.snapshot import snapshot_of
from tests.engine import users

X = np.random.default_rng(0).normal(size=(2, 6, 8))
IDS = np.random.default_rng(0).integers(7, size=(4, 6))
LABELS = np.array([0, 1, 2, 0])


class TwoBackwardPasses(nf.Layer):
    """A user's layer that runs the backward pass of a block twice with one cache."""

    def __init__(self, block):
        self.block = block

    def forward(self, x, context):
        return self.block.forward(x, context)

    def backward(self, dy, cache, gradients):
        half = self.block.backward(0.5 * dy, cache, gradients)
        return half + self.block.backward(0.5 * dy, cache, gradients)


@pytest.fixture
def model():
    return users.make()


@pytest.fixture
def encoder(model):
    return nf.fast(model).encoder


def test_a_backward_pass_that_runs_once_drops_all_caches(model, encoder):
    y, cache = encoder.forward(X, EngineContext(backward_once=True))
    block_caches, _, _ = cache
    last_block_caches = block_caches[-1]
    assert type(block_caches) is type(last_block_caches) is OneUse
    encoder.backward(np.ones_like(y), cache, Gradients(model))
    assert not block_caches
    assert not last_block_caches


def test_a_backward_pass_that_runs_once_gives_the_same_gradients(model, encoder):
    gradients = {}
    for once in (False, True):
        y, cache = encoder.forward(X, EngineContext(backward_once=once))
        gradients[once] = Gradients(model)
        encoder.backward(np.ones_like(y), cache, gradients[once])
    np.testing.assert_array_equal(gradients[True].flat, gradients[False].flat)


def test_other_caches_stay_for_a_second_backward_pass(model, encoder):
    y, cache = encoder.forward(X, Context())
    first = encoder.backward(np.ones_like(y), cache, Gradients(model))
    second = encoder.backward(np.ones_like(y), cache, Gradients(model))
    np.testing.assert_array_equal(first, second)


def test_a_model_of_npformers_own_layers_goes_back_once(model):
    assert snapshot_of(model).is_stock


def test_a_users_layer_may_go_back_twice_in_a_step(model):
    model.encoder.blocks[1] = TwoBackwardPasses(model.encoder.blocks[1])
    assert not snapshot_of(model).is_stock
    users.assert_steps_agree(model, IDS, LABELS)
