"""npformer gradcheck FILE.py: what somebody's own file defines is built, tried and judged."""

import sys
import textwrap

import pytest

from npformer.layers import ACTIVATIONS, FFNS
from tests.cli.conftest import run

RIGHT = """
import numpy as np


class Linear:
    def __init__(self, in_features, out_features):
        rng = np.random.default_rng(0)
        self.W = rng.normal(size=(in_features, out_features))
        self.b = np.zeros(out_features)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        rows = self.x.reshape(-1, self.x.shape[-1])
        drows = dout.reshape(-1, dout.shape[-1])
        self.dW = rows.T @ drows
        self.db = drows.sum(0)
        return dout @ self.W.T


def relu_forward(x):
    return np.maximum(x, 0.0), x


def relu_backward(dout, cache):
    return dout * (cache > 0.0)


def cross_entropy_loss(logits, y):
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    n = len(y)
    loss = -np.log(p[np.arange(n), y]).mean()
    p[np.arange(n), y] -= 1.0
    return loss, p / n


class TokenModel:
    def __init__(self, vocab_size, n_embd):
        self.table = np.random.default_rng(1).normal(size=(vocab_size, n_embd))

    def forward(self, ids):
        self.ids = ids
        return self.table[ids]

    def backward(self, dout):
        self.dtable = np.zeros_like(self.table)
        np.add.at(self.dtable, self.ids, dout)


def helper(x):
    return x + 1
"""


@pytest.fixture
def checks(tmp_path, capsys, monkeypatch):
    """Return a function that writes a file, checks it, and returns (status, output, errors)."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # the file's folder is added to it

    def check(text, *options):
        path = tmp_path / "layers_by_hand.py"
        path.write_text(textwrap.dedent(text))
        status = run("gradcheck", path, *options)
        output = capsys.readouterr()
        return status, output.out, output.err

    return check


def test_what_is_right_is_said_so(checks):
    status, out, err = checks(RIGHT)
    assert (status, err) == (0, "")
    assert "4 checked: 4 right, 0 wrong" in out


@pytest.mark.parametrize(
    "line",
    [
        "  Linear(in_features=6, out_features=3)\n    right   x (2, 5, 6)\n    right   x (4, 6)",
        "  relu_forward\n    right   x (2, 5, 6)",
        "  cross_entropy_loss\n    right   logits (4, 6), y (4,) of ids",
        "  TokenModel(vocab_size=11, n_embd=6)\n    right   ids (2, 5)",
    ],
)
def test_each_definition_is_tried_in_its_way(checks, line):
    assert line in checks(RIGHT)[1]


def test_a_helper_without_a_derivative_is_not_tried(checks):
    assert "\n  helper" not in checks(RIGHT)[1]


def test_a_wrong_gradient_is_named(checks):
    status, out, _ = checks(RIGHT.replace("rows.T @ drows", "rows.T @ drows / len(dout)"))
    assert status == 1
    assert "W: backward is 1/2 of the derivative; 2 is the batch size" in out
    assert "4 checked: 3 right, 1 wrong" in out


def test_a_layer_of_the_same_name_as_one_of_npformer_is_the_one_that_is_checked(checks):
    status, out, _ = checks(
        """
        class LayerNorm:
            def __init__(self, dim):
                self.dim = dim

            def forward(self, x):
                return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)

            def backward(self, dy):
                return dy
        """
    )
    assert status == 1
    assert "LayerNorm(dim=6)" in out
    assert "WRONG" in out


def test_an_argument_that_cannot_be_told_gets_the_line_to_write(checks):
    status, out, _ = checks(RIGHT + UNKNOWN)
    assert status == 3
    assert "not tried: its argument blorb cannot be told from its name" in out
    assert "in Python: nf.gradcheck(Odd(blorb=...), x)" in out
    assert "4 checked: 4 right, 0 wrong; 1 could not be tried" in out


UNKNOWN = "\n\nclass Odd(Linear):\n    def __init__(self, blorb):\n        pass\n"


def test_what_could_not_be_tried_may_be_allowed(checks):
    assert checks(RIGHT + UNKNOWN, "--allow-untried")[0] == 0


def test_an_error_fails_although_something_untried_is_allowed(checks):
    wrong = RIGHT.replace("rows.T @ drows", "2.0 * rows.T @ drows") + UNKNOWN
    assert checks(wrong, "--allow-untried")[0] == 1


def test_the_exit_statuses_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        run("gradcheck", "--help")
    assert "  3  nothing is wrong, but something could not be tried" in capsys.readouterr().out


def test_a_file_of_which_nothing_could_be_tried_fails(checks):
    status, _, err = checks(
        """
        class Odd:
            def __init__(self, blorb): pass
            def forward(self, x): return x
            def backward(self, dy): return dy
        """
    )
    assert status == 2
    assert "nothing could be tried of the 1 definition" in err


def test_a_file_without_layers_is_told_what_is_looked_for(checks):
    status, _, err = checks("x = 3\n")
    assert status == 2
    assert "there is nothing to check; expected a class with forward and backward" in err


def test_an_optimizer_is_compared_with_its_formula(checks):
    status, out, _ = checks(
        """
        class SGD:
            def __init__(self, lr=0.1):
                self.lr = lr

            def update(self, params, grads):
                for name in params:
                    params[name] -= self.lr * self.lr * grads[name]
        """
    )
    assert status == 1
    assert "SGD: each step against its formula" in out


REGISTERED = """
import npformer as nf


