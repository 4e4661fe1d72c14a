"""Wrong files: weights that run code, tests that test nothing, imports that guess."""

import pickle
from pathlib import Path

from npformer.core import Layer
from npformer.learn.museum.bug import Source
from npformer.learn.museum.table import plain, source
from npformer.training.storage.models import save

GRADIENT_TEST = "def test_the_gradient(x, W):\n    gradcheck(F.linear, x, W)\n"


@source(13, "gradients_are_checked_in_earnest")
class GradientTestWithAWideTolerance(Source):
    """A gradient test has a tolerance of 0.2.

    Who: Someone who takes differences in float32, whose noise looks like an error.
    Why: In float64 differences agree with a right gradient to about 1e-9. At 0.2, any gradient may
    be a fifth too large or too small.
    Cost: Wrong gradients pass.
    Caught: A check of the tests' source code.
    """

    path = "tests/functional/test_new.py"
    text = GRADIENT_TEST.replace("W)\n", "W, tolerance=0.2)\n")
    right = GRADIENT_TEST


@source(13, "gradients_are_checked_in_earnest")
class GradientTestThatIsSkipped(Source):
    """The test of a gradient is skipped.

    Who: Someone in a hurry, whose test draws numbers without a seed and fails now and then, at a
    point without a derivative.
    Why: A test that does not run proves nothing, but looks like one that does.
    Cost: Whatever the test would have found.
    Caught: A check of the tests' source code.
    """

    path = "tests/functional/test_new.py"
    text = f'@pytest.mark.skip(reason="fails now and then")\n{GRADIENT_TEST}'
    right = GRADIENT_TEST


@source(15, "no_bare_except", "cupy_is_imported_in_one_place")
class BareExcept(Source):
    """CuPy is imported in a `try` with a bare `except:`.

    Who: Someone who wants one import that works everywhere.
    Why: It hides every error: with a CuPy for the wrong version of CUDA the program silently runs
    on the CPU, as it does after Control-C during the import.
    Cost: What seems to run on the GPU runs on the CPU.
    Caught: A check of the source code, and the rule that only one file imports CuPy.
    """

    path = "npformer/functional/new.py"
    text = "try:\n    import cupy as np\nexcept:\n    import numpy as np\n"
    right = "from npformer.core import array_module\n"


@source(15, "cupy_is_imported_in_one_place")
class CupyInEveryFile(Source):
    """Every file decides for itself whether it runs on the GPU.

    Who: Someone who replaces np by cupy file by file.
    Why: The library is chosen when a file is imported, so one process cannot run one model on the
    CPU and another on the GPU. The array itself should decide.
    Cost: No test can compare a model on the CPU with one on the GPU.
    Caught: The rule that only one file imports CuPy.
    """

    path = "npformer/functional/new.py"
    text = "try:\n    import cupy as np\nexcept ImportError:\n    import numpy as np\n"
    right = "from npformer.core import array_module\n"


@plain(15, "weights_open_without_running_code", right=save)
def save_by_pickle(model: Layer, path: Path) -> None:
    """A model is saved as a pickle.

    Who: Someone who wants to save in one line: pickle.dump(model, file).
    Why: A pickle names classes and their modules: CuPy arrays cannot be opened without CuPy, nor a
    class after it was renamed. And opening a stranger's file runs the stranger's code.
    Cost: Weights from a GPU do not open on a CPU.
    Caught: Looking at the first bytes of the file.
    """
    path.write_bytes(pickle.dumps(model))
