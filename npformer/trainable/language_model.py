"""LanguageModel: the model of the next token that users call."""

from npformer.core.inputs import Sequences
from npformer.losses import Loss, SoftmaxCrossEntropy
from npformer.models import NextToken
from npformer.storage.models import MODELS
from npformer.trainable.model import Model


class LanguageModel(Model, NextToken):
    """A model of the next token: logits = output(encoder(embed(x))), which does not look ahead.

    ``model(ids)`` takes (batch, length) and returns (batch, length, vocab_size): row t holds the
    logits of token t + 1. To train it, y is x shifted by one::

        model = npformer.LanguageModel(config, vocab_size=65)
        npformer.fit(model, (ids[:, :-1], ids[:, 1:]))

    where -1 in y marks a token that is not to be learned.

    Parameters
    ----------
    config : EncoderConfig
        With ``causal=True``.
    vocab_size : int
        Token ids run from 0 to vocab_size - 1.
    tied : bool
        Whether the output multiplies by the table of the embedding (Press & Wolf, 2017). If not, it
        is a linear map of its own.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    """

    loss: Loss = SoftmaxCrossEntropy()
    targets_of = 0

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """How many tokens there are to choose from."""
        return self.vocab_size

    def check_inputs(self, inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
        """Check ids, masks and types."""
        self.embed.check(inputs[0].x, inputs[0].mask)
        self.embed.check_types(inputs[0].types, inputs[0].x)
        return inputs


MODELS["LanguageModel"] = LanguageModel
