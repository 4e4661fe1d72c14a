import pytest


@pytest.fixture
def ids(rng):
    return rng.integers(0, 7, (2, 5))