@nf.layers.ACTIVATIONS.register("twice_of_a_test")
class Twice(nf.Layer):
    def forward(self, x, context):
        return 2.0 * x, None

    def backward(self, dy, cache, gradients):
        return 2.0 * dy
"""


def test_what_a_file_registers_is_checked_by_its_name(checks):
    status, out, _ = checks(REGISTERED)
    del ACTIVATIONS["twice_of_a_test"]
    assert status == 0
    assert "activation twice_of_a_test: registered" in out


def test_a_layer_written_for_npformer_is_built_in_float64(checks):
    _, out, _ = checks(REGISTERED)
    del ACTIVATIONS["twice_of_a_test"]
    assert "  Twice()\n    right   x (2, 5, 6)" in out


BATCH_NORM = """
class BatchNorm:
    def __init__(self, dim):
        self.gamma = np.ones(dim)

    def forward(self, x):
        self.std = x.std(axis=0)
        self.z = (x - x.mean(axis=0)) / self.std
        return self.gamma * self.z

    def backward(self, dy):
        self.dgamma = (dy * self.z).sum(axis=0)
        dz = dy * self.gamma
        return (dz - dz.mean(axis=0) - self.z * (dz * self.z).mean(axis=0)) / self.std
"""


def test_a_shape_that_a_right_layer_is_not_for_is_no_error(checks):
    status, out, _ = checks("import numpy as np\n" + BATCH_NORM)
    assert status == 0
    assert "right   x (4, 6)" in out
    assert "not for x (2, 5, 6): there the gradient of gamma has shape (5, 6), not (6,)" in out


def test_what_was_not_compared_is_noted(checks):
    _, out, _ = checks(RIGHT.replace("return dout @ self.W.T", "dout @ self.W.T"))
    assert "note: x got no gradient and was taken for a constant" in out


def test_pages_are_written_for_what_is_wrong(checks, tmp_path):
    wrong = RIGHT.replace("rows.T @ drows", "rows.T @ drows / len(dout)")
    checks(wrong, "--report", tmp_path / "pages")
    names = {file.name for file in (tmp_path / "pages").iterdir()}
    assert "index.html" in names
    assert len(names) == 3  # Linear at two shapes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no_such_file.py"], "no_such_file.py: there is no such Python file"),
        (["relu", "mine.py"], "got relu beside mine.py; expected files alone"),
        (["no.such.module"], "no.such.module: there is no module no"),
    ],
)
def test_a_mistake_is_explained(capsys, words, message):
    assert run("gradcheck", *words) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_raises_says_where(checks):
    status, _, err = checks("x = 1 / 0\n")
    assert status == 2
    assert "ZeroDivisionError: division by zero" in err
    assert "line 1" in err


REGISTERED_NETWORK = """
import npformer as nf


@nf.layers.FFNS.register("line_of_a_test")
class Line(nf.Layer):
    def __init__(self, d_model, d_ff, activation, *, seed, dtype, initializer):
        self.line = nf.layers.Linear(d_model, d_model, seed=seed, dtype=dtype)

    def forward(self, x, context):
        return self.line.forward(x, context)

    def backward(self, dy, cache, gradients):
        return self.line.backward(dy, cache, gradients)
"""


@pytest.fixture
def registered_network():
    yield REGISTERED_NETWORK
    del FFNS["line_of_a_test"]


def test_a_class_whose_name_is_tried_need_not_be_built_by_itself(checks, registered_network):
    status, out, _ = checks(registered_network)
    assert status == 0
    assert "feed-forward network line_of_a_test: registered" in out
    assert "not tried" not in out
