"""A training of a few steps, and its weights."""

import numpy as np

import npformer as nf

EPOCHS, STEPS, BATCH = 3, 4, 5


def calling(hook, action):
    """Return a callback that does something with the state, at one hook."""
    return type("Calling", (nf.Callback,), {hook: lambda self, state: action(state)})()


def fit(model, data, *callbacks, **changes):
    """Train on the 20 samples of `data`: 4 steps an epoch, if nothing is changed."""
    defaults = {"epochs": EPOCHS, "batch_size": BATCH, "progress": False}
    if "optimizer" not in changes:
        defaults["lr"] = 1e-2
    return nf.fit(model, data, callbacks=callbacks, **(defaults | changes))


def assert_same_weights(model, other):
    for name, value in other.parameters().items():
        np.testing.assert_array_equal(model.parameters()[name], value, err_msg=name)


def assert_trained(model, fresh, data, epochs, **changes):
    """Check that a model has the weights that so many epochs give a fresh one."""
    fit(fresh, data, epochs=epochs, **changes)
    assert_same_weights(model, fresh)
