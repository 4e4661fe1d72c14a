"""A training that is killed and goes on: ``killed.py FOLDER``. Each rank leaves its process id."""

import os
import sys
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.training.distributed import world
from tests.training.distributed.train import model_of, samples

EPOCHS = 12


def main(folder):
    """Train, going on from the checkpoint if there is one; write the weights at the end."""
    ranks = world()
    (folder / f"rank-{ranks.rank}.pid").write_text(str(os.getpid()))
    model = model_of("attention")
    nf.fit(
        model,
        samples(),
        validation=samples(31, seed=1),
        epochs=EPOCHS,
        batch_size=16,
        lr=3e-3,
        seed=3,
        checkpoint=folder / "checkpoint",
        resume=True,
        communicator=ranks,
        progress=False,
    )
    bits = ranks.gather(b"".join(np.array(p).tobytes() for p in model.parameters().values()))
    assert len(set(bits)) == 1
    if ranks.rank == 0:
        (folder / "weights").write_bytes(bits[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
