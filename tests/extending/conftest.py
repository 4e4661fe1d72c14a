"""The plugin's names are registered for tests of this folder only, and only when they ask."""

import pytest

from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models.losses import LOSSES
from npformer.optim import SCHEDULES
from tests.cli.conftest import fails, no_curves  # noqa: F401  fixtures of the command line

TABLES = [ACTIVATIONS, FFNS, NORMS, POOLINGS, MIXERS, INITIALIZERS, SCHEDULES, LOSSES]


def _take_out(before):
    """Remove what was registered since, and return it, table by table."""
    added = []
    for table, old in zip(TABLES, before, strict=True):
        added.append({name: builder for name, builder in table.items() if name not in old})
        table.clear()
        table.update(old)
    return added


_before = [dict(table) for table in TABLES]
from tests.extending import plugin  # noqa: E402, F401  before other files are collected

_plugin = _take_out(_before)


@pytest.fixture
def empty():
    """Start without the plugin; what a test registers is removed after it."""
    before = [dict(table) for table in TABLES]
    yield
    _take_out(before)


@pytest.fixture
def registered(empty):
    for table, added in zip(TABLES, _plugin, strict=True):
        table.update(added)
