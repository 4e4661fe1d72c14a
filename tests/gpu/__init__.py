"""Tests for a machine with a GPU; elsewhere they are skipped, with the reason."""

from __future__ import annotations

import warnings

import pytest

from npformer.backend import BackendUnavailableError, get_backend


def require_gpu() -> None:
    """Skip the module that calls this where there is no GPU, and say what is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what CuPy says of an installation at its import
            get_backend("cupy")
    except BackendUnavailableError as error:
        pytest.skip(str(error), allow_module_level=True)
