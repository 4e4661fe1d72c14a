"""LanguageModel: the model of the next token that users call."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.core import Array, Seed, checks
from npformer.core.inputs import Sequences
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.functional import softmax
from npformer.models import EncoderConfig, NextToken
from npformer.models.losses import Loss, SoftmaxCrossEntropy
from npformer.models.trainable.model import Model
from npformer.training.generation.choosing import Choice
from npformer.training.generation.writing import (
    NOTHING,
    check_prompts,
    list_tokens,
    write_tokens,
)
from npformer.training.storage.models import MODELS


class LanguageModel(Model, NextToken):
    """A model of the next token, which does not look ahead: logits = output(encoder(embed(x))).

    ``model(ids)`` takes (batch, length) and returns (batch, length, vocab_size): row t holds the
    logits of token t + 1. To train it, y is x shifted by one::

        model = npformer.LanguageModel(config, vocab_size=65)
        npformer.fit(model, (ids[:, :-1], ids[:, 1:]))

    where -1 in y marks a token that is not learned.

    Parameters
    ----------
    config : EncoderConfig
        With ``causal=True``.
    vocab_size : int
        Token ids run from 0 to vocab_size - 1.
    tied : bool
        Whether the output multiplies by the table of the embedding (Press & Wolf, 2017). If not, it
        is a separate linear map, with a bias if the configuration has ``bias=True``.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    """

    loss: Loss = SoftmaxCrossEntropy()
    targets_of = 0

    def __init__(
        self,
        config: EncoderConfig,
        vocab_size: int,
        *,
        tied: bool = True,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        super().__init__(config, vocab_size, tied=tied, seed=seed, dtype=dtype)
        self.n_classes = self.vocab_size

    @refuse_unknown_arguments
    def __call__(self, x: Array, mask: Array | None = None, types: Array | None = None) -> Array:  # type: ignore[override]
        """Return the logits at evaluation.

        Parameters
        ----------
        x : int array, shape (batch, length)
            On the host or on the model's backend; host arrays are uploaded.
        mask : bool array, shape (batch, length), optional
            True = keep, False = padding.
        types : int array, shape (batch, length), optional
            Token types, from 0 to n_token_types - 1; 0 if not given.

        Returns
        -------
        logits : array, shape (batch, length, vocab_size)
        """
        return super().__call__(x, mask=mask, types=types)

    @refuse_unknown_arguments
    def generate(
        self,
        prompt: Any,
        n: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        cache: bool = True,
        *,
        stop: Any = None,
        never: Any = None,
        probabilities: bool = False,
    ) -> Any:
        """Return the n tokens that the model writes after a prompt.

        Row i draws from ``numpy.random.SeedSequence(seed, spawn_key=(i,))``, and sees only its own
        prompt: other rows change its probabilities by rounding alone. Beyond max_len tokens a row
        continues from its last max_len // 2.

        Parameters
        ----------
        prompt : int array, shape (length,) or (batch, length), or list of rows of any lengths
            At least one token for each row.
        n : int
            How many tokens to write.
        temperature : float
            Divides the logits. 0: always the likeliest token.
        top_k : int, optional
            Only this many of the likeliest tokens may be drawn.
        top_p : float, optional
            Only the likeliest tokens may be drawn: as few as have probabilities that sum to this.
        seed : int
        cache : bool
            Whether to cache keys and values of earlier tokens; `state_bytes` returns how much
            memory that takes. If not, all tokens are computed again for each new one.
        stop : int or list of int, optional
            Tokens at which a row ends.
        never : int or list of int, optional
            Tokens that are not written, such as ids that no token of a tokenizer has.
        probabilities : bool
            Whether to also return the model's probability of each token, before temperature,
            `top_k`, `top_p` and `never` change it.

        Returns
        -------
        tokens : int array, shape (n,), or (batch, n) for several prompts
            -1 after a stop token.
        probabilities : float64 array of that shape
            Only if requested. 0 after a stop token.
        """
        checks.flag("probabilities", probabilities)
        choice = Choice(temperature, top_k, top_p, self._never(never))
        steps, shape, is_batch = self._start_writing(prompt, n, stop, cache, seed, choice)
        tokens = np.full(shape, NOTHING)
        token_probabilities = np.zeros(shape)
        for k, (next_tokens, logits) in enumerate(steps):
            tokens[:, k] = next_tokens
            if probabilities:
                p, _ = softmax(logits.astype("float64"))
                p_of_next = p[np.arange(len(next_tokens)), next_tokens]
                token_probabilities[:, k] = np.where(next_tokens == NOTHING, 0.0, p_of_next)
        if not is_batch:
            tokens = tokens[0]
            token_probabilities = token_probabilities[0]
        return (tokens, token_probabilities) if probabilities else tokens

    @refuse_unknown_arguments
    def stream(
        self,
        prompt: Any,
        n: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        cache: bool = True,
        *,
        stop: Any = None,
        never: Any = None,
    ) -> Iterator[Any]:
        """Yield the tokens of `generate` one by one: an int, or (batch,) for several prompts."""
        choice = Choice(temperature, top_k, top_p, self._never(never))
        steps, _, is_batch = self._start_writing(prompt, n, stop, cache, seed, choice)
        return (tokens if is_batch else int(tokens[0]) for tokens, _ in steps)

    def _start_writing(
        self, prompt: Any, n: Any, stop: Any, cache: bool, seed: int, choice: Choice
    ) -> tuple[Iterator[tuple[np.ndarray, np.ndarray]], tuple[int, int], bool]:
        """Return the steps, the shape of all tokens, and whether there were several prompts."""
        n = checks.positive("n", n)
        checks.flag("cache", cache)
        prompts, is_batch = check_prompts(prompt, self.vocab_size)
        stop_tokens = list_tokens("stop", stop, self.vocab_size)
        steps = write_tokens(self, prompts, n, choice, seed, cache, stop_tokens)
        return steps, (len(prompts), n), is_batch

    def _never(self, never: Any) -> list[int]:
        """Return the tokens that are never written; at least one must be left."""
        tokens = list_tokens("never", never, self.vocab_size)
        if len(set(tokens)) == self.vocab_size:
            raise ValueError(f"never has all {self.vocab_size} tokens; expected some to be left")
        return tokens

    def check_inputs(self, inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
        """Check ids, masks and types."""
        self.embed.check(inputs[0].x, inputs[0].mask, inputs[0].types)
        return inputs


MODELS["LanguageModel"] = LanguageModel
