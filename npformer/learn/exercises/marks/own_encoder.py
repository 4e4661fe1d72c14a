"""own_encoder: an encoder made of the reader's own pairs, trained on digits."""

from npformer.learn.exercises.encoder import mark, unsolved
from npformer.learn.exercises.exercise import Exercise, Wrong

EXERCISE = Exercise(
    name="own_encoder",
    title="an encoder of your own pairs, trained on digits",
    page="chapters/block.md",
    hints=(
        "Write the forward passes first, one function per line, each with a cache of its own. Then "
        "read them from bottom to top: each line has a backward line that takes the same cache.",
        "A residual connection passes its gradient on twice: around the function, and through it. "
        "Go through the blocks in reverse order. All images have the same positions, so their "
        "gradient is a sum over the batch; nobody needs the gradient of x.",
        "A step: encoder and cross_entropy of the images in `rows` and of their labels; "
        "cross_entropy_backward of 1.0, encoder_backward of what it gives; then adam_update for "
        "each name, whose three results are the new p, m and v of that name.",
    ),
    why="""\
Each backward line answers a forward line, from the last one to the first. At h = h + f(h) the
gradient goes around f and through it, and both add up: dh = dh + f_backward(dh). Adding positions
gives them the same gradient as h, summed over the batch that shares them. In a step, the loss is
the end of the chain, so its own gradient is 1.""",
    mark=mark,
    unsolved=unsolved,
    seconds=60.0,
    wrong=(
        Wrong(
            "h goes around the feed-forward network too, and that way back is missing",
            "    dh = dh + d\n",
            "    dh = d\n",
        ),
        Wrong(
            "h goes around the attention too, and that way back is missing",
            "return dh + d, g",
            "return d, g",
        ),
        Wrong(
            "the attention is left out of the way back: its dh comes around it alone",
            "return dh + d, g",
            "return dh, g",
        ),
        Wrong(
            "the blocks come in the order of the forward pass; backwards it is the reverse",
            "in reversed(range(N_BLOCKS))",
            "in range(N_BLOCKS)",
        ),
        Wrong(
            "what comes back through a block does not reach the next one",
            "d, of_block = block_backward",
            "_, of_block = block_backward",
        ),
        Wrong("the residual connection around the attention is missing", "h = h + a", "h = a"),
        Wrong(
            "the residual connection around the feed-forward network is missing",
            "return h + f, (",
            "return f, (",
        ),
        Wrong("the ReLU is missing", "r, active = relu(u)", "(_, active), r = relu(u), u"),
        Wrong("the attention has 4 heads, not one", "*weights, N_HEADS)", "*weights, 1)"),
        Wrong(
            "the second norm takes the h from before the attention",
            "    h = h + a\n    n, norm2 = layer_norm(h,",
            "    before, h = h, h + a\n    n, norm2 = layer_norm(before,",
        ),
        Wrong(
            "the labels are those of other images: `rows` says which",
            "labels[rows]",
            "labels[begin : begin + batch]",
        ),
        Wrong(
            "it climbs: the gradient of the loss with respect to itself is 1",
            "cross_entropy_backward(1.0,",
            "cross_entropy_backward(-1.0,",
        ),
        Wrong(
            "m and v are not kept: each step starts from 0",
            "p[name], m[name], v[name] =",
            "p[name], _, _ =",
        ),
        Wrong(
            "every step takes itself for the first one: look at t",
            "v[name], t, rate",
            "v[name], 1, rate",
        ),
    ),
)
