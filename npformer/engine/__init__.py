"""The engine: what runs a model fast, below a single seam, `fast`.

What people read is plain; what runs is the same tree of layers with other forward and backward
passes. Kernels, in `cpu` and `gpu`, compute pairs of `npformer.functional` once more, each for one
kind of array. Workspaces lend memory, workers share a batch, copies of the process share the cores.
"""

from npformer.engine import layers, mixers, models  # their classes, into the table of twins
from npformer.engine.context import EngineContext
from npformer.engine.switch import enabled, use_kernels
from npformer.engine.twins import fast, has_twin
from npformer.engine.workspace import Workspace

__all__ = [
    "EngineContext",
    "Workspace",
    "enabled",
    "fast",
    "has_twin",
    "layers",
    "mixers",
    "models",
    "use_kernels",
]
