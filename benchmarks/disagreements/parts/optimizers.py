"""Optimizers, clipping and schedules."""

from collections.abc import Callable

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, draw_questions
from npformer.optim import SGD, Adam, clip_by_global_norm, cosine


def adam(arrays, settings, dy):
    """Return theta after a step for each row of gradients."""
    settings = dict(settings)
    if "betas" in settings:
        settings["betas"] = tuple(settings["betas"])
    theta = arrays["theta"].copy()
    optimizer = Adam({"theta": theta}, **settings)
    for gradient in arrays["gradients"]:
        optimizer.step({"theta": gradient})
    return {"y": theta}


def sgd(arrays, settings, dy):
    """Return theta after a step for each row of gradients, each with its learning rate."""
    theta = arrays["theta"].copy()
    rates = settings["lrs"]
    optimizer = SGD(
        {"theta": theta},
        lr=1.0,
        momentum=settings["momentum"],
        nesterov=settings["nesterov"],
        schedule=lambda step: rates[step - 1],
    )
    for gradient in arrays["gradients"]:
        optimizer.step({"theta": gradient})
    return {"y": theta}


def clip(arrays, settings, dy):
    gradients = {"a": arrays["a"].copy(), "b": arrays["b"].copy()}
    clip_by_global_norm(gradients, settings["max_norm"])
    return {"y": np.concatenate([gradients["a"], gradients["b"]])}


def cosine_factors(arrays, settings, dy):
    schedule = cosine(settings["total"], settings["warmup"])
    return {"y": [schedule(step) for step in range(1, settings["n_steps"] + 1)]}


def draw_adam(call: str) -> Callable[[np.random.Generator], Question]:
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
        return ask(adam, call, arrays=arrays, settings=settings, dtype="float64")

    return draw


def draw_sgd(rng: np.random.Generator) -> Question:
    n_steps, n = rng.integers(1, 9, size=2)
    arrays = {"theta": rng.normal(size=n), "gradients": rng.normal(size=(n_steps, n))}
    settings = {
        "lrs": rng.uniform(0.01, 0.5, size=n_steps).tolist(),
        "momentum": float(rng.uniform(0.1, 0.95)),
        "nesterov": bool(rng.integers(0, 2)),
    }
    return ask(sgd, "sgd", arrays=arrays, settings=settings, dtype="float64")


def draw_clip(rng: np.random.Generator) -> Question:
    n, m = rng.integers(1, 9, size=2)
    arrays = {"a": rng.normal(size=n), "b": rng.normal(size=m)}
    settings = {"max_norm": float(rng.uniform(0.1, 4.0))}
    return ask(clip, "clip", arrays=arrays, settings=settings, dtype="float64")


def draw_cosine(rng: np.random.Generator) -> Question:
    warmup = int(rng.integers(1, 6))
    total = warmup + int(rng.integers(2, 20))
    settings = {"total": total, "warmup": warmup, "n_steps": total}
    return ask(cosine_factors, "cosine", arrays={}, settings=settings, dtype="float64")


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
            ask(
                adam,
                "adam_default",
                "theta = 0 after a step with gradient 1 and lr 1",
                name="one",
                arrays={"theta": [0.0], "gradients": [[1.0]]},
                settings={"lr": 1.0},
            ),
            ask(
                adam,
                "adam_default",
                "theta = 0 after steps with gradients 1 and -1, and lr 1",
                name="two",
                arrays={"theta": [0.0], "gradients": [[1.0], [-1.0]]},
                settings={"lr": 1.0},
            ),
            ask(
                adam,
                "adam_default",
                "theta = 1 after a step with gradient 0 and lr 0.1",
                name="half",
                arrays={"theta": [1.0], "gradients": [[0.0]]},
                settings={"lr": 0.1},
                dtype="float16",
            ),
            ask(
                adam,
                "adam_default",
                "theta = 0 after a step with gradient 1e20 and lr 1",
                name="huge",
                arrays={"theta": [0.0], "gradients": [[1e20]]},
                settings={"lr": 1.0},
            ),
        ),
        draw_questions(draw_adam("adam"), seed=21),
    ),
    Part(
        "adamw",
        "AdamW",
        "Adam with theta = (1 - lr weight_decay) theta before each step. npformer's default is no "
        "decay.",
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
    Part(
        "sgd",
        "Gradient descent with momentum",
        "u = momentum u + g, theta = theta - lr u. What differs is whether the velocity holds the "
        "learning rate, which a schedule shows.",
        (
            ask(
                sgd,
                "sgd_default",
                "theta = 0, momentum 0.9, two gradients 1, lr 1 and then 0.1",
                name="schedule",
                arrays={"theta": [0.0], "gradients": [[1.0], [1.0]]},
                settings={"lrs": [1.0, 0.1], "momentum": 0.9, "nesterov": False},
            ),
        ),
        draw_questions(draw_sgd, seed=23),
    ),
    Part(
        "clipping",
        "Clipping by the global norm",
        "Gradients times max_norm / (norm + 1e-6), if that is below 1.",
        (
            ask(
                clip,
                "clip",
                "gradients [3], [4], max_norm 1",
                name="value",
                arrays={"a": [3.0], "b": [4.0]},
                settings={"max_norm": 1.0},
            ),
            ask(
                clip,
                "clip_default",
                "gradients [3e-6], [4e-6], max_norm 1e-6",
                name="small",
                arrays={"a": [3e-6], "b": [4e-6]},
                settings={"max_norm": 1e-6},
            ),
            ask(
                clip,
                "clip_default",
                "gradients [0], [0], max_norm 1",
                name="zero",
                arrays={"a": [0.0], "b": [0.0]},
                settings={"max_norm": 1.0},
            ),
            ask(
                clip,
                "clip_default",
                "gradients [3e20], [4e20], max_norm 1",
                name="huge",
                arrays={"a": [3e20], "b": [4e20]},
                settings={"max_norm": 1.0},
            ),
        ),
        draw_questions(draw_clip, seed=24),
    ),
    Part(
        "schedules",
        "Cosine schedules with a warm-up",
        "The factor of the learning rate of each step. npformer counts steps from 1, so that the "
        "first step changes something.",
        (
            ask(
                cosine_factors,
                "cosine_default",
                "the first four of 10 steps, 2 of them warm-up",
                name="first",
                arrays={},
                settings={"total": 10, "warmup": 2, "n_steps": 4},
            ),
        ),
        draw_questions(draw_cosine, seed=25),
    ),
]
