"""Wrong blocks and a wrong encoder: what is shared, and what is added."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from __future__ import annotations

from typing import Any

from npformer.core import Array, Context, Seed
from npformer.models import Encoder, EncoderBlock, EncoderConfig


class BlockWithOneNorm(EncoderBlock):
    """One layer norm stands at both places of a block.

    Parameters
    ----------
    config, mixer, seed, dtype
        As in `EncoderBlock`.

    Notes
    -----
    Who: Someone who writes self.norm once and uses it twice.

    Why: The paper has LayerNorm(x + Sublayer(x)) for each sublayer, with a gamma and a beta each.

    Cost: Scale and shift of one place are those of the other: a smaller model than was meant.

    Caught: By no gradient check, for both uses add their gradients, but by a count:
    `a_block_owns_two_norms`.
    """

    def __init__(
        self, config: EncoderConfig, mixer: str = "attention", *, seed: Seed, dtype: str = "float32"
    ) -> None:
        super().__init__(config, mixer, seed=seed, dtype=dtype)
        self.feed_forward_norm = self.mixer_norm


class BlockWithOneResidual(EncoderBlock):
    """The second residual connection adds the input of the block.

    Parameters
    ----------
    config, mixer, seed, dtype
        As in `EncoderBlock`, with post-norm.

    Notes
    -----
    Who: Someone who keeps `residual = x` from the top of the block.

    Why: h = norm(x + mixer(x)), y = norm(h + feed_forward(h)). With x in place of h, the result of
    the mixer has no path past the feed-forward network.

    Cost: What tokens say to each other has to pass through every feed-forward network on its way.

    Caught: By differences and by the complex step, as long as the backward pass is the block's own.
    And by doing it once more, part by part: `each_residual_adds_its_own_input`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        residual = x
        y, y_cache = self.mixer.forward(x, context)
        y, drop_cache = self.mixer_dropout.forward(y, context)
        x, norm_cache = self.mixer_norm.forward(residual + y, context)
        z, z_cache = self.feed_forward.forward(x, context)
        z, z_drop_cache = self.feed_forward_dropout.forward(z, context)
        x, z_norm_cache = self.feed_forward_norm.forward(residual + z, context)
        return x, ((y_cache, drop_cache, norm_cache), (z_cache, z_drop_cache, z_norm_cache))


class EncoderOfOneBlock(Encoder):
    """One block is put into the list n times.

    Parameters
    ----------
    config, seed, dtype
        As in `Encoder`.

    Notes
    -----
    Who: Someone who writes [block] * n, or appends the block that was made before the loop.

    Why: n references to one object: weights tied across depth, an n-th of the parameters.

    Cost: A much smaller model than was meant, which trains as if nothing were wrong.

    Caught: By no gradient check, for all uses add their gradients, but by a count:
    `layers_are_tied_only_when_asked`.
    """

    def __init__(self, config: EncoderConfig, seed: Seed = 0, dtype: str = "float32") -> None:
        super().__init__(config, seed, dtype)
        self.blocks = [self.blocks[0]] * config.n_layers
        self.flatten()
