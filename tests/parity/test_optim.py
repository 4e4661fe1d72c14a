import math

import numpy as np
import pytest

import npformer as nf
from npformer import optim

from .helpers import assert_close, leaf, torch
from .options import untried_options

STEPS = 100


def of_a_model():
    config = nf.EncoderConfig(d_model=4, n_layers=1, n_heads=2, d_ff=6, max_len=5)
    model = nf.SequenceClassifier(config, 3, n_features=5, dtype="float64")
    parameters = model.parameters()
    gradients = nf.Gradients(model)
    assert parameters.flat is not None
    return parameters, gradients


def in_a_dict():
    rng = np.random.default_rng(3)
    parameters = {"W": rng.standard_normal((4, 5)), "b": rng.standard_normal(5)}
    return parameters, {name: np.zeros_like(value) for name, value in parameters.items()}


WHERE = pytest.mark.parametrize("where", [of_a_model, in_a_dict], ids=["flat", "dict"])


def train_both(parameters, gradients, ours, theirs, leaves, after_step=lambda: None):
    """Take STEPS steps with the same gradients, now large, now small; compare after each."""
    rng = np.random.default_rng(4)
    for step in range(STEPS):
        for name, tensor in leaves.items():
            size = 10.0 ** rng.uniform(-3.0, 1.0)
            gradients[name][...] = size * rng.standard_normal(gradients[name].shape)
            tensor.grad = torch.tensor(gradients[name])
        ours.step(gradients)
        theirs.step()
        after_step()
        for name, tensor in leaves.items():
            assert_close(parameters[name], tensor, f"{name} after step {step + 1}")


