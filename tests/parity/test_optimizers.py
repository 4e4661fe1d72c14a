"""PyTorch's optimizers follow the formulas that optimcheck compares with."""

import pytest

import npformer as nf
from tests.needs import NEEDS

torch = pytest.importorskip("torch", reason=NEEDS["torch"])


def step(optimizer, parameters, gradients):
    """Take a step of PyTorch on NumPy's arrays."""
    group = optimizer.param_groups[0]
    if len(group["params"]) == 1:  # the one that the constructor must be given
        group["params"] = [torch.nn.Parameter(torch.from_numpy(x)) for x in parameters]
    for tensor, gradient in zip(group["params"], gradients, strict=True):
        tensor.grad = torch.from_numpy(gradient)
    optimizer.step()
    return [tensor.detach().numpy() for tensor in group["params"]]


@pytest.mark.parametrize(
    ("name", "options", "kind", "words"),
    [
        ("SGD", {}, "sgd", "gradient descent"),
        ("SGD", {"weight_decay": 0.1}, "sgd", "gradient descent"),
        ("SGD", {"momentum": 0.9}, "momentum", "gradient descent with momentum"),
        (
            "SGD",
            {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
            "nesterov",
            "gradient descent with Nesterov's momentum",
        ),
        ("Adagrad", {}, "adagrad", "Adagrad"),
        ("RMSprop", {"alpha": 0.98}, "rmsprop", "RMSProp"),
        ("Adam", {"eps": 1e-7}, "adam", "Adam"),
        ("Adam", {"weight_decay": 0.1}, "adam", "Adam"),
        ("Adam", {"amsgrad": True, "weight_decay": 0.1}, "amsgrad", "AMSGrad"),
        ("AdamW", {"weight_decay": 0.1, "betas": (0.8, 0.99)}, "adamw", "AdamW"),
    ],
)
def test_pytorch_s_optimizer_is_what_its_name_says(name, options, kind, words):
    def make():
        only = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        return getattr(torch.optim, name)([only], lr=0.01, **options)

    assert nf.optimcheck(make, step=step, kind=kind).diagnosis == words
