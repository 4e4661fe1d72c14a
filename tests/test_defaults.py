"""Defaults that users rely on: each stands in a table, and the numbers among them are seen to act.

If a default was changed on purpose, or an option added, the test's message is the change to make in
`tests/defaults.txt`, and users should read of it in the changelog.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import initializers
from npformer.layers import LayerNorm, Positions
from npformer.tasks import wide
from npformer.tasks.sources.recipes import RECIPES
from tests.training.common import calling

TABLE = Path(__file__).with_name("defaults.txt")

MODULES = {"npformer": nf, "functional": F, "layers": nf.layers, "mixers": nf.mixers}
MODULES |= {"losses": nf.losses, "optim": nf.optim, "models": nf.models, "published": nf.published}
MODULES |= {"data": nf.data, "interop": nf.interop, "initializers": initializers}
MODULES["tasks.wide"] = wide
"""Where users find functions and classes. One that is in several is listed in the first."""


def written(value: Any) -> str:
    """Return a default as it stands in the table."""
    if type(value) is object:
        return "(not given)"
    return value.__name__ if inspect.isfunction(value) else repr(value)


def line(name: str, defaults: Mapping[str, Any]) -> str:
    return f"{name}: {', '.join(f'{key}={written(value)}' for key, value in defaults.items())}"


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the default of each public argument that has one."""
    try:
        arguments = inspect.signature(function).parameters
    except ValueError:  # an exception without an __init__ of its own
        return {}
    stated = {name: a.default for name, a in arguments.items() if a.default is not a.empty}
    return {name: default for name, default in stated.items() if not name.startswith("_")}


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield what users find in a module, and the methods of classes."""
    place = module.__name__
    defined = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == place]
    names = getattr(module, "__all__", [name for name in defined if name[0] != "_"])
    for name in sorted(names):
        value = getattr(module, name)
        if not callable(value) or not getattr(value, "__module__", "").startswith("npformer"):
            continue
        yield name, value
        for method in vars(value) if inspect.isclass(value) else ():
            if method == "__call__" or not method.startswith("_"):
                function = inspect.getattr_static(value, method)
                function = getattr(function, "__func__", function)  # of a classmethod
                if inspect.isfunction(function):
                    yield f"{name}.{method}", function


def all_defaults() -> list[str]:
    lines = []
    ids = set()
    for place, module in MODULES.items():
        for name, function in public(module):
            if id(function) not in ids and (defaults := defaults_of(function)):
                lines.append(line(f"{place}.{name}", defaults))
            ids.add(id(function))
    for recipe in RECIPES.values():
        lines.append(line(f"train {recipe.name}", {**recipe.config, **recipe.training}))
    return lines


def test_every_public_default_is_the_one_in_the_table():
    table = TABLE.read_text("utf-8").splitlines()
    changes = difflib.unified_diff(table, all_defaults(), "tests/defaults.txt", "npformer", n=0)
    assert "\n".join(changes) == ""


@pytest.mark.parametrize("fast", [True, False])
def test_fit_takes_ten_epochs_of_batches_of_32_with_adams_learning_rate(fast, small_model, rng):
    x = rng.integers(0, 7, (65, 6))
    y = rng.integers(0, 3, 65)
    steps = []

    def note(state):
        steps.append((state.rows, state.model.parameters().flat.copy()))

    with nf.use_kernels(fast):
        model = small_model()
        before = model.parameters().flat.copy()
        history = nf.fit(model, (x, y), progress=False, callbacks=[calling("after_step", note)])
    assert len(history.train_loss) == 10
    assert history.lr == [1e-3] * 10
    assert [len(rows) for rows, _ in steps] == [32, 32, 1] * 10
    moved = np.abs(steps[0][1] - before)
    assert moved.max() == pytest.approx(1e-3, rel=1e-4)  # Adam's first step is lr sign(g)


def test_adams_moments_decay_with_the_defaults_of_the_paper():
    theta = {"w": np.zeros(1)}
    gradients = [1.0, -0.5, 0.25]
    optimizer = nf.Adam(theta)
    m = 0.0
    v = 0.0
    expected = 0.0
    for t, g in enumerate(gradients, 1):
        optimizer.step({"w": np.full(1, g)})
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        expected -= 1e-3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert theta["w"][0] == pytest.approx(expected, rel=1e-9)


NARROW = np.array([[-1e-3, 1e-3], [-1e-2, 1e-2]])
"""Rows whose variance, 1e-6 and 1e-4, is about as small as the epsilon of a layer norm."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layer_norm_adds_1e_5_to_the_variance(either, dtype):
    expected = NARROW / np.sqrt(np.array([[1e-6], [1e-4]]) + 1e-5)
    x = NARROW.astype(dtype)
    one = np.ones(2, dtype)
    zero = np.zeros(2, dtype)
    np.testing.assert_allclose(F.layer_norm(x, one, zero)[0], expected, rtol=1e-5)
    np.testing.assert_allclose(either(LayerNorm(2, dtype=dtype))(x), expected, rtol=1e-5)


@pytest.mark.parametrize(("changes", "eps"), [({}, 1e-5), ({"norm_eps": 1e-3}, 1e-3)])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_norm_of_a_model_has_the_configurations_epsilon(small_model, norm, changes, eps):
    model = small_model(norm=norm, embedding_norm=True, **changes)
    epsilons = [layer.eps for _, layer in model.layers() if isinstance(layer, LayerNorm)]
    assert epsilons == [eps] * 5  # pre-norm: one at the end more, and the first is the embeddings'


def test_learned_positions_are_drawn_with_a_standard_deviation_of_a_fiftieth():
    table = Positions(128, 64, "learned", seed=0).table.value
    assert table.std() == pytest.approx(0.02, rel=0.02)
