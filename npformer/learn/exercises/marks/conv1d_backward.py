"""conv1d_backward: the backward pass of a convolution."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

X = draw(2, 5, 3)

EXERCISE = Exercise(
    name="conv1d_backward",
    title="dx, dW and db of a convolution over the sequence",
    page="chapters/linear.md",
    hints=(
        "For one offset k the forward pass is a linear map of padded[:, k : k + length]. You know "
        "its backward pass. What happens to a token that several offsets look at?",
        "Make an array of zeros for the gradient of `padded`. Go through the offsets, and add what "
        "each of them sends to the slice that it looked at. dW has one matrix for each offset.",
        "For each k: the slice k : k + length of dpadded gets dy times W[k] transposed, added to "
        "what is there; dW[k] is the slice of `padded` transposed times dy, summed over the batch. "
        "dx is dpadded without the p zeros on either side.",
    ),
    why="""\
y_t = sum_k padded_{t+k} W_k + b: for each offset k a linear map of a shifted view.
The views overlap, so padded_s is in y_{s-k} for every k that fits:
    dpadded_s = sum_k dy_{s-k} W_k^T,   dW_k = sum over batch and t of padded_{t+k}^T dy_t.
x is padded without its border, whose gradient nobody needs. b is in every y_t.""",
    mark=Pair(
        "conv1d",
        "conv1d_backward",
        ("dx", "dW", "db"),
        (
            Trial(
                "a kernel of size 3",
                (X, draw(3, 3, 4, seed=1), draw(4, seed=2)),
                {"the number of rows": 10, "the batch size": 2, "the kernel's size": 3},
            ),
            Trial("a kernel of size 1", (X, draw(1, 3, 4, seed=1), draw(4, seed=2))),
            Trial("a kernel of size 5", (X, draw(5, 3, 2, seed=1), draw(2, seed=2))),
            Trial("larger arrays", (draw(5, 20, 4), draw(11, 4, 5, seed=1), draw(5, seed=2))),
        ),
    ),
    wrong=(
        Wrong(
            "each offset overwrites what the one before it gave; a token that is seen by several "
            "offsets gets all of their gradients",
            "] += dy",
            "] = dy",
        ),
        Wrong(
            "the zeros around the sequence are still there",
            "dx = dpadded[:, p : p + length]",
            "dx = dpadded",
        ),
        Wrong(
            "it is shifted by p tokens: the zeros in front of the sequence are counted as tokens",
            "dx = dpadded[:, p : p + length]",
            "dx = dpadded[:, :length]",
        ),
        Wrong(
            "the kernel is turned round: each offset uses another one's matrix",
            "W[k].T",
            "W[kernel - 1 - k].T",
        ),
        Wrong(
            "every offset is given the same tokens, as if the kernel had size 1",
            "padded[:, k : k + length], dy",
            "padded[:, p : p + length], dy",
        ),
    ),
)
