"""Errors about arguments name no class that the caller did not write."""

from inspect import getattr_static, isclass, isfunction

import numpy as np
import pytest

import npformer as nf

MODULES = (nf, nf.layers, nf.mixers, nf.optim, nf.losses)
PUBLIC = {
    value.__name__: value
    for module in MODULES
    for value in vars(module).values()
    if isclass(value) and value.__module__.startswith("npformer.")
}


def classes_named_by_methods(public_class):
    """Yield the class, if any, that Python names in an error about a method's arguments."""
    for name in dir(public_class):
        attribute = getattr_static(public_class, name)
        method = getattr(attribute, "__func__", attribute)
        is_public = not name.startswith("_") or name in ("__call__", "__init__")
        if is_public and isfunction(method) and method.__module__.startswith("npformer."):
            yield method, method.__qualname__.rpartition(".")[0]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_method_names_no_class_that_its_caller_did_not_write(name):
    others = {
        method.__qualname__
        for method, class_name in classes_named_by_methods(PUBLIC[name])
        if class_name not in ("", name) and not hasattr(method, "__wrapped__")
    }
    assert others == set()


@pytest.fixture
def model():
    sizes = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=8)
    return nf.SequenceClassifier(sizes, n_classes=3, vocab_size=11, seed=0)


IDS = np.arange(6).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(lambda model: model.forward(IDS), "forward() missing", id="forward"),
        pytest.param(lambda model: model.predict(), "predict() missing", id="predict"),
        pytest.param(
            lambda model: model(IDS, 1, 2, 3), "SequenceClassifier.__call__: too many", id="call"
        ),
        pytest.param(
            lambda model: nf.TextClassifier().fit(["a"]), "fit() missing", id="an estimator"
        ),
        pytest.param(
            lambda model: nf.layers.TokenDropout(), "TokenDropout: missing", id="an inherited init"
        ),
        pytest.param(
            lambda model: nf.mixers.Fourier.build(), "build() missing", id="a class method"
        ),
    ],
)
def test_a_wrong_call_begins_with_what_was_called(model, call, expected):
    with pytest.raises(TypeError) as caught:
        call(model)
    assert str(caught.value).startswith(expected)
