"""The engine makes models fast, with kernels for CPU and GPU and with threads: see `fast`.

A plain model computes with the pairs of `npformer.functional`. Its fast version is the same tree of
layers with other forward and backward passes, which call kernels: functions in `cpu` and `gpu` that
compute the same as a pair, for arrays of NumPy or CuPy. A `Workspace` lends memory to kernels and
reuses it. A `Team` shares a batch among threads.
"""

from npformer.core.dispatch import enabled, use_kernels
from npformer.core.support.missing_names import lead_to_names
from npformer.engine import (  # they fill the table
    fast_layers,
    fast_linear,
    fast_mixers,
    fast_models,
)
from npformer.engine import updates as updates  # registers the optimizer's kernels
from npformer.engine.context import EngineContext
from npformer.engine.twins import fast, has_twin
from npformer.engine.workspace import Workspace

__all__ = [
    "EngineContext",
    "Workspace",
    "enabled",
    "fast",
    "fast_layers",
    "fast_linear",
    "fast_mixers",
    "fast_models",
    "has_twin",
    "use_kernels",
]

lead_to_names(__name__)
