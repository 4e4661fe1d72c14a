"""Wrong tests of gradients: they pass, whatever some gradient is.

A test gets a pair (forward, backward) of arrays x, W1 and W2, as in x + relu(x W1) W2, and raises
AssertionError if one of the three gradients is wrong.
"""

from collections.abc import Callable, Sequence

import numpy as np

from npformer.core import Array
from npformer.learn.museum.attention_by import Pair
from npformer.learn.museum.table import plain
from npformer.proof.cases.case import draw

SHAPES = (3, 4), (4, 5), (5, 4)
"""Of x, W1 and W2."""


def differences(
    forward: Callable[..., tuple[Array, object]], arrays: Sequence[Array], dy: Array
) -> list[Array]:
    """Return the central differences of sum(y * dy) by each entry of each array."""
    gradients = [np.zeros_like(array) for array in arrays]
    for array, gradient in zip(arrays, gradients, strict=True):
        for at in np.ndindex(array.shape):
            value = array[at]
            array[at] = value + 1e-5
            above, _ = forward(*arrays)
            array[at] = value - 1e-5
            below, _ = forward(*arrays)
            array[at] = value
            gradient[at] = ((above - below) * dy).sum() / 2e-5
    return gradients


def compare(
    analytic: Sequence[Array],
    numeric: Sequence[Array],
    rtol: float = 1e-5,
    atol: float = 1e-8,
) -> None:
    """Compare the gradients of a backward pass with differences."""
    for gradient, expected in zip(analytic, numeric, strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=atol)


def check_at_drawn_values(pair: Pair) -> None:
    """Compare gradients with differences, at drawn values and for a drawn dy: a right test."""
    forward, backward = pair
    arrays = [draw(*shape, seed=seed) for seed, shape in enumerate(SHAPES)]
    y, cache = forward(*arrays)
    dy = draw(*y.shape, seed=3)
    compare(backward(dy, cache), differences(forward, arrays, dy))


@plain(33, "a_test_fails_where_a_gradient_is_wrong", right=check_at_drawn_values)
def check_at_an_output_of_0(pair: Pair) -> None:
    """A gradient is tested where the output layer is 0, as it is drawn at first.

    Who: 4 of 26 public hand-written NumPy Transformers have a test that cannot fail: of this kind
    or another with the same number.
    Why: In y = x + relu(x W1) W2 the gradient of W1 is a product with W2. Where W2 is 0 it is 0,
    and so is any multiple of it, of any sign.
    Cost: All parameters below the layer that begins at 0 are untested, and the test says that they
    were compared: "error 0.0".
    Caught: Making each gradient wrong in turn, and running the test. It has to fail each time.
    """
    forward, backward = pair
    arrays = [draw(3, 4), draw(4, 5, seed=1), np.zeros((5, 4))]
    y, cache = forward(*arrays)
    dy = draw(*y.shape, seed=3)
    compare(backward(dy, cache), differences(forward, arrays, dy))


@plain(33, "a_test_fails_where_a_gradient_is_wrong", right=check_at_drawn_values)
def check_with_a_dy_of_ones(pair: Pair) -> None:
    """A gradient is tested with a dy of ones, as if the loss were the sum of the outputs.

    Who: 4 of 26 public hand-written NumPy Transformers have a test that cannot fail: of this kind
    or another with the same number.
    Why: The sum of a softmax is 1, and that of a layer norm 0, whatever their inputs are: the
    gradient of a constant is 0. Elsewhere ones look the same after any permutation of rows.
    Cost: All that lies below a layer norm or a softmax is untested.
    Caught: Making each gradient wrong in turn, and running the test. It has to fail each time.
    """
    forward, backward = pair
    arrays = [draw(*shape, seed=seed) for seed, shape in enumerate(SHAPES)]
    y, cache = forward(*arrays)
    dy = np.ones_like(y)
    compare(backward(dy, cache), differences(forward, arrays, dy))


@plain(33, "a_test_fails_where_a_gradient_is_wrong", right=check_at_drawn_values)
def check_with_an_absolute_tolerance(pair: Pair) -> None:
    """Gradients of small weights are tested with an absolute tolerance.

    Who: 4 of 26 public hand-written NumPy Transformers have a test that cannot fail: of this kind
    or another with the same number.
    Why: With weights drawn from N(0, 0.02^2), gradients are about as small, and those of a mean
    smaller still. An error of 0.01 is then larger than most of them. The error has to be divided by
    the size of the gradient.
    Cost: A gradient that is twice too large passes, and a gradient of zeros does.
    Caught: Making each gradient wrong in turn, and running the test. It has to fail each time.
    """
    forward, backward = pair
    arrays = [draw(3, 4), 0.02 * draw(4, 5, seed=1), 0.02 * draw(5, 4, seed=2)]
    y, cache = forward(*arrays)
    dy = draw(*y.shape, seed=3) / y.size
    compare(backward(dy, cache), differences(forward, arrays, dy), rtol=0.0, atol=1e-2)
