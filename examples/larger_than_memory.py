"""Train on files, a batch at a time
=================================

Arrays that do not fit into memory stay on the disk, in as many files as you like. With several
processes, each reads only its own part::

    mpiexec -n 2 python larger_than_memory.py
"""

import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.training.distributed import world

ranks = world()  # those that mpiexec started, or this process alone
scratch = tempfile.TemporaryDirectory() if ranks.rank == 0 else None
folder = Path(ranks.first(None if scratch is None else scratch.name))

digits = nf.data.digits()
if ranks.rank == 0:  # as another program may have written them, one after the other
    for name, array in zip(("x", "y"), digits.train, strict=True):
        for k, part in enumerate(np.array_split(array, 12)):
            np.save(folder / f"{name}-{k}.npy", part)
    np.save(folder / "test.npy", digits.test[0])
ranks.agree(0.0)  # wait for the files

x, y = nf.data.sharded(folder / "x-*.npy"), nf.data.sharded(folder / "y-*.npy")
config = nf.EncoderConfig(d_model=32, n_layers=1, n_heads=4, d_ff=64, max_len=8)
model = nf.SequenceClassifier(config, n_classes=10, n_features=8, pooling="flatten", seed=0)
settings = {"epochs": 4, "lr": 3e-3, "seed": 0, "communicator": ranks, "progress": False}
nf.fit(model, (x, y), validation=0.1, **settings)

test = np.load(folder / "test.npy", mmap_mode="r")
labels = nf.predict_to_file(folder / "labels.npy", model, test, kind="labels", communicator=ranks)
if ranks.rank == 0:
    print(x)
    print(f"labels of {len(labels)} samples in {Path(labels.filename).name}")
    print(f"right: {np.mean(labels == digits.test[1]):.3f}")
    with suppress(ImportError):  # a picture, where matplotlib is installed
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(2, 8, figsize=(7, 2.2), layout="constrained")
        for axis, image, label, is_ in zip(
            axes.flat, digits.test[0], labels, digits.test[1], strict=False
        ):
            axis.imshow(image, cmap="gray_r")
            axis.set_title(f"{label}", color="C2" if label == is_ else "C1", fontsize=9)
            axis.axis("off")
        figure.suptitle("read from one file, and the labels written to another", fontsize=9)
        plt.show()
ranks.agree(0.0)  # nobody needs the files any more
if scratch is not None:
    scratch.cleanup()
