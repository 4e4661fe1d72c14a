"""Adam and AdamW."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, draw_questions
from npformer.optim import Adam


def adam(arrays, settings, dy):
    """Return theta after a step for each row of gradients."""
    theta = arrays["theta"].copy()
    optimizer = Adam({"theta": theta}, **settings)
    for gradient in arrays["gradients"]:
        optimizer.step({"theta": gradient})
    return {"y": theta}


def draw_adam(call: str):
    def draw(rng: np.random.Generator) -> Question:
        n_steps, n = rng.integers(1, 9, size=2)
        arrays = {"theta": rng.normal(size=n), "gradients": rng.normal(size=(n_steps, n))}
        settings = {
            "lr": float(rng.uniform(1e-3, 0.1)),
            "betas": [float(rng.uniform(0.5, 0.95)), float(rng.uniform(0.9, 0.999))],
            "eps": float(10.0 ** -rng.integers(3, 10)),
        }
        if call == "adamw":
            settings["weight_decay"] = float(rng.uniform(0.0, 0.1))
        return ask(
            lambda arrays, settings, dy: adam(
                arrays, settings | {"betas": tuple(settings["betas"])}, dy
            ),
            call,
            arrays=arrays,
            settings=settings,
            dtype="float64",
        )

    return draw


PARTS = [
    Part(
        "adam",
        "Adam",
        "theta = theta - lr m_hat / (sqrt(v_hat) + eps). Where eps stands matters once gradients "
        "are as small as it.",
        (
            ask(
                adam,
                "adam_default",
                "theta = 0 after a step with gradient 1e-8 and lr 1",
                name="tiny",
                arrays={"theta": [0.0], "gradients": [[1e-8]]},
                settings={"lr": 1.0},
            ),
        ),
        draw_questions(draw_adam("adam"), seed=21),
    ),
    Part(
        "adamw",
        "AdamW",
        "Adam with theta = (1 - lr weight_decay) theta before each step.",
        (
            ask(
                adam,
                "adamw_default",
                "theta = 1 after a step with gradient 0 and lr 0.1",
                name="decay",
                arrays={"theta": [1.0], "gradients": [[0.0]]},
                settings={"lr": 0.1},
            ),
        ),
        draw_questions(draw_adam("adamw"), seed=22),
    ),
]
