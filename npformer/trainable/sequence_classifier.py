"""SequenceClassifier: the model for classification that users call."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer import engine
from npformer.core import (
    Array,
    Context,
    Gradients,
    Seed,
    checks,
    explained_memory_error,
    initializers,
    part_generator,
    step_key,
)
from npformer.data.lengths import Batches, sees_padding
from npformer.engine.processes import CannotCopyError, in_processes
from npformer.engine.snapshot import snapshot_of
from npformer.engine.team import team_of
from npformer.engine.worker_counts import choose_processes
from npformer.inspection.explain import Explanation, explain
from npformer.losses import Loss
from npformer.models import accumulate
from npformer.trainable.model import CheckedModel

QUIET: Any = {"over": "ignore", "invalid": "ignore"}
"""Settings of a training step for np.errstate: an overflow shows in the loss."""


class SequenceClassifier(CheckedModel):
    """A classifier of sequences: logits = classify(pool(encoder(embed(x)))).

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
        At least 2.
    vocab_size, n_features : int, optional
        Exactly one of them. With `vocab_size`, x holds token ids, (batch, length), from 0 to
        vocab_size - 1; with `n_features`, feature vectors, (batch, length, n_features).
    pooling : {"mean", "max", "first", "flatten", "none", "pooler"}
        What is classified; a name in `npformer.layers.POOLINGS`. "mean": the mean of the tokens
        that the mask keeps. "max": the largest value of each feature among these. "first": the
        first token. "flatten": all tokens, concatenated; every
        sequence then has max_len tokens. "none": each token separately. "pooler": the first token
        after a linear layer and tanh, as in BERT; "pooler(activation='relu')" is DistilBERT's.
    output : {"softmax", "sigmoid", "mean_squared_error"}
        The kind of outputs, and so the loss; a name in `npformer.losses.LOSSES`. "softmax":
        n_classes logits. "sigmoid", for two classes: a single logit, of class 1.
        "mean_squared_error": n_classes numbers, for regression.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    """

    def __call__(self, x: Array, mask: Array | None = None, types: Array | None = None) -> Array:
        """Return the logits at evaluation.

        Parameters
        ----------
        x : int array (batch, length), or float array (batch, length, n_features)
            On the host or on the model's backend; host arrays are uploaded.
        mask : bool array, shape (batch, length), optional
            True = keep, False = padding.
        types : int array, shape (batch, length), optional
            Token types, from 0 to n_token_types - 1; 0 if not given.

        Returns
        -------
        logits : array, shape (batch, n_classes), or (batch, length, n_classes) without pooling
            On the model's backend. With ``output="sigmoid"`` the last axis has size 1.
        """
        snapshot = snapshot_of(self)
        batch = self.upload(self.check(x, mask=mask, types=types), backend=snapshot.backend)
        with team_of(self, "auto") as team:
            return team.forward(batch, snapshot)

    def loss_and_gradients(
        self,
        x: Array,
        y: Array,
        mask: Array | None = None,
        *,
        types: Array | None = None,
        workers: int | str = 1,
        micro_batch: int | None = None,
        label_smoothing: float = 0.0,
        loss: Loss | None = None,
        sample_weight: Any = None,
        seed: "Seed | None" = None,
    ) -> tuple[float, Gradients]:
        """Return the mean loss of a batch in training mode, in nats, and its gradients by name.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`.
        y : int array, shape (batch,), or (batch, length) without pooling
            Labels, from 0 to n_classes - 1. Without pooling, -1 marks a token without a label.
        workers : int or "auto"
            CPU threads that share the batch; a few long sequences are shared within each sequence.
        micro_batch : int, optional
            Samples that are computed at a time, to bound the memory; the gradients are still those
            of the whole batch. None: each worker's whole share.
        label_smoothing : float
            See `softmax_cross_entropy`.
        loss : Loss, optional
            Used instead of the model's own, see `npformer.losses`; label smoothing is an option
            of the loss.
        sample_weight : array, shape (batch,), or also (batch, length) without pooling, optional
            Of the samples in the mean, at least 0: sum_i s_i loss_i / sum_i s_i.
        seed : int or numpy.random.Generator, optional
            For dropout; needed if the model has any. The masks are the same however the batch is
            shared; the gradients then differ in the order of sums alone.
        """
        generator = None if seed is None else initializers.generator(seed)
        loss = self.loss_with(loss, label_smoothing)
        snapshot = snapshot_of(self)
        batch = self.check(x, y, mask, types, loss=loss, sample_weight=sample_weight)
        batch = self.upload(batch, loss=loss, backend=snapshot.backend)
        if not engine.enabled() and workers == 1 and micro_batch is None:  # the plain step
            gradients = Gradients(snapshot.layout)
            drawn = (
                None if generator is None else part_generator(step_key(generator), 0, len(batch))
            )
            context = Context(training=True, generator=drawn)
            with np.errstate(**QUIET), explained_memory_error(snapshot.backend, len(x)):
                return float(accumulate(self, loss, batch, context, gradients)), gradients
        with team_of(self, workers, micro_batch, loss) as team:
            value, gradients = team.step(batch, generator=generator, snapshot=snapshot)
        return float(value), gradients

    def predict_probabilities(
        self,
        x: Array,
        mask: Array | None = None,
        batch_size: int = 256,
        types: Array | None = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Return the probability of each class: the logits' shape, on the host.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`.
        batch_size : int
            Samples at a time in each process. If sequences are long, a CPU worker takes only about
            2048 tokens at a time, whose results stay in the cache.
        processes : bool or "auto"
            Whether CPU workers are copies of this process or threads, as in `fit`. "auto": copies
            for many tokens. What a layer of yours stores during a call stays in its copy.
        """
        return self.in_batches(self.loss.probabilities, x, mask, batch_size, types, processes)

    def predict(
        self,
        x: Array,
        mask: Array | None = None,
        batch_size: int = 256,
        types: Array | None = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Return the most probable class of each sequence, or of each token without pooling.

        The arguments are those of `predict_probabilities`.

        Raises
        ------
        ValueError
            Probabilities are NaN: no class is the most probable.
        """
        probabilities = self.predict_probabilities(x, mask, batch_size, types, processes)
        if (wrong := np.isnan(probabilities)).any():
            raise ValueError(
                f"the probabilities of sample {int(np.argwhere(wrong)[0, 0])} are NaN; expected "
                "numbers. Its x holds NaN or infinity, or the weights do: npformer.trace(model, x) "
                "shows where NaN begins"
            )
        return np.asarray(probabilities.argmax(axis=-1))

    def explain(
        self, x: Array, mask: Array | None = None, types: Array | None = None
    ) -> list[Explanation]:
        """Return the matrices that each layer's mixer applied: see `npformer.explain`."""
        return explain(self, x, mask, types)

    def in_batches(
        self,
        convert: Callable[[Array], np.ndarray],
        x: Array,
        mask: Array | None,
        batch_size: int,
        types: Array | None = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Compute logits batch by batch, convert each batch's to a host array, and join them."""
        checks.positive("batch_size", batch_size)
        checks.on_host_or("x", x, self)
        self.embed.check_shape(x)
        for name, array in (("mask", mask), ("types", types)):
            if array is not None:  # checked now, because slices of it would hide extra rows
                checks.on_host_or(name, array, self)
                checks.shape(name, array, tuple(x.shape[:2]), "One entry for each token")
        if mask is not None:
            self.check_padding(mask)
        elif self.padding_id is not None:  # now, so that the padding can be cut
            mask = self.mask_for(x)
        if len(x) == 0:
            return convert(self(x, mask))

        by_length = not (self.per_token or sees_padding(self))
        batches = Batches(x, mask, types, batch_size, by_length)

        def of_share(k: int, n: int) -> list[np.ndarray]:
            return [convert(self(*arrays)) for arrays in batches.share(k, n)]

        n = choose_processes(processes, self, len(x), batches.mean_length())
        if n > 1:
            try:
                return batches.in_order(in_processes(lambda k: of_share(k, n), n))
            except CannotCopyError:
                if processes is True:
                    raise
        return batches.in_order([of_share(0, 1)])
