"""SequenceClassifier: embed, encode, pool, classify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from npformer import checks, initializers, kernels
from npformer import functional as F
from npformer.backend import Array, array_module, asarray, backend_of, to_numpy
from npformer.encoder import Encoder, EncoderConfig
from npformer.functional.embedding import check_ids
from npformer.initializers import Seed
from npformer.input_embedding import InputEmbedding
from npformer.layers import POOLINGS, Linear
from npformer.mixers import WholeSequenceMixer
from npformer.module import Context, Gradients, Layer, check_ends_in_padding
from npformer.processes import CannotCopyError
from npformer.trace import Explanation, explain
from npformer.workers import Team, choose_processes, in_processes, work
from npformer.workspace import Workspace

OUTPUTS = ("softmax", "sigmoid")


class SequenceClassifier(Layer):
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
        What the classifier sees: the mean of the tokens that the mask keeps, the first token, all
        tokens side by side (every sequence then has max_len tokens), each token by itself, which
        gives one answer a token, or the first token after a layer with tanh, as in BERT.
    output : {"softmax", "sigmoid"}
        "softmax": n_classes logits. "sigmoid", for two classes: a single logit, of class 1.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Raises
    ------
    ValueError
        Neither or both of vocab_size and n_features, or "sigmoid" with more than two classes.
    """

    def __init__(
        self,
        config: EncoderConfig,
        n_classes: int,
        *,
        vocab_size: int | None = None,
        n_features: int | None = None,
        pooling: str = "mean",
        output: str = "softmax",
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        n_classes = checks.positive("n_classes", n_classes)
        if n_classes < 2:
            raise ValueError(f"n_classes is {n_classes}; expected a whole number of at least 2")
        checks.choice("pooling", pooling, POOLINGS)
        checks.choice("output", output, OUTPUTS)
        if output == "sigmoid" and n_classes != 2:
            raise ValueError(
                f"output is 'sigmoid' and n_classes is {n_classes}; expected 2 classes, which one "
                "logit can tell apart. Use output='softmax'"
            )
        if output == "sigmoid" and pooling == "none":
            raise ValueError(
                "output is 'sigmoid' and pooling is 'none'; expected one answer a sequence for a "
                "single logit. Use output='softmax' for an answer a token"
            )
        rng = initializers.generator(seed)
        self.config = config
        self.n_classes = n_classes
        self.pooling = pooling
        self.output = output
        # The encoder is made first: the same seed means the same blocks, whatever the input.
        encoder = Encoder(config, seed=rng, dtype=dtype)
        self.embed = InputEmbedding(
            config, vocab_size=vocab_size, n_features=n_features, seed=rng, dtype=dtype
        )
        self.vocab_size = self.embed.vocab_size
        self.n_features = self.embed.n_features
        self.encoder = encoder
        self.pool = POOLINGS[pooling](config.d_model, rng, dtype)
        d_pooled = config.d_model * (config.max_len if pooling == "flatten" else 1)
        d_out = 1 if output == "sigmoid" else n_classes
        self.classify = Linear(d_pooled, d_out, seed=rng, dtype=dtype)
        self.flatten()
        self._workspaces: list[list[Workspace]] = []
        self._work = work(self)

    def arguments(self) -> dict[str, Any]:
        """Return what `__init__` was given beside the configuration and the seed."""
        return {
            "n_classes": self.n_classes,
            "vocab_size": self.vocab_size,
            "n_features": self.n_features,
            "pooling": self.pooling,
            "output": self.output,
            "dtype": self.dtype,
        }

    # Forward and backward -----------------------------------------------------------------------

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        embedded, embed_cache = self.embed.forward(x, context)  # [batch, length, d_model]
        encoded, encoder_cache = self.encoder.forward(embedded, context)
        pooled, pool_cache = self.pool.forward(encoded, context)  # [batch, d_pooled]
        logits, classify_cache = self.classify.forward(pooled, context)  # [batch, n_classes]
        return logits, (embed_cache, encoder_cache, pool_cache, classify_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return self.embed.backward(self._dembedded(dy, cache, gradients), cache[0], gradients)

    def backward_parameters(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        self.embed.backward_parameters(self._dembedded(dy, cache, gradients), cache[0], gradients)

    def _dembedded(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Return the gradient of what `embed` gave."""
        _, encoder_cache, pool_cache, classify_cache = cache
        dpooled = self.classify.backward(dy, classify_cache, gradients)
        dencoded = self.pool.backward(dpooled, pool_cache, gradients)
        return self.encoder.backward(dencoded, encoder_cache, gradients)

    def accumulate(
        self,
        x: Array,
        y: Array,
        context: Context,
        gradients: Gradients,
        *,
        weight: float = 1.0,
        label_smoothing: float = 0.0,
    ) -> Array:
        """Add the gradients of ``weight * loss`` to `gradients` and return ``weight * loss``.

        Parameters
        ----------
        x, y : array
            Checked and on the model's backend: see `prepare_batch`.
        context : Context
        gradients : Gradients
        weight : float
            This part's share of the batch.
        label_smoothing : float

        Returns
        -------
        loss : array of no axes
            On the model's backend.
        """
        logits, cache = self.forward(x, context)
        if self.output == "sigmoid":
            checks.rate("label_smoothing", label_smoothing)
            label_smoothing = float(label_smoothing)  # NumPy's would make float64 of float32
            targets = y.reshape(logits.shape).astype(logits.dtype)
            targets = targets * (1.0 - label_smoothing) + 0.5 * label_smoothing
            loss, loss_cache = F.binary_cross_entropy_with_logits(logits, targets)
            dlogits = F.binary_cross_entropy_with_logits_backward(weight, loss_cache)
        else:
            loss, loss_cache = kernels.forward(
                F.softmax_cross_entropy, context, logits, y, label_smoothing
            )
            dlogits = kernels.backward(weight, loss_cache)
        self.backward_parameters(dlogits, cache, gradients)
        return loss * weight

    @contextmanager
    def _team(self, workers: int | str, micro_batch: int | None = None) -> Iterator[Team]:
        """Lend a team whose memory stays with the model, for the next call to use again."""
        try:
            workspaces = self._workspaces.pop()
        except IndexError:  # the first call, or another thread is in one
            workspaces = []
        with Team(self, workers, micro_batch, workspaces, model_work=self._work) as team:
            yield team
        self._workspaces.append(workspaces)

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
        on_host = mask if isinstance(mask, np.ndarray) else None
        x, mask = self.prepare(x, mask)
        self.check_padding(on_host)
        types = self.prepare_types(types, x)
        with self._team("auto") as team:
            return team.forward(x, mask, types, on_host)

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
        self.check_padding(mask)
        with self._team(workers, micro_batch) as team:
            loss, gradients = team.step(
                x, y, mask, types=types, generator=generator, label_smoothing=label_smoothing
            )
        return float(loss), gradients

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
        return self.in_batches(self._probabilities, x, mask, batch_size, types, processes)

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
        checks.on_host_or("x", x, self.backend)
        self.embed.check_shape(x)
        for name, array in (("mask", mask), ("types", types)):
            if array is not None:  # batches are cut from it: a row too many would go unseen
                checks.on_host_or(name, array, self.backend)
                checks.shape(name, array, tuple(x.shape[:2]), "One entry for each token")
        self.check_padding(mask)
        if len(x) == 0:
            self.prepare(x, mask)  # an empty x still has to be of the right kind
            one_each = tuple(x.shape[1:2]) if self.pooling == "none" else ()
            logits = np.zeros((0, *one_each, self.classify.weight.shape[1]), dtype=self.dtype)
            return of_logits(asarray(logits, self.backend))
        n = choose_processes(processes, self, len(x), x.shape[1], self._work)
        if n > 1:

            def part(k: int) -> np.ndarray:
                rows = slice(k * len(x) // n, (k + 1) * len(x) // n)
                return self._rows(of_logits, x, mask, types, rows, batch_size)

            try:
                return np.concatenate(in_processes(part, n))
            except CannotCopyError:
                if processes is True:
                    raise
        return self._rows(of_logits, x, mask, types, slice(0, len(x)), batch_size)

    def _rows(
        self,
        of_logits: Callable[[Array], np.ndarray],
        x: Array,
        mask: Array | None,
        types: Array | None,
        rows: slice,
        at_once: int,
    ) -> np.ndarray:
        """Return what `of_logits` makes of some rows, so many at a time."""
        parts = []
        for start in range(rows.start, rows.stop, at_once):
            some = slice(start, min(start + at_once, rows.stop))
            logits = self(
                x[some],
                None if mask is None else mask[some],
                None if types is None else types[some],
            )
            parts.append(of_logits(logits))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _probabilities(self, logits: Array) -> np.ndarray:
        if self.output == "sigmoid":
            # sigmoid(-z), not 1 - sigmoid(z): a small probability keeps its digits
            return np.concatenate([to_numpy(F.sigmoid(z)[0]) for z in (-logits, logits)], axis=-1)
        return to_numpy(F.softmax(logits)[0])

    def log_probabilities(self, logits: Array) -> np.ndarray:
        """Return the logarithms of the probabilities of all classes, in float64 on the host.

        A probability too small for the model's dtype still has one.

        Parameters
        ----------
        logits : array, shape (..., n_classes), or (..., 1) with ``output="sigmoid"``
        """
        z = to_numpy(logits).astype("float64")
        if self.output == "sigmoid":
            z = np.concatenate((np.zeros_like(z), z), axis=-1)  # softmax of (0, z) is sigmoid
        shifted = z - z.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))

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
        x, mask = self.prepare(x, mask)
        return explain(self, x, mask, self.prepare_types(types, x))

    # The model's edge: what comes in is checked here, and uploaded --------------------------------

    def prepare(self, x: Array, mask: Array | None = None) -> tuple[Array, Array | None]:
        """Check inputs and bring them to the model's backend.

        Parameters
        ----------
        x, mask : array
            As in `__call__`.

        Raises
        ------
        TypeError
            Not an array, or of the wrong dtype.
        ValueError
            A wrong shape, a token id out of range, a sequence longer than max_len.
        """
        x, mask = self.embed.prepare(x, mask)
        length, max_len = x.shape[1], self.config.max_len
        if self.pooling == "flatten" and length != max_len:
            raise ValueError(
                f"x has length {length}; expected max_len = {max_len}, for pooling='flatten' needs "
                "every sequence at full length. Pad them and pass a mask, or use pooling='mean'"
            )
        return x, mask

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

    def prepare_types(self, types: Array | None, x: Array) -> Array | None:
        """Check token types and bring them to the model's backend; None stays None.

        Parameters
        ----------
        types : int array, shape (batch, length), or None
        x : array
            What they belong to.

        Raises
        ------
        TypeError
            Not an array, or not whole numbers.
        ValueError
            The model has no token types, a wrong shape, a type out of range.
        """
        return self.embed.prepare_types(types, x)

    def prepare_batch(
        self, x: Array, y: Array, mask: Array | None = None
    ) -> tuple[Array, Array, Array | None, np.ndarray]:
        """Check a batch with its labels and bring it to the model's backend.

        Parameters
        ----------
        x, y, mask : array
            As in `loss_and_gradients`.

        Returns
        -------
        x, y, mask : array
            On the model's backend.
        counts : numpy int array, shape (batch,)
            How many labels each sample has; labels that are already on a GPU count as full.

        Notes
        -----
        Without pooling, a token of padding has no label, whatever y says.
        """
        given_mask = mask
        x, mask = self.prepare(x, mask)
        if len(x) == 0:
            raise ValueError("x has no samples; expected a batch of at least 1")
        checks.on_host_or("y", y, self.backend)
        expected = tuple(x.shape[:2]) if self.pooling == "none" else (x.shape[0],)
        why = "One label for each sequence (each token without pooling)"
        if y.ndim == len(expected) + 1 and y.shape[-1] == 1:
            why += ": y[..., 0]"
        elif y.ndim == len(expected) + 1 and y.shape[-1] == self.n_classes:
            why += ": y.argmax(axis=-1) if this is one-hot"
        checks.shape("y", y, expected, why)
        counts = np.full(len(x), y.size // len(x))
        if self.pooling == "none" and mask is not None and y.dtype.kind in "iu":
            beside = given_mask if isinstance(y, np.ndarray) else mask  # no waiting for the device
            if backend_of(mask=beside) is backend_of(y=y):
                y = array_module(y).where(beside, y.astype("int64"), F.NO_LABEL)
        if isinstance(y, np.ndarray) and y.dtype.kind == "i" and self.pooling == "none":
            labelled = y != F.NO_LABEL
            counts = labelled.sum(axis=1)
            check_ids("y", y[labelled], self.n_classes, f"n_classes is {self.n_classes}")
        else:
            check_ids("y", y, self.n_classes, f"n_classes is {self.n_classes}")
        return x, asarray(y, self.backend), mask, counts
