"""The models of `tests.training.trainable.outside`, trained by several ranks."""

import numpy as np

import npformer as nf
from tests.training.trainable.outside import MODELS, data_of


def main(folder):
    """Train each model, with padding, dropout and validation; write what each rank ends with."""
    ranks = nf.distributed.world()
    for name, kind in MODELS.items():
        model = kind(dropout=0.2)
        history = nf.fit(
            model,
            data_of(name),
            validation=data_of(name, 11, seed=1),
            optimizer=nf.Adam(model.parameters(), lr=1e-2, eps=1e-3),
            epochs=3,
            batch_size=5,
            clip_norm=0.5,
            batches="by_length",
            workers=1,
            progress=False,
            communicator=ranks,
        )
        np.savez(
            folder / f"{name}-{ranks.rank}.npz",
            weights=model.parameters().flat,
            train_loss=history.train_loss,
            validation_loss=history.validation_loss,
        )
