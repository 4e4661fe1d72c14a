"""The loop that trains a model, on one screen. `npformer.fit` puts everything else around it."""

from collections.abc import Sequence
from typing import Any

from npformer.core import (
    Context,
    Gradients,
    Layer,
    Seed,
    checks,
    describe,
    generators,
    part_generator,
    step_key,
)
from npformer.models.only_training import check_not_in_training
from npformer.optim import Optimizer
from npformer.optim.own_parameters import check_trains


def train(
    model: Any,
    data: Sequence[Any],
    optimizer: Optimizer,
    *,
    epochs: int = 10,
    batch_size: int = 32,
    seed: Seed = 0,
) -> list[float]:
    """Train a model in place: a forward pass, a loss, a backward pass and an update for each batch.

    The passes run as they are written, whether kernels are on or off. With the same seed, `fit`
    takes the same batches, unless it sorts samples by length, and drops the same entries: within
    ``use_kernels(False)`` both give the same losses and weights, bit for bit.

    Parameters
    ----------
    model : Model
        Such as a `SequenceClassifier`.
    data : (x, y), (x, y, mask) or (x, y, mask, types)
        As for `fit`.
    optimizer : Optimizer
        Such as ``Adam(model.parameters())``.
    epochs : int
        Passes over all samples.
    batch_size : int
        Samples in a step.
    seed : int or numpy.random.Generator
        Decides the order of the samples, and what dropout drops.

    Returns
    -------
    losses : list of float
        The loss of each step, in nats.
    """
    check_arguments(model, data, optimizer, epochs=epochs, batch_size=batch_size)
    samples = model.batch(*data)  # checked arrays, on the model's backend
    order_generator = generators.from_seed(seed)
    (dropout_generator,) = order_generator.spawn(1)
    losses = []
    for _ in range(epochs):
        order = order_generator.permutation(len(samples))
        for start in range(0, len(samples), batch_size):
            batch = samples.select(order[start : start + batch_size])
            generator = part_generator(step_key(dropout_generator), 0, len(batch))
            context = batch.within(Context(training=True, generator=generator))
            outputs, model_cache = model.forward(*batch.arrays(), context)
            loss, loss_cache = model.loss.forward(outputs, *batch.targets())
            doutputs = model.loss.backward(1.0, loss_cache)
            gradients = Gradients(model)
            model.backward(doutputs, model_cache, gradients)
            optimizer.step(gradients)
            losses.append(float(loss))
    return losses


def check_arguments(model: Any, data: Any, optimizer: Any, *, epochs: Any, batch_size: Any) -> None:
    """Check what `train` is given, but for the arrays, which the model checks."""
    if not (isinstance(model, Layer) and hasattr(model, "batch")):
        raise TypeError(
            f"model is {describe(model)}; expected a model that can be trained, such as a "
            "SequenceClassifier"
        )
    if not (isinstance(data, tuple | list) and len(data) in (2, 3, 4)):
        raise TypeError(f"data is {describe(data)}; expected (x, y), or (x, y, mask)")
    if data[1] is None:
        raise TypeError(
            "y is None; expected targets. A model that draws them from x in each step is trained "
            "by npformer.fit"
        )
    check_not_in_training(model)
    checks.instance("optimizer", optimizer, Optimizer, "Write Adam(model.parameters())")
    check_trains(optimizer.parameters, model.parameters())
    checks.positive("epochs", epochs)
    checks.positive("batch_size", batch_size)
