"""Wrong blocks, and a wrong encoder."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from typing import Any

from npformer.core import Array, Context, Gradients
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


@bug(31, *GRADIENT, "gradient_of_a_block")
class BlockThatForgetsItsResidual(EncoderBlock):
    """The backward pass of a block goes through the feed-forward network, and not around it.

    Who: 4 of 26 public hand-written NumPy Transformers leave a residual connection out of the
    backward pass, or send it through the norm.
    Why: h is used twice in h + feed_forward(h). Its gradient is dsum, from the first term, and the
    network's backward pass of dsum, from the second.
    Cost: What the residual connection is for: gradients that reach the first block as they are. In
    a deep model they vanish.
    Caught: Gradient checks of a block. Each of its layers alone is right.
    """

    def backward(self, dz: Array, cache: Any, gradients: Gradients) -> Array:
        (mixer_cache, drop_cache, norm_cache), network_caches = cache
        network_cache, network_drop_cache, network_norm_cache = network_caches
        dsum = self.feed_forward_norm.backward(dz, network_norm_cache, gradients)
        dy = self.feed_forward_dropout.backward(dsum, network_drop_cache, gradients)
        dx = self.feed_forward.backward(dy, network_cache, gradients)
        dsum = self.mixer_norm.backward(dx, norm_cache, gradients)
        dy = self.mixer_dropout.backward(dsum, drop_cache, gradients)
        return dsum + self.mixer.backward(dy, mixer_cache, gradients)


@bug(31, *GRADIENT, "gradient_of_a_block", config={"norm": "pre"})
class BlockThatNormsItsResidual(EncoderBlock):
    """The backward pass of a pre-norm block sends the residual's gradient through the norm.

    Who: 4 of 26 public hand-written NumPy Transformers do this, or leave a residual connection out
    of the backward pass.
    Why: In z = h + feed_forward(norm(h)), the first h passes no norm, so that its gradient is dz.
    Only what comes back from the network passes the norm's backward pass.
    Cost: The gradient that should pass unchanged is scaled by gamma / std, and loses its mean and
    what it has along the norm's output; in a stack of blocks, once more in each.
    Caught: Gradient checks of a block. Each of its layers alone is right.
    """

    def backward(self, dz: Array, cache: Any, gradients: Gradients) -> Array:
        (mixer_cache, drop_cache, norm_cache), network_caches = cache
        network_cache, network_drop_cache, network_norm_cache = network_caches
        dy = self.feed_forward_dropout.backward(dz, network_drop_cache, gradients)
        dy = self.feed_forward.backward(dy, network_cache, gradients)
        dx = self.feed_forward_norm.backward(dz + dy, network_norm_cache, gradients)
        dy = self.mixer_dropout.backward(dx, drop_cache, gradients)
        dy = self.mixer.backward(dy, mixer_cache, gradients)
        return self.mixer_norm.backward(dx + dy, norm_cache, gradients)
