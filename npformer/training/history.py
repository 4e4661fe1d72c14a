"""What a training leaves behind: its history, or the error that a loss is not finite."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite.

    Attributes
    ----------
    step : int
        The step, counted from 1.
    tensor : str
        The first tensor, in the order of computation, that is not finite.
    """

    def __init__(self, step: int, tensor: str, notes: str, loss: str = "the loss") -> None:
        super().__init__(
            f"{loss} is not finite at step {step}; the first tensor that holds NaN or infinity "
            f"is {tensor}. Use a smaller lr, a warm-up or clip_norm=1.0, and look for NaN in the "
            f"data. {notes}"
        )
        self.step = step
        self.tensor = tensor


@dataclass
class History:
    """What happened, one entry an epoch.

    Attributes
    ----------
    train_loss : list of float
        Mean over the epoch's steps, in training mode, in nats.
    validation_loss, validation_accuracy : list of float
        At evaluation, after the epoch. Empty without validation data.
    lr : list of float
        Learning rate of the epoch's last step.
    seconds : list of float
        Time of the epoch.
    best_epoch : int or None
        Counted from 1: the epoch whose weights the model has now; None if it was interrupted or
        stopped in the middle of one and has no best weights to go back to.
    stopped : str
        "finished", "patience", "interrupted", or the reason that a callback gave for stopping. A
        callback's `on_end` may also see "error".
    """

    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    stopped: str = "finished"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)
