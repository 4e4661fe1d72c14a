"""Several processes that train one model together: ranks, in the words of MPI.

    npformer.fit(model, data, communicator=npformer.distributed.world())

Started with ``mpiexec -n 4 python train.py``, each rank computes a part of each batch.
"""

from npformer.core.support.missing_names import lead_to_names
from npformer.training.distributed.communicator import Communicator, RankFailed
from npformer.training.distributed.world import (
    LauncherError,
    communicator_of,
    number_of_launched_ranks,
    world,
)

__all__ = [
    "Communicator",
    "LauncherError",
    "RankFailed",
    "communicator_of",
    "number_of_launched_ranks",
    "world",
]

lead_to_names(__name__)
