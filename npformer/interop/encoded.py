"""Running many texts through an encoder: batches of similar length, shared among threads."""

from collections.abc import Callable

import numpy as np

from npformer.core import Array, asarray
from npformer.core.inputs import as_given, as_inputs
from npformer.data.lengths import LongestFirst
from npformer.data.samples import Batch
from npformer.engine.snapshot import snapshot_of
from npformer.engine.threads import side_by_side
from npformer.engine.worker_counts import choose_workers
from npformer.interop.text_inputs import Inputs
from npformer.training.trainable.text_encoder import TextEncoder

Convert = Callable[[Array, Array | None], np.ndarray]
"""Makes an entry for each text of the vectors of its tokens and their mask; None keeps all."""

TOKENS_AT_ONCE = 256
"""Tokens in a batch on a CPU: with more, the hidden layer of a feed-forward network of BERT's sizes
no longer fits into the cache when its activation reads it."""


def encoded_in_batches(
    encoder: TextEncoder,
    convert: Convert,
    inputs: Inputs,
    batch_size: int,
) -> np.ndarray:
    """Convert the last layer's vectors of each batch, and join the results in order.

    ``convert(hidden, mask)`` returns an entry for each text; the mask is None if it keeps all.
    """
    ids, mask, types = inputs
    backend = encoder.backend
    if not len(ids):
        none = np.zeros((0, 1, encoder.config.d_model), encoder.dtype)
        return convert(asarray(none, backend), None)
    tokens = TOKENS_AT_ONCE if backend == "numpy" else None
    batches = LongestFirst(as_inputs(encoder, ids, mask, types), batch_size, True, tokens)
    seconds = snapshot_of(encoder).cost.seconds(len(ids), batches.mean_length())
    n = choose_workers("auto", backend, len(ids), int(mask.sum()), seconds)

    def convert_batch(batch: Batch) -> np.ndarray:
        some_ids, some_mask, some_types = as_given(batch.inputs)
        kept = None if np.all(some_mask) else asarray(some_mask, backend)
        return convert(encoder(some_ids, kept, some_types).hidden, kept)

    several = [*batches.share(0, 1)]
    made = side_by_side(convert_batch, several, n) if n > 1 else [*map(convert_batch, several)]
    return batches.in_order([made])
