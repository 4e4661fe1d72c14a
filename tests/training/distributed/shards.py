"""What ranks hold of Adam's moments; a gradient that is not finite: ``shards.py FOLDER``."""

import json
import sys
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.training.distributed import world
from npformer.training.distributed.sharded_adam import ShardedAdam
from tests.training.distributed.train import model_of, samples


class Memory(nf.Callback):
    """Notes how many bytes the moments take."""

    def after_step(self, state):
        pairs = state.optimizer._moments._arrays.values()
        self.bytes = sum(x.nbytes for pair in pairs for x in pair)
        assert state.gradients is None


def main(folder):
    """Train, give the moments back to the optimizer, and spoil the last rank's gradient."""
    ranks, memory, model = world(), Memory(), model_of("attention")
    optimizer = nf.Adam(model.parameters(), lr=3e-3)
    nf.fit(
        model,
        samples(),
        epochs=1,
        optimizer=optimizer,
        communicator=ranks,
        shard_moments=True,
        callbacks=[memory],
        progress=False,
    )
    n_parameters = sum(p.size for p in model.parameters().values())
    found = {"parameters": n_parameters, "moments": memory.bytes}
    found["entries"] = model.parameters().flat.size  # with gaps, so that parameters are aligned
    found["given_back"] = sum(x.nbytes for x in optimizer.state()[1].values())
    assert optimizer.steps == 3
    assert all(np.any(x) for x in optimizer.state()[1].values())
    sharded = ShardedAdam(optimizer, ranks)
    gradients = nf.Gradients(model)
    gradients.flat[...] = 1.0
    if ranks.rank == ranks.size - 1:
        gradients.flat[ranks.shard(gradients.flat.size).start] = np.nan
    before = model.parameters().flat.copy()
    try:
        sharded.step(gradients)
    except nf.NonFiniteGradientError as error:
        found["error"] = str(error)
    found["as_before"] = bool((model.parameters().flat == before).all()) and sharded.steps == 3
    (folder / f"{ranks.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
