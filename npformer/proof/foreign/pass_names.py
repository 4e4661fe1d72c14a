"""What people call the passes of a layer, and where it leaves its output."""

FORWARD_NAMES = ("forward", "forward_pass", "fwd", "fprop", "call", "apply", "__call__")
BACKWARD_NAMES = (
    "backward",
    "backward_pass",
    "backprop",
    "back_propagate",
    "backpropagate",
    "bwd",
    "bprop",
    "gradient",
    "grad",
    "derivative",
    "deriv",
    "prime",
    "compute_gradient",
    "compute_gradients",
)
VALUE_NAMES = (
    "calculate",
    "loss",
    "compute_loss",
    "calculate_loss",
    "cost",
    "compute_cost",
    "compute",
    "objective",
    "value",
    "evaluate",
    "f",
    "function",
)
"""What people call a loss, or another function, beside which another method has its gradient."""

GRADIENT_WORDS = ("{}_gradient", "{}_grad", "{}_derivative", "{}_prime", "d_{}", "d{}", "grad_{}")
"""What that method may be called."""

OUTPUT_ATTRIBUTES = ("output", "out", "y", "outputs", "result")
"""Where a layer may leave its output, if its forward pass returns None."""
