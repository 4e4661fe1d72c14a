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
)
OUTPUT_ATTRIBUTES = ("output", "out", "y", "outputs", "result")
"""Where a layer may leave its output, if its forward pass returns None."""
