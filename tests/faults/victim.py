"""A training to be killed: ``python -m tests.faults.victim FOLDER WEIGHTS``.

It goes on from the checkpoint in FOLDER, and writes the weights that it ends with to WEIGHTS.
"""

import sys

import numpy as np

import npformer as nf

EPOCHS = 6


def main(folder: str, weights: str) -> None:
    """Train on two workers, with dropout."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 12, 8)).astype("float32")
    y = (x[:, 3, 0] + x[:, 7, 1] > 0).astype("int64")
    config = nf.EncoderConfig(d_model=32, n_layers=2, n_heads=2, d_ff=64, max_len=12, dropout=0.1)
    model = nf.SequenceClassifier(config, 2, n_features=8, seed=1)
    nf.fit(
        model,
        (x[:128], y[:128]),
        epochs=EPOCHS,
        batch_size=4,
        clip_norm=1.0,
        seed=2,
        workers=2,
        schedule=nf.optim.cosine(EPOCHS * 32, warmup=10),
        progress=False,
        checkpoint=folder,
        resume=True,
        validation=(x[128:], y[128:]),
    )
    nf.save(model, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
