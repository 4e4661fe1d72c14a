# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "numpy==2.4.6"]
# ///
"""Answers of ONNX' reference evaluator."""

import numpy as np
import onnx_operators
import onnx_reductions  # noqa: F401 - its calls
from calls import Library, call, main
from onnx.reference import ReferenceEvaluator
from onnx_graph import feeds_of, model_of, to_single

SINGLE = ("Gelu",)
"""Operators that it computes in float32."""


def run(operator, inputs, n_outputs=1, opset=20, **attributes):
    if operator in SINGLE:
        inputs = to_single(inputs)
    return results_of(operator, inputs, n_outputs, opset=opset, **attributes)[-1]


def results_of(operator, inputs, n_outputs, **options):
    model = model_of(operator, inputs, n_outputs, **options)
    return ReferenceEvaluator(model).run(None, feeds_of(inputs))


TRAINING = {"domain": "ai.onnx.preview.training", "opset": 1}


@call
def adam(theta, gradients, lr, betas, eps):
    theta, gradients = theta.astype("float32"), gradients.astype("float32")
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for step, gradient in enumerate(gradients, start=1):
        inputs = [np.array(lr, "float32"), np.array(step), theta, gradient, first, second]
        eps_of_step = eps * (1 - betas[1] ** step) ** 0.5  # it stands before v's correction
        theta, first, second = results_of(
            "Adam", inputs, 3, alpha=betas[0], beta=betas[1], epsilon=eps_of_step, **TRAINING
        )
    return theta.astype("float32")  # attributes of nodes are float32


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    # Adam's own steps do not depend on theta; its norm_coefficient is not a decay of weights.
    steps = [adam(0 * theta, gradients[:n], lr, betas, eps) for n in range(len(gradients) + 1)]
    for change in np.diff(np.array(steps, "float64"), axis=0):
        theta = (1 - lr * weight_decay) * theta + change
    return theta.astype("float32")


@call
def sgd(theta, gradients, lrs, momentum, nesterov):
    theta, gradients = theta.astype("float32"), gradients.astype("float32")
    velocity = np.zeros_like(theta)
    mode = "nesterov" if nesterov else "standard"
    for step, (lr, gradient) in enumerate(zip(lrs, gradients, strict=True)):
        inputs = [np.array(lr, "float32"), np.array(step), theta, gradient, velocity]
        theta, velocity = results_of(
            "Momentum",
            inputs,
            2,
            alpha=momentum,
            beta=1.0,
            norm_coefficient=0.0,
            mode=mode,
            **TRAINING,
        )
    return theta.astype("float32")  # attributes of nodes are float32


def array(values, dtype):
    return values.astype(dtype) if dtype else values


onnx_operators.RUN = run
main(Library(array))
