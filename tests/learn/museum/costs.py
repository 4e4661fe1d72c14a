"""What bugs cost, measured when the page is written: words and numbers."""

from collections.abc import Callable

import numpy as np

from npformer.core import Context, Gradients
from npformer.learn.museum.bug import Bug
from npformer.learn.museum.probes import TOKENS, WIDTH, report_of, small
from npformer.models import Encoder
from npformer.optim import warmup_inverse_sqrt
from npformer.proof.cases.case import draw


def gradient_error(bug: Bug) -> str:
    """Measure the largest relative gradient error."""
    report = bug.report()
    return "" if report is None else f"relative gradient error {report.error:.2g}"


def in_the_output(bug: Bug) -> str:
    """Measure how far the outputs of a model with the bug are from those of one without."""
    context = Context(mask=bug.options.get("mask"))
    wrong, _ = bug.model().forward(TOKENS, context)
    right, _ = bug.model(bug.right()).forward(TOKENS, context)
    error = np.abs(wrong - right).max() / np.abs(right).max()
    return f"in a small model, outputs off by {error:.2g} times the largest of them"


def in_an_activation(bug: Bug) -> str:
    """Measure how far the values of a wrong activation are from the right ones."""
    grid = np.linspace(-4.0, 4.0, 801)
    return f"values off by up to {np.abs(bug.build()(grid) - bug.right()(grid)).max():.2g}"


def in_padded_tokens(bug: Bug) -> str:
    """Measure what two tokens of padding do to three that are kept."""
    x, mask = draw(1, 5, WIDTH), np.arange(5)[None] < 3
    mixer = bug.build()
    alone = mixer(x[:, :3])
    error = np.abs(mixer(x, mask)[:, :3] - alone).max() / np.abs(alone).max()
    return f"three tokens beside two of padding: off by {error:.2g} times the largest result"


def in_the_number_of_parameters(bug: Bug) -> str:
    """Count the parameters."""
    wrong, right = bug.build().n_parameters(), bug.right().n_parameters()
    return f"{wrong:,} parameters instead of {right:,}"


def in_adams_first_step(bug: Bug) -> str:
    """Measure the first step of Adam on three tensors, in units of the learning rate."""
    theta = {name: np.zeros(1) for name in "abc"}
    bug.build()(theta, lr=1.0).step({name: np.ones(1) for name in theta})
    steps = ", ".join(f"{-value[0]:.2g}" for value in theta.values())
    return f"the first step of three tensors is {steps} lr long; it should be 1, 1, 1"


def measure_steps_of_adam(bug: Bug) -> str:
    """Measure steps of Adam with a small constant gradient, in units of the learning rate."""
    parameters = {"theta": np.zeros(1)}
    optimizer = bug.build()(parameters, lr=1.0)
    positions = [0.0]
    for _ in range(12):
        optimizer.step({"theta": np.full(1, -1e-4)})
        positions.append(float(parameters["theta"][0]))
    lengths = ", ".join(f"{np.diff(positions)[i]:.2g}" for i in (0, 1, 11))
    return (
        f"with a constant gradient of 1e-4, the steps 1, 2 and 12 are {lengths} lr long; they "
        "should be 1, 1, 1"
    )


def measure_loss(bug: Bug) -> str:
    """Measure a loss and the right one, of the bug's inputs."""
    wrong, _ = bug.build()[0](*bug.inputs)
    right, _ = bug.right()[0](*bug.inputs)
    n_tokens = bug.inputs[1].size
    return (
        f"one of {n_tokens} tokens is mistaken by 30 or so, and the loss is {wrong:.3g} instead of "
        f"{right:.3g}"
    )


def measure_at_two_shapes(bug: Bug) -> str:
    """Measure the gradient error at the museum's usual shape, and with one token more."""
    verdicts = []
    for shape in ((2, 4, WIDTH), (2, 5, WIDTH)):
        report = report_of(bug.build(), draw(*shape))
        verdict = "none" if report.passed else f"{report.error:.1g}"
        verdicts.append(f"{verdict} at the shape {shape}")
    return f"relative gradient error {', '.join(verdicts)}"


def measure_means_of_dropout(bug: Bug) -> str:
    """Measure the mean of dropout's result for ones, at three rates."""
    means = []
    for rate in (0.1, 0.5, 0.8):
        dropout = bug.build()
        dropout.rate = rate
        context = Context(training=True, generator=np.random.default_rng(0))
        y, _ = dropout.forward(np.ones((1000, 1000)), context)
        means.append(f"{y.mean():.2g}")
    return f"ones become {', '.join(means)} on average, at rates of 0.1, 0.5, 0.8"


