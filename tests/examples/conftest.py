"""Examples as modules, which nothing runs by being imported; and what is asked of each of them."""

import ast
import importlib.util
from pathlib import Path

import numpy as np

import npformer as nf

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name):
    """Return an example's module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pairs(of_example, of_model, name_in_npformer):
    """Yield the full name in npformer of each array of an example; none may be left over."""
    full_names = set()
    for name, arrays in of_example.items():
        layer = name_in_npformer(name)
        names = [n for n in of_model if n.rpartition(".")[0] == layer]
        for full, array in zip(names, arrays, strict=True):
            full_names.add(full)
            yield full, array
    assert full_names == set(of_model)


def moved(weights, rng, by):
    """Return weights whose norms and biases do something."""
    for arrays in weights.values():
        for array in arrays:
            array += by * rng.normal(size=array.shape)
    return weights


def add_weights(model, weights, name_in_npformer):
    """Return npformer's model with the same weights."""
    parameters = model.parameters()
    for full, array in pairs(weights, parameters, name_in_npformer):
        parameters[full][...] = array
    return model


def assert_agree(loss, gradients, model, batch, name_in_npformer):
    """Check an example's loss and gradients against those of npformer's model."""
    with nf.use_kernels(False):
        loss_of_model, theirs = model.loss_and_gradients(*batch)
    np.testing.assert_allclose(loss, loss_of_model, rtol=1e-12)
    atol = 1e-12 * max(abs(gradient).max() for gradient in theirs.values())
    for full, array in pairs(gradients, theirs, name_in_npformer):
        np.testing.assert_allclose(array, theirs[full], rtol=0, atol=atol, err_msg=full)


def one_percent_off(backward):
    """Return a backward pass whose first gradient is wrong."""

    def wrong(*arguments):
        gradients = backward(*arguments)
        if not isinstance(gradients, tuple):
            return 1.01 * gradients
        first, *later = gradients
        return (1.01 * first, *later)

    return wrong


def assert_check_notices(pair, module, weights, batch, n_heads, monkeypatch):
    """Check that an example checks gradients: right ones pass, and those of a wrong pair do not."""
    assert module.check_gradients(weights, *batch, n_heads) < 1e-8
    name = f"{pair}_backward"
    monkeypatch.setattr(module, name, one_percent_off(getattr(module, name)))
    assert module.check_gradients(weights, *batch, n_heads) > 1e-6


def imported_by(text):
    """Return the modules that a text imports."""
    nodes = list(ast.walk(ast.parse(text)))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return modules | {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
