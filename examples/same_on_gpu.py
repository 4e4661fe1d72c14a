"""Does the GPU give the same numbers?
===================================

Train the same model from the same seed on both backends. Only one word differs. The CPU uses one
worker, because several workers would each draw dropout's masks from their own generator.
"""

import time
from contextlib import suppress

import npformer as nf
from npformer.tasks.sources.recipes import RECIPES

recipe = RECIPES["digits"]
dataset = recipe.load("stratified", 0)


def train(backend):
    model = recipe.model(dataset, seed=0).to(backend)
    began = time.perf_counter()
    history = nf.fit(
        model, dataset.train, epochs=3, batch_size=128, seed=0, workers=1, progress=False
    )
    accuracy = nf.evaluate(model, dataset.test).accuracy
    print(
        f"{backend:<6} loss {history.train_loss[-1]:.5f}  test accuracy {accuracy:.4f}  "
        f"{time.perf_counter() - began:.1f} s"
    )
    return history.train_loss


on_cpu, on_gpu = train("numpy"), None
try:
    on_gpu = train("cupy")
except nf.BackendUnavailableError as error:
    print(f"cupy   {error}")
else:
    difference = max(abs(a - b) for a, b in zip(on_cpu, on_gpu, strict=True))
    print(f"largest difference between the losses: {difference:.1e}")

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
    epochs = range(1, len(on_cpu) + 1)
    axis.plot(epochs, on_cpu, lw=3, label="CPU")
    if on_gpu is not None:
        axis.plot(epochs, on_gpu, "--", label="GPU")
    axis.set(xlabel="epoch", ylabel="loss", xticks=list(epochs))
    axis.legend()
    plt.show()
