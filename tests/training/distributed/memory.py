"""The memory of each rank, in a model of 20 M parameters: ``memory.py FOLDER SHARD``, 0 or 1.

    mpiexec -n 4 python -m tests.training.distributed.memory /tmp 1

Each rank writes its peak of resident memory in MiB, and that of the parameters.
"""

import json
import sys
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.training.distributed import world


def peak():
    """Return the most memory that this process has had so far, in MiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [x for x in lines if x.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def main(folder, shard):
    """Take two steps."""
    ranks = world()
    rng = np.random.default_rng(0)
    config = nf.EncoderConfig(d_model=512, n_layers=6, n_heads=8, d_ff=2048, max_len=8)
    model = nf.SequenceClassifier(config, 3, vocab_size=2000, seed=1)
    flat = model.parameters().flat
    data = rng.integers(1, 2000, (16, 8)), rng.integers(0, 3, 16)
    nf.fit(
        model,
        data,
        epochs=1,
        batch_size=8,
        workers=1,
        clip_norm=1.0,
        communicator=ranks,
        shard_moments=shard,
        progress=False,
    )
    megabytes = {"peak": round(peak()), "parameters": round(flat.nbytes / 2**20)}
    (folder / f"{ranks.rank}.json").write_text(json.dumps(megabytes))
    for rank, of_rank in enumerate(ranks.gather(megabytes)):
        if ranks.rank == 0:
            print(f"rank {rank} of {ranks.size}, shard_moments={shard}: {of_rank}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), bool(int(sys.argv[2])))
