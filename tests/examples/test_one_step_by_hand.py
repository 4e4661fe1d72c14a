"""The step by hand is the model's step, bit for bit."""

import ast
import inspect

import numpy as np
import pytest

import npformer as nf
from tests.examples.conftest import EXAMPLES, example

by_hand = example("one_step_by_hand")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (3, 4)])
def test_gradients_are_those_of_the_model_bit_for_bit(n_layers, n_heads, dtype):
    config = nf.EncoderConfig(
        d_model=12, n_layers=n_layers, n_heads=n_heads, d_ff=20, max_len=8, positions="learned"
    )
    model = nf.SequenceClassifier(config, n_classes=10, n_features=8, seed=1, dtype=dtype)
    x, y = (a[:7] for a in nf.data.digits(dtype=dtype).train)
    p = by_hand.by_layer(model.parameters())
    loss, gradients_by_hand = by_hand.loss_and_gradients_by_hand(p, x, y, n_layers, n_heads)
    with nf.use_kernels(False):
        loss_of_model, gradients = model.loss_and_gradients(x, y)
    assert float(loss) == loss_of_model
    expected = by_hand.by_layer(gradients)
    assert set(gradients_by_hand) == set(expected)
    for name in expected:
        for mine, theirs in zip(gradients_by_hand[name], expected[name], strict=True):
            assert mine.dtype == dtype
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


def test_adam_by_hand_is_adam_up_to_the_order_of_its_products():
    model, x, y = by_hand.build()
    weights = by_hand.by_layer(model.parameters())
    p = {name: [a.copy() for a in arrays] for name, arrays in weights.items()}
    m = {name: [np.zeros_like(a) for a in arrays] for name, arrays in p.items()}
    v = {name: [np.zeros_like(a) for a in arrays] for name, arrays in p.items()}
    optimizer = nf.Adam(model.parameters())
    for t in range(1, 6):
        _, gradients = model.loss_and_gradients(x, y)
        optimizer.step(gradients)
        by_hand.adam_by_hand(p, by_hand.by_layer(gradients), m, v, t)
    # a few units in the last place of the steps, 1e-3, and of the weights
    assert by_hand.difference(p, by_hand.by_layer(model.parameters())) < 1e-15


def test_the_step_is_about_60_lines():
    step = [by_hand.loss_and_gradients_by_hand, by_hand.adam_by_hand]
    assert sum(len(inspect.getsource(function).splitlines()) for function in step) <= 62


@pytest.fixture
def called():
    """Return the names of the functions that it calls."""
    calls = ast.walk(ast.parse(inspect.getsource(by_hand.loss_and_gradients_by_hand)))
    return {ast.unparse(node.func) for node in calls if isinstance(node, ast.Call)}


def test_it_calls_each_pair_forward_with_backward(called):
    pairs = {name.removeprefix("F.") for name in called if name.startswith("F.")}
    assert pairs <= set(nf.functional.__all__)
    assert {name for name in pairs if f"{name}_backward" in nf.functional.__all__} == {
        name.removesuffix("_backward") for name in pairs if name.endswith("_backward")
    }


def test_it_calls_no_layer(called):
    assert not {name for name in called if name.startswith("nf.")}


def test_it_says_that_nothing_differs(capsys):
    path = EXAMPLES / "one_step_by_hand.py"
    exec(compile(path.read_text("utf-8"), str(path), "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert "gradients by hand and of the model differ by 0.0\n" in printed
    losses = [float(line.split()[-1]) for line in printed.splitlines() if "all by hand" in line]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1.2
