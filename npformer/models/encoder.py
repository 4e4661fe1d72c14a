"""The encoder: blocks of a token mixer and a feed-forward network."""

from collections.abc import Callable
from functools import partial
from typing import Any

from npformer.core import Array, Context, Layer, Seed, checks, generators
from npformer.layers.pooling import PaddedChain
from npformer.layers.state import States
from npformer.models.block import EncoderBlock
from npformer.models.config import EncoderConfig


class Encoder(PaddedChain):
    """A stack of blocks: (batch, length, d_model) to the same shape, with 0 at padding.

    What x and dy hold at padding, even NaN, changes nothing.

    Attributes
    ----------
    blocks : list of EncoderBlock
        With ``config.share_layers``, the same block n_layers times.
    final_norm : Layer or None
        Only in pre-norm encoders.
    """

    def __init__(self, config: EncoderConfig, seed: Seed = 0, dtype: str = "float32") -> None:
        advice = "Write npformer.EncoderConfig(d_model=64, ...)"
        checks.instance("config", config, EncoderConfig, advice)
        rng = generators.from_seed(seed)
        self._stack(config, dtype, partial(EncoderBlock, config, seed=rng, dtype=dtype))

    def _stack(self, config: EncoderConfig, dtype: str, make: Callable[..., Any]) -> None:
        """Make a block for each layer, or with `share_layers` one that is there n_layers times."""
        self.config, mixers = config, config.mixers()
        shared = config.share_layers
        made = mixers[:1] if shared else mixers
        self.blocks = [make(mixer, layer=i) for i, mixer in enumerate(made)]
        self.blocks *= len(mixers) // len(made)
        self.final_norm: Layer | None = None
        if config.norm == "pre":
            self.final_norm = config.make_norm(dtype)
        self.flatten()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        self.check(x)
        return super().forward(x, context)

    def start(self, batch: int, length: int) -> States:
        """Return the state before the first token of each sequence: that of each block's mixer."""
        return States(block.start(batch, length) for block in self.blocks)

    def prefill(self, x: Array, states: States, context: Context) -> tuple[Array, States]:
        """Return y at evaluation for the tokens after those of a state, and the new state.

        See `Mixer.prefill`.
        """
        after = []
        for block, state in zip(self.blocks, states, strict=True):
            x, new = block.prefill(x, state, context)
            after.append(new)
        if self.final_norm is not None:
            x, _ = self.final_norm.forward(x, context)
        return x, States(after)

    def chain(self) -> list[Layer]:
        """Return the blocks, and the final norm if there is one."""
        return [*self.blocks] if self.final_norm is None else [*self.blocks, self.final_norm]

    def check(self, x: Array) -> None:
        """Check x, (batch, length, d_model)."""
        checks.sequences(x, self.config.d_model, self.config.max_len, "Features are the last axis")
