"""Wrong files: weights that are a program, tests that test nothing, imports that guess."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npformer.core import Layer
from npformer.museum.bug import Source


def save_by_pickle(model: Layer, path: Path, notes: Mapping[str, Any] | None = None) -> None:
    """Whole models are pickled.

    Notes
    -----
    Who: Someone for whom saving is one line: pickle.dump(model, file).

    Why: A pickle names classes and their modules: arrays of CuPy need CuPy, a renamed class needs
    its old name, and opening a stranger's file runs the stranger's code.

    Cost: Weights from a GPU do not open on a CPU.

    Caught: By what the file begins with: `weights_open_without_running_code`.
    """
    path.write_bytes(pickle.dumps(model))


class GradientTestWithAWideTolerance(Source):
    """A gradient is compared with differences, with a tolerance of 0.2.

    Notes
    -----
    Who: Someone in whose float32 differences noise and error look alike.

    Why: Differences in float64 agree to about 1e-9. What is wrong by less than a fifth passes.

    Cost: Any gradient may be a fifth too large or too small.

    Caught: By whoever reads the tests: `gradients_are_checked_in_earnest`.
    """

    path = "tests/functional/test_new.py"
    text = "def test_the_gradient(x, W):\n    gradcheck(F.linear, x, W, tolerance=0.2)\n"
    mended = "def test_the_gradient(x, W):\n    gradcheck(F.linear, x, W)\n"


class GradientTestThatIsSkipped(Source):
    """The test of a gradient is skipped.

    Notes
    -----
    Who: Someone under pressure, whose test used unseeded numbers and met a corner.

    Why: A test that does not run proves nothing, and looks like one that does.

    Cost: Whatever it would have found.

    Caught: By whoever reads the tests: `gradients_are_checked_in_earnest`.
    """

    path = "tests/functional/test_new.py"
    text = (
        '@pytest.mark.skip(reason="fails now and then")\n'
        "def test_the_gradient(x, W):\n    gradcheck(F.linear, x, W)\n"
    )
    mended = "def test_the_gradient(x, W):\n    gradcheck(F.linear, x, W)\n"


class BareExcept(Source):
    """`except:` around the import of CuPy.

    Notes
    -----
    Who: Someone who wants one line that works everywhere.

    Why: It hides every error: a CuPy for the wrong CUDA falls back to the CPU in silence, and
    Control-C during the import does too.

    Cost: A run on the GPU that is a run on the CPU.

    Caught: By whoever reads the source: `no_bare_except`; and by the rule that only one file
    imports CuPy: `cupy_is_imported_in_one_place`.
    """

    path = "npformer/functional/new.py"
    text = "try:\n    import cupy as np\nexcept:\n    import numpy as np\n"
    mended = "from npformer.core import array_module\n"


class CupyInEveryFile(Source):
    """Every file decides for itself whether it runs on the GPU.

    Notes
    -----
    Who: Someone who replaces np by cupy file by file.

    Why: The library is chosen when a file is imported, so one process cannot hold a model of each;
    the array alone should decide.

    Cost: No model on the CPU beside one on the GPU, so no test that compares them.

    Caught: By whoever reads the source: `cupy_is_imported_in_one_place`.
    """

    path = "npformer/functional/new.py"
    text = "try:\n    import cupy as np\nexcept ImportError:\n    import numpy as np\n"
    mended = "from npformer.core import array_module\n"
