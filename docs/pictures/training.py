"""Losses by step for several learning rates, and the noise of a batch's gradient by its size."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf

RATES = 1e-4, 1e-3, 1e-2, 1e-1, 1.0
BATCHES = 1, 4, 16, 64, 256
SEEDS, EPOCHS, STEPS = 5, 6, 40


def encoder(seed):
    """Return a small encoder."""
    config = nf.EncoderConfig(d_model=16, n_layers=1, n_heads=2, d_ff=32, max_len=8)
    return nf.SequenceClassifier(config, 10, n_features=8, seed=seed)


def losses(lr, seed, x, y):
    """Return the loss of each step of a training, and the model."""
    model, found = encoder(seed), []

    class Watch(nf.Callback):
        def after_step(self, state):
            found.append(state.loss)

    settings = {"workers": 1, "progress": False, "batch_size": -(-len(x) // STEPS)}
    nf.fit(model, (x, y), epochs=EPOCHS, lr=lr, seed=seed, callbacks=[Watch()], **settings)
    return found, model


def noise(model, batch, rng, x, y, times=30):
    """Return the mean of |g_B - g|^2 over some batches."""
    whole = _flat(model.loss_and_gradients(x, y)[1])
    of_batches = [rng.choice(len(x), batch, replace=False) for _ in range(times)]
    gradients = (model.loss_and_gradients(x[rows], y[rows])[1] for rows in of_batches)
    return np.mean([((_flat(each) - whole) ** 2).sum() for each in gradients])


def _flat(gradients):
    return np.concatenate([each.ravel() for each in gradients.values()]).astype("float64")


def draw():
    """Return the picture of both."""
    x, y = nf.data.digits().train
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0))
    for lr in RATES:
        of_seeds = np.array([losses(lr, seed, x, y)[0] for seed in range(SEEDS)])
        median = np.median(of_seeds, axis=0)
        smooth = np.convolve(median, np.ones(10) / 10, mode="valid")  # the mean of ten steps
        axes[0].plot(np.arange(len(smooth)) + 10, smooth, label=f"{lr:g}")
    axes[0].axhline(np.log(10), lw=0.8, c="black", ls=":")
    axes[0].set_ylim(0, 5)
    axes[0].set_title("training loss", fontsize=10)
    axes[0].set_xlabel("step")
    axes[0].legend(
        fontsize=9, frameon=False, title="learning rate", ncols=2, loc="upper right"
    ).get_title().set_fontsize(9)
    for epochs, name in ((0, "at the start"), (EPOCHS, f"after {EPOCHS} epochs")):
        rows = []
        for seed in range(SEEDS):
            model = losses(3e-3, seed, x, y)[1] if epochs else encoder(seed)
            rng = np.random.default_rng(seed)
            rows.append([noise(model, batch, rng, x, y) for batch in BATCHES])
        median = np.median(rows, axis=0)
        (line,) = axes[1].loglog(BATCHES, median, "o-", ms=4, label=name)
        axes[1].loglog(BATCHES, median[0] / np.array(BATCHES), "--", lw=1, c=line.get_color())
    axes[1].set_title("variance of a batch's gradient", fontsize=10)
    axes[1].set_xlabel("samples in the batch")
    axes[1].set_xticks(BATCHES, map(str, BATCHES))
    axes[1].minorticks_off()
    axes[1].legend(fontsize=9, frameon=False)
    return {"rates": figure}
