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
    "npformer.sklearn",
    "numpy.random",
    "safetensors",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "torch",
    "tqdm",
)

OF_FEW = ("npformer.interop", "npformer.proof", "npformer.tasks.reports")
"""Floors that `import npformer` leaves for later. Commands import what they need."""


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
    assert "numpy" in imported
    assert package not in imported


def test_floors_that_few_programs_use_come_when_they_are_asked_for():
    assert not modules_after("import npformer") & set(OF_FEW)
    names = "nf.interop, nf.from_pretrained, nf.gradcheck, nf.GradcheckError, nf.report"
    assert modules_after(f"import npformer as nf; {names}") >= set(OF_FEW)
    assert modules_after("from npformer import *; gradcheck, interop, report") >= set(OF_FEW)


def test_dir_has_every_public_name_and_others_are_refused():
    assert set(nf.__all__) <= set(dir(nf))
    with pytest.raises(AttributeError, match="no attribute 'gradchek'"):
        _ = nf.gradchek
