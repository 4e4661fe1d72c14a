"""What `import npformer` does not import: it costs more than NumPy, or may not be installed."""

import json
import subprocess
import sys

import pytest

import npformer as nf

LATER = (
    "concurrent.futures",
    "cupy",
    "matplotlib",
    "multiprocessing",
    "npformer.learn.exercises",
    "npformer.learn.museum",
    "npformer.tasks.sklearn",
    "numpy.random",
    "safetensors",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "torch",
    "tqdm",
)


def modules_after(code):
    """Return the modules that a fresh process has imported after some code."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module", params=["npformer", "npformer.cli"])
def imported(request):
    return modules_after(f"import {request.param}")


@pytest.mark.parametrize("package", LATER)
def test_import_leaves_for_later(imported, package):
    assert "npformer" in imported
    assert package not in imported


def test_a_name_is_imported_when_it_is_used():
    own = {name for name in modules_after("import npformer") if name.startswith("npformer.")}
    assert own == {f"npformer.{name}" for name in ("distributed", "losses", "sklearn")}
    of_the_book = modules_after("import npformer as nf; nf.Encoder, nf.functional")
    assert "npformer.models.encoder" in of_the_book
    assert "npformer.training" not in of_the_book
    assert "npformer.training.fit" in modules_after("import npformer as nf; nf.fit")
    assert "npformer.tasks.reports" in modules_after("from npformer import *; report")


def test_modules_of_public_names_can_be_imported_by_these_names():
    from npformer.losses import SoftmaxCrossEntropy

    assert nf.losses.SoftmaxCrossEntropy is SoftmaxCrossEntropy
    assert nf.distributed is sys.modules["npformer.training.distributed"]
    with pytest.raises(ImportError, match="cannot import name 'SoftmaxEntropy'"):
        from npformer.losses import SoftmaxEntropy  # noqa: F401


def test_every_public_name_is_there():
    for name in nf.__all__:
        assert getattr(nf, name) is not None


def test_dir_has_every_public_name_and_others_are_refused():
    assert set(nf.__all__) <= set(dir(nf))
    with pytest.raises(AttributeError, match="no attribute 'gradchek'"):
        _ = nf.gradchek
