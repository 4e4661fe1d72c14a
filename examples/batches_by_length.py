"""How much time does padding take?
================================

A batch takes as long as its longest text. `fit` puts texts of similar length together and cuts off
what is padding in all of them; the model learns the same, and an epoch takes less time. Here both
ways train the same model on the same texts.
"""

import statistics
from contextlib import suppress

import numpy as np

import npformer as nf

rng = np.random.default_rng(0)
lengths = np.clip(3 + rng.gamma(2.5, 3.5, size=1500).astype(int), 3, 30)  # words, as in questions
mask = np.arange(30) < lengths[:, None]
ids = np.where(mask, rng.integers(1, 500, size=mask.shape), 0)  # 0 is padding
labels = (ids == 7).any(axis=1).astype(int)  # does the word 7 occur?
print(f"{mask.mean():.0%} of the table is words, the rest is padding")

config = nf.EncoderConfig(d_model=64, n_layers=2, n_heads=4, d_ff=256, max_len=30)
seconds, losses = {}, {}
for batches in ("shuffled", "by_length"):
    model = nf.SequenceClassifier(config, 2, vocab_size=500, seed=0)
    history = nf.fit(
        model, (ids, labels, mask), epochs=4, batch_size=32, batches=batches, progress=False
    )
    seconds[batches] = statistics.median(history.seconds)
    losses[batches] = history.train_loss[-1]
print(f"time with all the padding / by length: {seconds['shuffled'] / seconds['by_length']:.1f}")
print("loss of the last epoch:", {name: round(loss, 3) for name, loss in losses.items()})

# Predictions are in the order of the samples, and do not depend on how they are put together.
together = model.predict_probabilities(ids, mask)
alone = model.predict_probabilities(ids[:1, : lengths[0]], mask[:1, : lengths[0]])
print("largest difference:", np.abs(together[0] - alone[0]).max())

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
    sorted_rows = np.argsort(lengths)[700:732]
    for axis, title, rows in zip(axes, losses, (np.arange(32), sorted_rows), strict=True):
        longest = lengths[rows].max()
        where = {"aspect": "auto", "extent": (0, longest, 32, 0)}
        axis.imshow(mask[rows, :longest], vmin=False, vmax=True, **where)
        axis.set(title=f"a batch, {title}", xlabel="tokens: yellow is words", xlim=(0, 30))
    axes[0].set_ylabel("texts")
    plt.show()
