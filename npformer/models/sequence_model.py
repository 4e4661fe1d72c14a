"""SequenceModel: the mathematics of a `SequenceClassifier`."""

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Seed, checks, generators
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.layers import POOLINGS, Linear, Pooling
from npformer.models.config import EncoderConfig
from npformer.models.encoder import Encoder
from npformer.models.input_embedding import InputEmbedding
from npformer.models.losses import LOSSES, Classification, Loss


@drop_class_from_names
class SequenceModel(Layer):
    """logits = classify(pool(encoder(embed(x)))).

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
        At least 2; for a loss without classes, how many numbers are predicted.
    vocab_size, n_features : int, optional
        Exactly one of the two: x holds token ids, or feature vectors.
    pooling, output : str
        Names in `POOLINGS` and in `LOSSES`.
    padding_id : int, optional
        The token id of padding: without a mask, one is made from this id.
    expects_mask : bool
        Whether inputs are expected to come with a mask.
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        config: EncoderConfig,
        n_classes: int,
        *,
        vocab_size: int | None = None,
        n_features: int | None = None,
        pooling: str = "mean",
        output: str = "softmax",
        padding_id: int | None = None,
        expects_mask: bool = False,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        n_classes = checks.positive("n_classes", n_classes)
        POOLINGS.parse(pooling, "pooling")
        LOSSES.parse(output, "output")
        loss = LOSSES.make(output)
        _check_classes(n_classes, output, pooling, loss)
        rng = generators.from_seed(seed)
        self.config = config
        self.n_classes = n_classes
        self.pooling = pooling
        self.output = output
        self.loss = loss
        self.padding_id = check_padding_id(padding_id, vocab_size)
        self.expects_mask = checks.flag("expects_mask", expects_mask)
        # The encoder is made first, so the same seed means the same blocks for any input.
        encoder = Encoder(config, seed=rng, dtype=dtype)
        self.embed = InputEmbedding(
            config, vocab_size=vocab_size, n_features=n_features, seed=rng, dtype=dtype
        )
        self.vocab_size = self.embed.vocab_size
        self.n_features = self.embed.n_features
        self.encoder = encoder
        self.pool = POOLINGS.make(pooling, config.d_model, rng, dtype)
        d_pooled = config.d_model
        if isinstance(self.pool, Pooling):
            d_pooled = self.pool.d_pooled(config.d_model, config.max_len)
        self.classify = Linear(d_pooled, loss.n_outputs(n_classes), seed=rng, dtype=dtype)
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {
            "n_classes": self.n_classes,
            "vocab_size": self.vocab_size,
            "n_features": self.n_features,
            "pooling": self.pooling,
            "output": self.output,
            "padding_id": self.padding_id,
            "expects_mask": self.expects_mask,
            "dtype": self.dtype,
        }

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        embedded, embed_cache = self.embed.forward(x, context)  # [batch, length, d_model]
        encoded, encoder_cache = self.encoder.forward(embedded, context)  # the same shape
        pooled, pool_cache = self.pool.forward(encoded, context)  # [batch, d_pooled]
        logits, classify_cache = self.classify.forward(pooled, context)  # [batch, n_classes]
        return logits, (embed_cache, encoder_cache, pool_cache, classify_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        embed_cache, encoder_cache, pool_cache, classify_cache = cache
        dpooled = self.classify.backward(dy, classify_cache, gradients)
        dencoded = self.pool.backward(dpooled, pool_cache, gradients)
        dembedded = self.encoder.backward(dencoded, encoder_cache, gradients)
        return self.embed.backward(dembedded, embed_cache, gradients)


def check_padding_id(padding_id: int | None, vocab_size: int | None) -> int | None:
    """Check that the id of padding is in the vocabulary, and return it."""
    if padding_id is None:
        return None
    padding_id = checks.whole("padding_id", padding_id, at_least=0)
    if vocab_size is None:
        raise ValueError(
            f"padding_id is {padding_id} and the model takes feature vectors; expected None. Pass "
            "a mask with them"
        )
    if padding_id >= vocab_size:
        raise ValueError(
            f"padding_id is {padding_id}; expected a token id from 0 to {vocab_size - 1}, because "
            f"vocab_size is {vocab_size}"
        )
    return padding_id


def _check_classes(n_classes: int, output: str, pooling: str, loss: Loss) -> None:
    """Check that the loss can tell apart this number of classes."""
    if not isinstance(loss, Classification):
        return
    if n_classes < 2:
        raise ValueError(f"n_classes is {n_classes}; expected a whole number of at least 2")
    if loss.n_outputs(n_classes) == n_classes:
        return
    if n_classes != 2:
        raise ValueError(
            f"output is {output!r} and n_classes is {n_classes}; expected 2 classes, which one "
            "logit can tell apart. Use output='softmax'"
        )
    if pooling == "none":
        raise ValueError(
            f"output is {output!r} and pooling is 'none'; expected one answer per sequence for a "
            "single logit. Use output='softmax' for one answer per token"
        )
