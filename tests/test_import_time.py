"""What `import npformer` does not import: it costs more than NumPy, or may not be installed."""

import json
import subprocess
import sys
from functools import cache

import pytest

import npformer as nf

LATER = ["concurrent.futures", "cupy", "matplotlib", "multiprocessing", "npformer.learn.exercises"]
LATER += ["npformer.learn.museum", "npformer.tasks.sklearn", "numpy.random", "safetensors", "scipy"]
LATER += ["sklearn", "threadpoolctl", "torch", "tqdm"]


@cache
def modules_after(code):
    """Return the modules that a fresh process has imported after some code."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert process.stderr == ""
    return set(json.loads(process.stdout))


@pytest.fixture(scope="module", params=["npformer", "npformer.cli"])
def imported(request):
    return modules_after(f"import {request.param}")


@pytest.mark.parametrize("package", LATER)
def test_import_leaves_for_later(imported, package):
    assert "npformer" in imported
    assert package not in imported


def test_a_name_is_imported_when_it_is_used():
    modules = {name for name in modules_after("import npformer") if name.startswith("npformer.")}
    assert modules == {f"npformer.{name}" for name in ("distributed", "losses", "sklearn")}
    assert "npformer.training.fit" in modules_after("import npformer as nf; nf.fit")
    assert "npformer.tasks.reports" in modules_after("from npformer import *; report")


BOOK = {"core", "functional", "layers", "mixers", "models", "optim", "proof"}
"""Rooms that stand by themselves."""

PLAIN_STEP = """
import numpy as np
import npformer as nf
from npformer.models import SequenceModel

config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=4)
model = SequenceModel(config, 3, n_features=2).flatten()
optimizer, loss = nf.Adam(model.parameters(), lr=1e-2), nf.losses.SoftmaxCrossEntropy()
x, y = np.ones((2, 4, 2), "float32"), np.array([0, 2])
values = []
for _ in range(3):
    outputs, cache = model.forward(x, nf.Context(training=True))
    value, loss_cache = loss.forward(outputs, y)
    gradients = nf.Gradients(model)
    model.backward(loss.backward(1.0, loss_cache), cache, gradients)
    optimizer.step(gradients)
    values.append(float(value))
assert values == sorted(values, reverse=True), values
"""


@pytest.mark.parametrize(
    "code",
    [
        "import npformer as nf; nf.Encoder, nf.functional, nf.Adam, nf.SGD",
        "import npformer.optim, npformer.proof.gradcheck, npformer.models, npformer.mixers",
        "import npformer.proof.cases",
        "import numpy as np, npformer as nf; from npformer.proof.gradcheck import gradcheck; "
        "gradcheck(nf.layers.LayerNorm(3, dtype='float64'), np.eye(3)[:2])",
        PLAIN_STEP,
    ],
)
def test_the_book_stands_by_itself(code):
    before = modules_after("import npformer")
    modules = {name for name in modules_after(code) - before if name.startswith("npformer.")}
    rooms = {name.split(".")[1] for name in modules}
    assert rooms >= {"core", "functional", "layers"}
    assert rooms <= BOOK


def test_gradcheck_as_users_call_it_judges_twins():
    assert "npformer.engine" in modules_after("import npformer as nf; nf.gradcheck")


def test_modules_of_public_names_can_be_imported_by_these_names():
    from npformer.losses import SoftmaxCrossEntropy

    assert nf.losses.SoftmaxCrossEntropy is SoftmaxCrossEntropy
    assert nf.distributed is sys.modules["npformer.training.distributed"]
    with pytest.raises(ImportError, match="cannot import name 'SoftmaxEntropy'"):
        from npformer.losses import SoftmaxEntropy  # noqa: F401


def test_every_public_name_is_there():
    for name in nf.__all__:
        assert getattr(nf, name) is not None
    assert set(nf.__all__) <= set(dir(nf))


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'gradchek'"):
        _ = nf.gradchek
