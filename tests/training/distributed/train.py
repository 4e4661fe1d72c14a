"""Train models as a rank of several, and keep what came out.

The settings are those of `fit`, of the model under "model", and "mixers". Rank 0 writes the weights
and the history of each mixer into the folder, once it has seen that all ranks have the same bits.
"""

import json

import numpy as np

import npformer as nf
from npformer.training.distributed import world

LENGTH, VOCABULARY, CLASSES = 10, 30, 3


def samples(n=90, seed=0):
    """Return ids, labels and a mask of sequences of different lengths."""
    rng = np.random.default_rng(seed)
    mask = np.arange(LENGTH) < rng.integers(3, LENGTH + 1, n)[:, None]
    x = np.where(mask, rng.integers(1, VOCABULARY, (n, LENGTH)), 0)
    return x, rng.integers(0, CLASSES, n), mask


def model_of(mixer, seed=1, **changes):
    """Return a small model in float64, with dropout."""
    sizes = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "max_len": LENGTH}
    defaults = {"mixer": mixer, "dropout": 0.2, "padding": "per_length"}
    config = nf.EncoderConfig(**(sizes | defaults | changes))
    return nf.SequenceClassifier(config, CLASSES, vocab_size=VOCABULARY, seed=seed, dtype="float64")


def main(folder, settings):
    """Train a model with each mixer."""
    ranks = world()
    settings = dict(settings)
    of_model = settings.pop("model", {})
    defaults = {"batch_size": 16, "lr": 3e-3, "seed": 3, "progress": False}
    if settings.pop("validate", True):
        defaults["validation"] = samples(31, seed=1)
    checkpoint = settings.pop("checkpoint", None)
    for mixer in settings.pop("mixers"):
        if checkpoint is not None:
            settings["checkpoint"] = f"{checkpoint}-{mixer}"
        # Ranks begin with other weights than the first, whose weights all of them should get.
        model = model_of(mixer, seed=1 + ranks.rank, **of_model)
        history = nf.fit(model, samples(), communicator=ranks, **(defaults | settings))
        keep(folder / mixer, ranks, model, history.to_dict())


def keep(path, ranks, model, found):
    """Write weights and what was found, once rank 0 has seen that all have the same weights."""
    weights = {name: nf.to_numpy(value) for name, value in model.parameters().items()}
    bits = ranks.gather(b"".join(value.tobytes() for value in weights.values()))
    assert all(of_rank == bits[0] for of_rank in bits), "ranks ended with different weights"
    if ranks.rank == 0:
        np.savez(path.with_suffix(".npz"), **weights)
        path.with_suffix(".json").write_text(json.dumps(found))


def results(folder):
    """Return weights and history of each mixer."""
    read = {file.stem: (file, file.with_suffix(".json")) for file in folder.glob("*.npz")}
    return {name: (dict(np.load(a)), json.loads(j.read_text())) for name, (a, j) in read.items()}
