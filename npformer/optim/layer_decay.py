"""Learning rates by layer: the nearer to the input, the lower."""

import re
from collections.abc import Iterable

BLOCK = re.compile(r"\bblocks\.(\d+)\.")
"""The number of a block in the name of a parameter, counted from the input."""

TABLES = re.compile(r"(\w*embed|source|target)\b")
"""The beginning of a parameter's name that is below the first block."""


def layer_factors(names: Iterable[str], decay: float) -> dict[str, float]:
    """Return what the learning rate of each parameter is multiplied by: decay^k.

    k is how many layers lie between a parameter and what is above the last block: 0 for a head or
    a final norm, 1 for the last block, and n + 1 for the embeddings below n blocks.
    """
    depths: dict[str, int | None] = {}
    for name in names:
        block = BLOCK.search(name)
        if block:
            depths[name] = 1 + int(block[1])
        elif TABLES.match(name):
            depths[name] = 0
        else:
            depths[name] = None
    top = 1 + max((depth for depth in depths.values() if depth is not None), default=0)
    return {name: decay ** (0 if depth is None else top - depth) for name, depth in depths.items()}
