"""SequenceClassifier: a `SequenceModel` with a face, which checks and uploads what it is given."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from npformer import engine
from npformer.core import (
    Array,
    Context,
    Feed,
    Gradients,
    Padding,
    Seed,
    asarray,
    check_ends_in_padding,
    checks,
    explained_memory_error,
    initializers,
)
from npformer.engine.memory import team_of
from npformer.engine.processes import CannotCopyError
from npformer.engine.tree import tree_of
from npformer.engine.workers import choose_processes, in_processes
from npformer.inspection.explain import Explanation, explain
from npformer.layers import Pooling
from npformer.losses import Classification, Loss
from npformer.mixers import WholeSequenceMixer
from npformer.models import Batch, SequenceModel, accumulate

QUIET: Any = {"over": "ignore", "invalid": "ignore"}
"""Of a training step: overflow is not hushed up, for whoever looks at the loss will see it."""


class SequenceClassifier(SequenceModel):
    """A classifier of sequences: embed, encode, pool, classify.

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
        At least 2.
    vocab_size : int, optional
        x holds token ids, (batch, length), from 0 to vocab_size - 1.
    n_features : int, optional
        x holds feature vectors, (batch, length, n_features). Give one of the two.
    pooling : {"mean", "first", "flatten", "none", "pooler"}
        A name in `npformer.layers.POOLINGS`. What the classifier sees: the mean of the tokens that
        the mask keeps, the first token, all tokens side by side (every sequence then has max_len
        tokens), each token by itself, which gives one answer a token, or the first token after a
        layer with tanh, as in BERT.
    output : {"softmax", "sigmoid", "mean_squared_error"}
        What the outputs are, and with them the loss: a name in `npformer.losses.LOSSES`. "softmax":
        n_classes logits. "sigmoid", for two classes: a single logit, of class 1.
        "mean_squared_error": numbers instead of classes, n_classes of them.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Raises
    ------
    ValueError
        Neither or both of vocab_size and n_features, or "sigmoid" with more than two classes.
    """

    # What users call ----------------------------------------------------------------------------

    def __call__(self, x: Array, mask: Array | None = None, types: Array | None = None) -> Array:
        """Return the logits at evaluation.

        Parameters
        ----------
        x : int array (batch, length), or float array (batch, length, n_features)
            On the host or on the model's backend; host arrays are uploaded.
        mask : bool array, shape (batch, length), optional
            Padding: True = keep.
        types : int array, shape (batch, length), optional
            Types of the tokens, from 0 to n_token_types - 1; all 0 if not given.

        Returns
        -------
        logits : array, shape (batch, n_classes), or (batch, length, n_classes) without pooling
            On the model's backend. A single column with ``output="sigmoid"``.
        """
        tree = tree_of(self)
        batch = self._uploaded(self.check(x, mask=mask, types=types), tree.backend)
        with team_of(self, "auto") as team:
            return team.forward(batch, tree)

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
        seed: Seed | None = None,
    ) -> tuple[float, Gradients]:
        """Return the mean loss of a batch in training mode, and its gradients.

        Parameters
        ----------
        x : int array (batch, length), or float array (batch, length, n_features)
        y : int array, shape (batch,), or (batch, length) without pooling
            Labels, from 0 to n_classes - 1. Without pooling, -1 says that a token has none.
        mask : bool array, shape (batch, length), optional
            Padding: True = keep.
        types : int array, shape (batch, length), optional
            Types of the tokens; all 0 if not given.
        workers : int or "auto"
            CPU threads that share the batch; where most of them would have no sample, and sequences
            are long, the work within each sequence.
        micro_batch : int, optional
            Samples that are computed at a time, which bounds the memory; the gradients are those
            of the whole batch. None: each worker's share at once.
        label_smoothing : float
            See `softmax_cross_entropy`.
        loss : Loss, optional
            In place of the model's own, see `npformer.losses`; it has label smoothing of its own.
        seed : int or numpy.random.Generator, optional
            For dropout; needed if the model has any.

        Returns
        -------
        loss : float
            In nats.
        gradients : Gradients
            ``{name: array}``, the caller's to keep.
        """
        generator = None if seed is None else initializers.generator(seed)
        loss = self.loss_with(loss, label_smoothing)
        tree = tree_of(self)
        batch = self._uploaded(self.check(x, y, mask, types, loss=loss), tree.backend, loss=loss)
        if not engine.enabled() and workers == 1 and micro_batch is None:  # what there is to read
            gradients = Gradients(tree.layout)
            context = Context(training=True, generator=generator)
            with np.errstate(**QUIET), explained_memory_error(tree.backend, len(x)):
                return float(accumulate(self, loss, batch, context, gradients)), gradients
        with team_of(self, workers, micro_batch, loss) as team:
            value, gradients = team.step(batch, generator=generator, tree=tree)
        return float(value), gradients

    def predict_probabilities(
        self,
        x: Array,
        mask: Array | None = None,
        batch_size: int = 256,
        types: Array | None = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Return the probability of each class, batch by batch.

        Parameters
        ----------
        x, mask : array
            As in `__call__`.
        batch_size : int
            At most so many samples at a time, in each process (``processes=False``: in this
            one). On a CPU a worker takes fewer of long sequences, about 2048 tokens, whose results
            stay in the cache.
        types : int array, shape (batch, length), optional
            As in `__call__`.
        processes : bool or "auto"
            Whether CPU workers are copies of this process, which do not take turns at the
            interpreter, or threads. "auto": copies for many tokens, on Linux and from the main
            thread. What a layer of yours keeps aside during a call stays in its copy; and a lock
            that another thread of yours holds while copies are made stays shut in them. If either
            matters, False.

        Returns
        -------
        probabilities : numpy array, shape (batch, n_classes), or (batch, length, n_classes)
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

        Parameters
        ----------
        x, mask : array
            As in `__call__`.
        batch_size : int
            As in `predict_probabilities`.
        types : int array, shape (batch, length), optional
            As in `__call__`.
        processes : bool or "auto"
            As in `predict_probabilities`.

        Returns
        -------
        labels : numpy int array, shape (batch,), or (batch, length)

        Raises
        ------
        ValueError
            Probabilities are NaN: no class is the most probable.
        TypeError
            The model's loss knows no classes.
        """
        probabilities = self.predict_probabilities(x, mask, batch_size, types, processes)
        if (wrong := np.isnan(probabilities)).any():
            raise ValueError(
                f"the probabilities of sample {int(np.argwhere(wrong)[0, 0])} are NaN; expected "
                "numbers. Its x holds NaN or infinity, or the weights do: npformer.trace(model, x) "
                "shows where it begins"
            )
        return np.asarray(probabilities.argmax(axis=-1))

    def explain(
        self, x: Array, mask: Array | None = None, types: Array | None = None
    ) -> list[Explanation]:
        """Return, for each layer, the matrices that its mixer mixed the tokens with.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`.

        Returns
        -------
        explanations : list of Explanation
            From the bottom up; ``.matrices`` is (batch, heads, length, length), on the model's
            backend, with rows and columns of padding 0.
        """
        return explain(self, x, mask, types)

    # The edge: what comes in is checked here, and uploaded --------------------------------------

    def loss_with(self, loss: Loss | None = None, label_smoothing: float = 0.0) -> Loss:
        """Return the loss to train on: the model's own if none is given.

        Parameters
        ----------
        loss : Loss, optional
        label_smoothing : float
            Of the model's own; one that is given has it as an option.

        Raises
        ------
        TypeError
            Not a loss, or smoothing of labels where there are none.
        ValueError
            Both are given, or label_smoothing is out of range.
        """
        if loss is None and label_smoothing == 0:
            return self.loss
        checks.rate("label_smoothing", label_smoothing)
        if loss is not None and not isinstance(loss, Loss):
            given = f"the class {loss.__name__}" if isinstance(loss, type) else repr(loss)
            raise TypeError(
                f"loss is {given}; expected an object of a subclass of npformer.losses.Loss, such "
                "as SoftmaxCrossEntropy(label_smoothing=0.1)"
            )
        if loss is not None and label_smoothing:
            raise ValueError(
                f"label_smoothing is {label_smoothing} and a loss is given; expected one of the "
                "two. Give it to the loss: SoftmaxCrossEntropy(label_smoothing=0.1)"
            )
        if loss is not None:
            wants, has = loss.n_outputs(self.n_classes), self.loss.n_outputs(self.n_classes)
            if wants != has:
                raise ValueError(
                    f"a {type(loss).__name__} of {self.n_classes} classes wants {wants} outputs "
                    f"and this model has {has}; expected as many. Build the model for it, with "
                    "output=..., or choose a loss that fits"
                )
            return loss
        if not isinstance(self.loss, Classification):
            raise TypeError(
                f"label_smoothing is {label_smoothing} and the model's loss is a "
                f"{type(self.loss).__name__}; expected 0, for it has no labels"
            )
        smoothed = copy.copy(self.loss)  # a loss from elsewhere has options of its own
        smoothed.label_smoothing = float(label_smoothing)
        return smoothed

    def batch(
        self,
        x: Array,
        y: Array | None = None,
        mask: Array | None = None,
        types: Array | None = None,
        *,
        loss: Loss | None = None,
    ) -> Batch:
        """Return samples ready to compute with: checked, and on the model's backend.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`.
        y : array, optional
            Targets, as the loss takes them.
        loss : Loss, optional
            The model's own if not given.

        Raises
        ------
        TypeError, ValueError
            Something does not fit; the message says what came and what was expected.

        Notes
        -----
        Without pooling, a token of padding has no label, whatever y says.
        """
        return self.upload(self.check(x, y, mask, types, loss=loss), loss=loss)

    def check(
        self,
        x: Array,
        y: Array | None = None,
        mask: Array | None = None,
        types: Array | None = None,
        *,
        loss: Loss | None = None,
    ) -> Batch:
        """Return checked samples, where they are.

        Parameters
        ----------
        x, y, mask, types, loss
            As in `batch`.
        """
        self.embed.check(x, mask)
        if types is not None:
            self.embed.check_types(types, x)
        pool, padding = self.pool, None if mask is None else Padding(mask)
        if isinstance(pool, Pooling) and pool.full_length:
            self._check_full_length(x)
        if mask is not None:
            self.check_padding(mask)
        if y is None:
            if loss is not None:
                raise TypeError("y is None; expected targets, for there is no loss without them")
            return Batch(x, None, padding, types)
        if len(x) == 0:
            raise ValueError("x has no samples; expected a batch of at least 1")
        loss = self.loss if loss is None else loss
        checks.on_host_or("y", y, self)
        per_token = isinstance(pool, Pooling) and pool.per_token
        if per_token and mask is not None and y.shape[:2] == mask.shape:
            # A mask beside labels on the host comes from there: nothing waits for the device.
            beside = mask if isinstance(y, np.ndarray) else asarray(mask, self.backend)
            y = loss.without_padding(y, beside)
        loss.check(y, x.shape[: 1 + per_token], self.n_classes)
        return Batch(x, y, padding, types)

    def _check_full_length(self, x: Array) -> None:
        """Check that every sequence has max_len tokens."""
        length, max_len = x.shape[1], self.config.max_len
        if length != max_len:
            raise ValueError(
                f"x has length {length}; expected max_len = {max_len}, for "
                f"pooling={self.pooling!r} needs every sequence at full length. Pad them and pass "
                "a mask, or use pooling='mean'"
            )

    def upload(self, batch: Batch, feed: Feed | None = None, *, loss: Loss | None = None) -> Batch:
        """Bring checked samples to the model's backend.

        Parameters
        ----------
        batch : Batch
            From `check`, or some rows of it.
        feed : Feed, optional
            Brings them, while the device computes something else.
        loss : Loss, optional
            Counts the targets while they are on the host; the model's own if not given.
        """
        return self._uploaded(batch, tree_of(self).backend, feed, loss)

    def _uploaded(
        self, batch: Batch, backend: str, feed: Feed | None = None, loss: Loss | None = None
    ) -> Batch:
        """Do what `upload` does, for who knows the model's backend."""
        if backend == "numpy" and batch.padding is None:
            return batch
        padding = batch.padding
        mask = None if padding is None else padding.mask
        several = batch.x, batch.y, mask, batch.types
        if feed is not None:
            several = feed(*several)
        x, y, on_device, types = (a if a is None else asarray(a, backend) for a in several)
        if padding is not None:
            x = self.embed.without_padding(x, on_device)
            padding = Padding(on_device, mask if isinstance(mask, np.ndarray) else None)
        weights = batch.weights
        if isinstance(batch.y, np.ndarray) and weights is None:  # no waiting for the device later
            weights = (loss or self.loss).counts(batch.y)
        return Batch(x, y, padding, types, weights)

    def check_padding(self, mask: Array | None) -> None:
        """Check, before any work, what "per_length" asks of a mask: padding only at the end.

        Parameters
        ----------
        mask : bool array, shape (batch, length), or None
            On a GPU it is left to the layers: a look would wait for the device.

        Raises
        ------
        ValueError
            A sequence goes on after padding, and a mixer takes each at its own length.
        """
        if self.config.padding != "per_length" or not isinstance(mask, np.ndarray):
            return
        checks.boolean("mask", mask)
        if mask.ndim == 2 and any(
            isinstance(layer, WholeSequenceMixer) for _, layer in self.layers()
        ):
            check_ends_in_padding(mask)

    def in_batches(
        self,
        of_logits: Callable[[Array], np.ndarray],
        x: Array,
        mask: Array | None,
        batch_size: int,
        types: Array | None = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Return what a function makes of the logits, batch by batch, side by side.

        Parameters
        ----------
        of_logits : callable
            From the logits of some samples, on the model's backend, to a host array of as many
            rows.
        x, mask, batch_size, types, processes
            As in `predict_probabilities`.
        """
        checks.positive("batch_size", batch_size)
        checks.on_host_or("x", x, self)
        self.embed.check_shape(x)
        for name, array in (("mask", mask), ("types", types)):
            if array is not None:  # batches are cut from it: a row too many would go unseen
                checks.on_host_or(name, array, self)
                checks.shape(name, array, tuple(x.shape[:2]), "One entry for each token")
        self.check_padding(mask)
        if len(x) == 0:
            self.check(x, mask=mask)  # an empty x still has to be of the right kind
            per_token = isinstance(self.pool, Pooling) and self.pool.per_token
            one_each = tuple(x.shape[1:2]) if per_token else ()
            width = self.loss.n_outputs(self.n_classes)
            logits = np.zeros((0, *one_each, width), dtype=self.dtype)
            return of_logits(asarray(logits, self.backend))

        def of_rows(first: int, last: int) -> np.ndarray:
            parts = []
            for start in range(first, last, batch_size):
                some = slice(start, min(start + batch_size, last))
                logits = self(x[some], *(None if a is None else a[some] for a in (mask, types)))
                parts.append(of_logits(logits))
            return parts[0] if len(parts) == 1 else np.concatenate(parts)

        n = choose_processes(processes, self, len(x), x.shape[1])
        if n > 1:
            try:
                shares = [(k * len(x) // n, (k + 1) * len(x) // n) for k in range(n)]
                return np.concatenate(in_processes(lambda k: of_rows(*shares[k]), n))
            except CannotCopyError:
                if processes is True:
                    raise
        return of_rows(0, len(x))
