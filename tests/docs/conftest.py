"""What a page registers is taken out after it: no other page or test finds it."""

import pytest

from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models.losses import LOSSES
from npformer.optim import SCHEDULES

TABLES = [ACTIVATIONS, FFNS, NORMS, POOLINGS, MIXERS, INITIALIZERS, SCHEDULES, LOSSES]


@pytest.fixture(autouse=True)
def tables_as_before():
    """Put every table back."""
    before = [dict(table) for table in TABLES]
    yield
    for table, old in zip(TABLES, before, strict=True):
        table.clear()
        table.update(old)