OPTIMIZERS = [
    (nf.Adam, torch.optim.Adam, {"betas": (0.9, 0.999), "eps": 1e-8}),
    (nf.Adam, torch.optim.Adam, {"betas": (0.9, 0.98), "eps": 1e-9}),
    (nf.Adam, torch.optim.Adam, {"betas": (0.5, 0.9), "eps": 1e-2}),
    (nf.Adam, torch.optim.Adam, {"betas": (0.0, 0.0), "eps": 1e-3}),
    (nf.Adam, torch.optim.AdamW, {"weight_decay": 0.01}),
    (nf.Adam, torch.optim.AdamW, {"weight_decay": 0.5}),
    (nf.SGD, torch.optim.SGD, {"momentum": 0.0, "nesterov": False}),
    (nf.SGD, torch.optim.SGD, {"momentum": 0.9, "nesterov": False}),
    (nf.SGD, torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (nf.SGD, torch.optim.SGD, {"momentum": 0.3, "nesterov": True}),
]


@WHERE
@pytest.mark.parametrize(("ours", "theirs", "options"), OPTIMIZERS)
def test_an_optimizer_agrees(where, ours, theirs, options):
    parameters, gradients = where()
    leaves = {name: leaf(value) for name, value in parameters.items()}
    optimizer = ours(parameters, lr=0.03, **options)
    torch_optimizer = theirs(leaves.values(), lr=0.03, **options)
    train_both(parameters, gradients, optimizer, torch_optimizer, leaves)


BY_NAME = [
    {"weight_decay": 0.5, "no_decay": ("*bias", "*gamma", "*beta")},
    {"layer_decay": 0.5},
    {"layer_decay": 0.5, "weight_decay": 0.1, "no_decay": ("*bias",)},
]
"""Options by which parameters differ. PyTorch has groups for that."""


@pytest.mark.parametrize("options", BY_NAME)
def test_adam_with_groups_agrees(options):
    parameters, gradients = of_a_model()
    leaves = {name: leaf(value) for name, value in parameters.items()}
    decay, no_decay = options.get("weight_decay", 0.0), options.get("no_decay", ())
    layers_above = {"embed": 2, "encoder.blocks.0": 1}  # all else lies above the only block
    groups = []
    for name, tensor in leaves.items():
        k = next((n for begin, n in layers_above.items() if name.startswith(begin + ".")), 0)
        undecayed = any(name.endswith(pattern.removeprefix("*")) for pattern in no_decay)
        groups.append(
            {
                "params": [tensor],
                "lr": 0.03 * options.get("layer_decay", 1.0) ** k,
                "weight_decay": 0.0 if undecayed else decay,
            }
        )
    assert len({(group["lr"], group["weight_decay"]) for group in groups}) > 1
    optimizer = nf.Adam(parameters, lr=0.03, **options)
    train_both(parameters, gradients, optimizer, torch.optim.AdamW(groups), leaves)


# What the schedules are, written out a second time. PyTorch counts its steps from 0.


def inverse_sqrt_of_the_paper(step):
    """Vaswani et al. (2017), equation (3), for d_model 64 and 10 steps of warm-up."""
    return 64**-0.5 * min(step**-0.5, step * 10**-1.5)


def cosine_with_warmup(step):
    """10 of 80 steps of warm-up, down to a tenth."""
    if step < 10:
        return step / 10
    return 0.1 + 0.9 * math.cos(math.pi / 2 * min((step - 10) / 70, 1.0)) ** 2


def cosine_to_0(step):
    return 0.5 + 0.5 * math.cos(math.pi * min(step / 80, 1.0))


def linear_with_warmup(step):
    """10 of 80 steps of warm-up, down to a tenth."""
    return step / 10 if step < 10 else 1.0 - 0.9 * min((step - 10) / 70, 1.0)


def linear_to_0(step):
    return 1.0 - min(step / 80, 1.0)


SCHEDULES = [
    (optim.constant, {}, 0.03, lambda step: 1.0, 0.03),
    (optim.warmup_inverse_sqrt, {"warmup": 10}, 640**-0.5, inverse_sqrt_of_the_paper, 1.0),
    (optim.cosine, {"total": 80, "warmup": 10, "final": 0.1}, 0.03, cosine_with_warmup, 0.03),
]
OTHER_SCHEDULES = [
    (optim.cosine, {"total": 80}, cosine_to_0),
    (optim.linear, {"total": 80}, linear_to_0),
    (optim.linear, {"total": 80, "warmup": 10, "final": 0.1}, linear_with_warmup),
]
SCHEDULED = [
    (nf.Adam, torch.optim.AdamW, {"weight_decay": 0.0}),
    (nf.Adam, torch.optim.AdamW, {"weight_decay": 0.1}),
]


@pytest.mark.parametrize("kind", [nf.Adam, nf.SGD, *optim.SCHEDULES.values()])
def test_every_option_has_a_row(kind):
    of_optimizers = [*OPTIMIZERS, *((nf.Adam, None, options) for options in BY_NAME)]
    of_optimizers += [(ours, None, {"schedule": "constant"}) for ours in (nf.Adam, nf.SGD)]
    calls = [(({}, 0.03), options) for ours, _, options in of_optimizers if ours is kind]
    of_schedules = [*SCHEDULES, *OTHER_SCHEDULES]
    calls += [((), options) for schedule, options, *_ in of_schedules if schedule is kind]
    assert calls
    untried = untried_options(kind, calls)
    assert [words for words in untried if words != "lr: never the default"] == []


@pytest.mark.parametrize(("kind", "options", "reference"), OTHER_SCHEDULES)
def test_a_schedule_is_its_formula(kind, options, reference):
    schedule = kind(**options)
    for step in range(1, STEPS + 1):
        assert_close(schedule(step), np.float64(reference(step)), f"factor of step {step}")


def test_sgd_with_a_schedule_agrees():
    parameters, gradients = in_a_dict()
    leaves = {name: leaf(value) for name, value in parameters.items()}
    ours = nf.SGD(parameters, lr=0.03, momentum=0.9, schedule=optim.cosine(80))
    theirs = torch.optim.SGD(leaves.values(), lr=0.03, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(theirs, lambda epoch: cosine_to_0(epoch + 1))
    train_both(parameters, gradients, ours, theirs, leaves, scheduler.step)


@WHERE
@pytest.mark.parametrize(("ours", "theirs", "settings"), SCHEDULED)
@pytest.mark.parametrize(
    ("kind", "options", "lr", "reference", "lr_reference"),
    SCHEDULES,
    ids=["constant", "inverse sqrt", "cosine"],
)
def test_schedule_agrees_with_lambda_lr(
    where, ours, theirs, settings, kind, options, lr, reference, lr_reference
):
    schedule = kind(**options)
    parameters, gradients = where()
    leaves = {name: leaf(value) for name, value in parameters.items()}
    optimizer = ours(parameters, lr=lr, schedule=schedule, **settings)
    torch_optimizer = theirs(leaves.values(), lr=lr_reference, **settings)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        torch_optimizer, lambda epoch: reference(epoch + 1)
    )

    def after_step():
        scheduler.step()
        assert_close(optimizer.current_lr(), scheduler.get_last_lr()[0], "learning rate")

    train_both(parameters, gradients, optimizer, torch_optimizer, leaves, after_step)


@WHERE
@pytest.mark.parametrize("max_norm", [0.5, 1000.0], ids=["clipped", "left alone"])
def test_clipping_agrees(where, max_norm):
    _, gradients = where()
    rng = np.random.default_rng(5)
    for gradient in gradients.values():
        gradient[...] = rng.standard_normal(gradient.shape)
    leaves = {name: leaf(gradient) for name, gradient in gradients.items()}
    for name, tensor in leaves.items():
        tensor.grad = torch.tensor(gradients[name])

    norm = nf.clip_by_global_norm(gradients, max_norm)
    assert_close(norm, torch.nn.utils.clip_grad_norm_(leaves.values(), max_norm), "norm")
    for name, tensor in leaves.items():
        assert_close(gradients[name], tensor.grad, name)
    assert (optim.global_norm(gradients) < norm) == (max_norm < norm)
