"""Wrong blocks, and a wrong encoder."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from typing import Any

from npformer.core import Array, Context
from npformer.learn.museum.table import GRADIENT, bug
from npformer.models import Encoder, EncoderBlock, EncoderConfig


@bug(17, "a_block_owns_two_norms")
class BlockWithOneNorm(EncoderBlock):
    """A block uses one layer norm at both places.

    Who: Someone who writes self.norm once and uses it twice.
    Why: In the paper, each sublayer's LayerNorm(x + Sublayer(x)) has its own gamma and beta.
    Cost: The two places share scale and shift: a smaller model than was meant.
    Caught: Counting parameters. No gradient check, because the gradients of both uses add up.
    """

    def __init__(self, config: EncoderConfig, **settings: Any) -> None:
        super().__init__(config, **settings)
        self.feed_forward_norm = self.mixer_norm


@bug(17, "layers_are_tied_only_when_asked")
class EncoderOfOneBlock(Encoder):
    """The encoder's list holds the same block n times.

    Who: Someone who writes [block] * n, or appends a block that was made before the loop.
    Why: n references to one object are n layers with tied weights.
    Cost: A model with an n-th of the parameters, which trains as if nothing were wrong.
    Caught: Counting parameters. No gradient check, because the gradients of all uses add up.
    """

    def __init__(self, config: EncoderConfig, **settings: Any) -> None:
        super().__init__(config, **settings)
        self.blocks = [self.blocks[0]] * config.n_layers
        self.flatten()


@bug(17, *GRADIENT, "each_residual_adds_its_own_input")
class BlockWithOneResidual(EncoderBlock):
    """The second residual connection adds the input of the block.

    Who: Someone who keeps `residual = x` from the top of the block.
    Why: h = norm(x + mixer(x)), y = norm(h + feed_forward(h)). With x in place of h, the mixer's
    result has no path around the feed-forward network.
    Cost: What the mixer computes reaches the next block only through the feed-forward network.
    Caught: Computing the result step by step. Gradient checks too, if the backward pass is that of
    a right block.
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
