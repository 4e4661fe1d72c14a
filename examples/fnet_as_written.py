"""An article's FNet and the paper's: what is the difference, and does it show?
============================================================================

The article appends one layer object again and again (weights tied across depth), uses one layer
norm in two places, and adds the block's input in the second residual connection. Both FNets are
trained on digits, in a training loop written by hand.
"""

import os
from contextlib import suppress

# Beside other programs, several threads wait for each other: measured 4 to 18 times as slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # NumPy's BLAS reads it as it is loaded

import numpy as np

import npformer as nf

F = nf.functional
D_MODEL, D_FF, LAYERS, EPOCHS, BATCH = 64, 128, 4, 15, 32
dataset = nf.data.digits()


def classifier(encoder):
    rng = np.random.default_rng(0)
    return nf.layers.Sequential(
        nf.layers.Linear(8, D_MODEL, seed=rng),
        nf.layers.Positions(8, D_MODEL, "learned", seed=rng),
        encoder,
        nf.layers.Flatten(),
        nf.layers.Linear(8 * D_MODEL, 10, seed=rng),
    ).flatten()


def train(model):
    x, y = dataset.train
    rng = np.random.default_rng(0)
    steps = EPOCHS * -(-len(x) // BATCH)
    optimizer = nf.Adam(model.parameters(), lr=1e-3, schedule=nf.optim.cosine(steps))
    gradients, accuracies = nf.Gradients(model), []
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for rows in np.split(order, range(BATCH, len(x), BATCH)):
            logits, cache = model.forward(x[rows], nf.Context(training=True, generator=rng))
            _, loss_cache = F.softmax_cross_entropy(logits, y[rows])
            gradients.zero()
            model.backward(F.softmax_cross_entropy_backward(1.0, loss_cache), cache, gradients)
            nf.clip_by_global_norm(gradients, 1.0)
            optimizer.step(gradients)
        x_new, y_new = dataset.validation
        accuracies.append((model(x_new).argmax(axis=-1) == y_new).mean())
    return accuracies


config = nf.EncoderConfig(
    d_model=D_MODEL, d_ff=D_FF, n_layers=LAYERS, max_len=8, mixer="fourier", dropout=0.1
)
curves = {}
print("FNet                parameters  validation accuracy")
for name, encoder in (
    ("as written", nf.published.blog_fnet(D_MODEL, D_FF, 0.1, LAYERS)),
    ("the paper's", nf.Encoder(config)),
):
    model = classifier(encoder)
    curves[name] = train(model)
    print(f"{name:<18}  {model.n_parameters():>10,}  {curves[name][-1]:.4f}")

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for name, curve in curves.items():
        axis.plot(range(1, EPOCHS + 1), curve, marker="o", label=name)
    axis.set(xlabel="epoch", ylabel="validation accuracy")
    axis.legend()
    plt.show()
