"""What `import npformer` does not import: it costs more than NumPy, or may not be installed."""

import json
import subprocess
import sys

import pytest

LATER = (
    "concurrent.futures",
    "cupy",
    "matplotlib",
    "multiprocessing",
    "npformer.exercises",
    "npformer.museum",
    "npformer.sklearn",
    "numpy.random",
    "safetensors",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "torch",
    "tqdm",
)


@pytest.fixture(scope="module", params=["npformer", "npformer.tools.cli"])
def imported(request):
    code = f"import json, sys, {request.param}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("package", LATER)
def test_import_leaves_for_later(imported, package):
    assert "numpy" in imported
    assert package not in imported
