"""Train on, and predict for, half a GiB with less memory than that: ``large.py FILE``.

The process, or each rank, may not allocate more than 192 MiB beyond what it had before it opened
the file; that it cannot have all of it in memory is seen first.
"""

import resource
import sys
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.training.distributed import world

MORE = 192 << 20
LENGTH, FEATURES = 16, 1024
N = (512 << 20) // (4 * LENGTH * FEATURES)


def allocated():
    """Return how much private memory this process has, in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [x for x in lines if x.startswith("VmData")]
    return int(line.split()[1]) << 10


def main(file):
    """Take an epoch, and predict."""
    ranks = world()
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=1, d_ff=8, max_len=LENGTH)
    model = nf.SequenceClassifier(config, 2, n_features=FEATURES, seed=1)
    settings = {"epochs": 1, "batch_size": 64, "workers": 1, "progress": False}
    samples = np.zeros((64, LENGTH, FEATURES), "float32"), np.zeros(64, int)
    nf.fit(model, samples, communicator=ranks, **settings)  # libraries allocate, too
    limit = allocated() + MORE
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    x = np.load(file, mmap_mode="r")
    try:
        np.array(x)
    except MemoryError:
        print("too much")
    y = np.arange(N) % 2
    nf.fit(model, (x, y), validation=0.1, communicator=ranks, **settings)
    nf.evaluate(model, (x, y), communicator=ranks)
    predictions = nf.predict_to_file(file.with_name("predicted.npy"), model, x, communicator=ranks)
    assert predictions.shape == (N, 2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
