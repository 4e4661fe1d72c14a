"""What the plugin registers is there for the tests of this folder, and for no others."""

import pytest

from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS
from npformer.losses import LOSSES
from npformer.mixers import MIXERS
from npformer.optim import SCHEDULES

TABLES = [ACTIVATIONS, FFNS, POOLINGS, MIXERS, INITIALIZERS, SCHEDULES, LOSSES]


def _taken_out(before):
    """Return what was registered since, table by table, and forget it."""
    pairs = zip(TABLES, before, strict=True)
    added = [{n: b for n, b in table.items() if n not in old} for table, old in pairs]
    for table, old in zip(TABLES, before, strict=True):
        table.clear()
        table.update(old)
    return added


_before = [dict(table) for table in TABLES]
from tests.extending import plugin  # noqa: E402, F401  once, here: other files are collected without

_plugin = _taken_out(_before)


@pytest.fixture
def empty():
    """No plugin; whatever a test registers is gone after it."""
    before = [dict(table) for table in TABLES]
    yield
    _taken_out(before)


@pytest.fixture
def registered(empty):
    """The plugin."""
    for table, added in zip(TABLES, _plugin, strict=True):
        table.update(added)
