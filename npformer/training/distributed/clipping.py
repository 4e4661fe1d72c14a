"""Clipping by the global norm of gradients that several ranks have."""

import math

from npformer.core import Gradients, array_module
from npformer.optim.clipping import clipping_factor, is_on_host, largest, norm_together
from npformer.training.distributed.communicator import Communicator


def clip_over_ranks(
    gradients: Gradients, max_norm: float, ranks: Communicator, *, own_shard: bool
) -> None:
    """Do what `clip_by_global_norm` does, for gradients on several ranks.

    Each rank computes the norm of its shard, and the norm of these norms is the global one. It
    has the same bits whether each rank has all gradients or, with `own_shard`, only its shard.
    """
    flat = gradients.flat
    own_slice = ranks.shard(flat.size)
    shard = flat[own_slice]
    norms = array_module(flat).zeros(ranks.size, dtype=flat.dtype)
    norms[ranks.rank] = norm_together([shard])
    ranks.all_reduce(norms)
    norm = norm_together([norms])
    if is_on_host(norm) and not norm < math.inf:
        of_ranks = ranks.gather(largest(gradients.parts_in(own_slice)))
        raise max(of_ranks, key=lambda found: found[0])[1]
    target = shard if own_shard else flat
    target *= clipping_factor(norm, max_norm)
