"""Tests for a machine with a GPU; elsewhere they are skipped, with the reason."""

import warnings
from typing import Any

import numpy as np
import pytest

from npformer.core import BackendUnavailableError, get_backend
from tests.needs import NEEDS


def require_gpu() -> None:
    """Skip the module that calls this where there is no GPU, and say what is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CuPy's, about an incomplete installation
            get_backend("cupy")
    except BackendUnavailableError as error:
        pytest.skip(str(error), allow_module_level=True)


SPIN = """
extern "C" __global__ void spin(long long cycles) {
    const long long began = clock64();
    while (clock64() - began < cycles) {}
}
"""
CYCLES = 2_000_000_000
"""About a second; a step of a tiny model is launched in some hundredths of one."""


def hold_up() -> Any:
    """Keep the current stream busy for a second, and return it without waiting."""
    cupy = pytest.importorskip("cupy", reason=NEEDS["cupy"])
    spin = cupy.RawKernel(SPIN, "spin")
    spin((1,), (1,), (np.int64(0),))  # loads it
    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    spin((1,), (1,), (np.int64(CYCLES),))
    return stream