def in_the_warm_up(bug: Bug) -> str:
    """Measure where a warm-up is after a hundred steps of a small encoder."""
    model = Encoder(small(), dtype="float64")
    by_name = {name: value.copy() for name, value in model.parameters().items()}
    optimizer = bug.build()(by_name, schedule=warmup_inverse_sqrt(4000))
    gradients = {name: np.ones_like(value) for name, value in by_name.items()}
    for _ in range(100):
        optimizer.step(gradients)
    return (
        f"after 100 steps of an encoder with {len(by_name)} tensors, a warm-up over 4000 steps is "
        f"at step {optimizer.steps}"
    )


def in_gradients_of_a_constant_row(bug: Bug) -> str:
    """Count the gradients that are NaN after one token of zeros."""
    model = Encoder(small(norm="pre"), dtype="float64")
    for block in model.blocks:
        block.mixer_norm, block.feed_forward_norm = bug.build(), bug.build()
    x = draw(1, 4, WIDTH)
    x[0, 3] = 0.0
    y, cache = model.forward(x, Context())
    gradients = Gradients(model)
    model.backward(np.ones_like(y), cache, gradients)
    lost = sum(int(np.isnan(g).sum()) for g in gradients.values())
    return (
        f"one token of zeros, such as padding, in a pre-norm encoder: {lost:,} of "
        f"{model.n_parameters():,} gradients are NaN"
    )


def in_variances(bug: Bug) -> str:
    """Compute the variances of rows of mean 1e4 in one pass, in float32."""
    x = (1e4 + draw(8, 4)).astype("float32")
    mean = x.mean(axis=-1)
    variances = (x * x).mean(axis=-1) - mean * mean
    listed = ", ".join(f"{value:g}" for value in variances)
    return f"at mean 1e4 in float32 the variance of eight rows is {listed}; it should be near 1"


COSTS: dict[str, Callable[[Bug], str]] = {
    "softmax_divided_by_the_batch": gradient_error,
    "DropoutThatRemembers": gradient_error,
    "DropoutThatScalesAtEvaluation": in_the_output,
    "LayerNormWithoutGamma": gradient_error,
    "AdamWithTheLayersNumber": in_adams_first_step,
    "AdamThatCountsTensors": in_the_warm_up,
    "AdamWithOneBeta": in_adams_first_step,
    "attention_that_asks_the_keys": in_the_output,
    "LayerNormWithoutEpsilon": in_gradients_of_a_constant_row,
    "attention_over_an_axis_of_length_1": in_the_output,
    "GELUThatIgnoresItsOption": in_an_activation,
    "LayerNormInOnePass": in_variances,
    "FourierThatIgnoresTheMask": in_padded_tokens,
    "FourierWithACorner": in_the_output,
    "softmax_that_guesses_its_axis": in_the_output,
    "BlockWithOneNorm": in_the_number_of_parameters,
    "EncoderOfOneBlock": in_the_number_of_parameters,
    "BlockWithOneResidual": in_the_output,
    "attention_that_looks_ahead": in_the_output,
    "AttentionThatMergesByReshape": in_the_output,
    "attention_with_the_mask_turned_round": in_the_output,
    "cross_entropy_with_an_epsilon": measure_loss,
    "cross_entropy_divided_by_the_batch": gradient_error,
    "AdamWithAFrozenStep": measure_steps_of_adam,
    "AdamWithoutCorrection": measure_steps_of_adam,
    "AdamWithTwoRoots": measure_steps_of_adam,
    "AdamWithEpsilonUnderTheRoot": measure_steps_of_adam,
    "embedding_that_assigns": gradient_error,
    "embedding_that_averages": gradient_error,
    "cross_entropy_that_looks_for_its_target": gradient_error,
    "TiedOutputThatAddsNothing": gradient_error,
    "BlockThatForgetsItsResidual": gradient_error,
    "BlockThatNormsItsResidual": gradient_error,
    "LinearThatReshapesItsGradient": gradient_error,
    "softmax_with_its_diagonal": gradient_error,
    "GELUThatKeepsItsResult": gradient_error,
    "DropoutDividedByItsRate": measure_means_of_dropout,
    "attention_that_masks_its_keys_twice": gradient_error,
    "LayerNormDividedByItsTokens": measure_at_two_shapes,
    "attention_without_a_scale": in_the_output,
}
"""What to measure, by the name of the bug; the others have no number."""
