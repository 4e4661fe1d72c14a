"""Does the GPU give the same numbers?
===================================

Trains the same model from the same seed on both backends. Only one word differs. The CPU uses one
worker, because several workers would each draw dropout's masks from their own generator.
"""

import time

import npformer as nf
from npformer.tools.recipes import RECIPES

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


on_cpu = train("numpy")
try:
    on_gpu = train("cupy")
except nf.BackendUnavailableError as error:
    print(f"cupy   {error}")
else:
    difference = max(abs(a - b) for a, b in zip(on_cpu, on_gpu, strict=True))
    print(f"largest difference between the losses: {difference:.1e}")
