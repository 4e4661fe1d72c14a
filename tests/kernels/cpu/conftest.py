"""Constants of the kernels that tests make small, so that small arrays have many chunks."""

import pytest

from npformer.engine.cpu import averaging, fourier, rows, tiles


@pytest.fixture(params=[None, 40, 1000], ids=["whole", "pieces of 40", "pieces of 1000"])
def chunk_size(request, monkeypatch):
    """Set the number of entries in a chunk, and transform short sequences too; None: no change."""
    if request.param is not None:
        monkeypatch.setattr(fourier, "PRODUCTS", 0)
        for module in (rows, fourier):
            monkeypatch.setattr(module, "CHUNK", request.param)
    return request.param


TILINGS = {
    "as it is": {},
    "tiles of 4": {"TILE": 4, "SCORES": 16, "STORED": 512},
    "tiles of 3, blocks": {"TILE": 3, "SCORES": 9, "STORED": 2},
    "some samples at once": {"SCORES": 800},
    "a sample at once": {"SCORES": 350},
    "a head at once": {"SCORES": 1},
}


@pytest.fixture(params=TILINGS.values(), ids=TILINGS.keys())
def tiling(request, monkeypatch):
    """Set the sizes of the tiles into which queries, keys, samples and heads are divided."""
    monkeypatch.setattr(averaging, "tiling_of", tiles.Tiling)  # which keeps none of other sizes
    for name, value in request.param.items():
        monkeypatch.setattr(averaging if name == "STORED" else tiles, name, value)
    return request.param
