"""One training by several processes
====================================

On one machine or on many::

    mpiexec -n 2 python several_ranks.py

Each process (a rank, in the words of MPI) computes its part of every batch, and all of them end
with the same weights. Without mpiexec the same file trains in one process.
"""

from contextlib import suppress

import numpy as np

import npformer as nf
from npformer.training.distributed import world

ranks = world()  # those that mpiexec started, or this process alone
digits = nf.data.digits()  # every rank has all the data, and takes its part of each batch from it
config = nf.EncoderConfig(d_model=32, n_layers=1, n_heads=4, d_ff=64, max_len=8, dropout=0.1)
model = nf.SequenceClassifier(config, n_classes=10, n_features=8, pooling="flatten", seed=0)

history = nf.fit(
    model,
    digits.train,
    validation=digits.validation,
    epochs=4,
    lr=3e-3,
    seed=0,
    communicator=ranks,
    progress=False,
)

found = nf.evaluate(model, digits.test, communicator=ranks)
weights = np.concatenate([value.ravel() for value in model.parameters().values()])
bits = ranks.gather(weights.tobytes())
if ranks.rank == 0:  # the others would print the same
    by = " and ".join(f"{steps} by {who}" for who, steps in history.workers.items())
    print(f"steps: {by}")
    print(f"test accuracy {found.accuracy:.3f}")
    print(f"the same weights on every rank, bit for bit: {len(set(bits)) == 1}")

    with suppress(ImportError):  # a picture, where matplotlib is installed
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 3, figsize=(7, 2.2), sharey=True, layout="constrained")
        for axis, n in zip(axes, (1, 2, 4), strict=True):
            parts = np.array_split(np.arange(32), n)  # rows of a batch, all of the same length
            axis.bar(range(n), [len(part) for part in parts], color=[f"C{k}" for k in range(n)])
            axis.set(xticks=range(n), title=f"mpiexec -n {n}", xlabel="rank")
        axes[0].set_ylabel("rows of each batch")
        plt.show()
