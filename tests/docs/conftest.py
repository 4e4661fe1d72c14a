"""What a page registers is taken out after it; the site, built once for all that read it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models.losses import LOSSES
from npformer.optim import SCHEDULES
from tests.needs import NEEDS

ROOT = Path(__file__).resolve().parents[2]
TABLES = [ACTIVATIONS, FFNS, NORMS, POOLINGS, MIXERS, INITIALIZERS, SCHEDULES, LOSSES]


@pytest.fixture(autouse=True)
def tables_as_before():
    """Put every table back."""
    before = [dict(table) for table in TABLES]
    yield
    for table, old in zip(TABLES, before, strict=True):
        table.clear()
        table.update(old)


@pytest.fixture(scope="session")
def whole_site(tmp_path_factory):
    """Build the site without outputs of examples, once for all processes that run tests."""
    pytest.importorskip("sphinx_gallery", reason=NEEDS["sphinx_gallery"])
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-D", "plot_gallery=0", "docs", str(out)]
    with FileLock(out.with_suffix(".lock")):
        if not (out / "search.html").exists():
            subprocess.run(build, cwd=ROOT, check=True, timeout=900)
    return out
