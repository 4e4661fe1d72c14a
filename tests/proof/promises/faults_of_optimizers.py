"""Wrong optimizers: right ones with a line or two replaced."""

import numpy as np

ADAM = """
class Adam:
    def __init__(self, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.weight_decay = weight_decay
        self.m, self.v, self.t = {}, {}, 0

    def step(self, params, grads):
        self.t += 1
        b1, b2 = self.beta1, self.beta2
        for key, g in grads.items():
            t = self.t
            m = self.m.get(key, 0.0)
            v = self.v.get(key, 0.0)
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g**2
            self.m[key] = m
            self.v[key] = v
            m_hat = m / (1 - b1**t)
            v_hat = v / (1 - b2**t)
            params[key] -= self.lr * self.weight_decay * params[key]
            params[key] -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)
"""

SHARED = """
        for name, g in grads.items():
            key = 0
            params[key] = params[name]"""
"""All parameters have one key. They change in place."""

OF_ADAM = {
    "t is frozen at 1, so the bias correction never changes": ("t = self.t", "t = 1"),
    "t is counted from 0, so the first correction divides by 0": ("t = self.t", "t = self.t - 1"),
    "t is one too large: it is counted before and after the step, or from 2": (
        "t = self.t",
        "t = self.t + 1",
    ),
    "t counts the parameters that were updated, not the steps": (
        "t = self.t",
        "self.n = getattr(self, 'n', 0) + 1; t = self.n",
    ),
    "without bias correction": (
        "m_hat = m / (1 - b1**t)\n            v_hat = v / (1 - b2**t)",
        "m_hat, v_hat = m, v",
    ),
    "only m has its bias correction": ("v_hat = v / (1 - b2**t)", "v_hat = v"),
    "only v has its bias correction": ("m_hat = m / (1 - b1**t)", "m_hat = m"),
    "the corrected moments are kept as the moments of the next step": (
        "params[key] -= self.lr * self.w",
        "self.m[key], self.v[key] = m_hat, v_hat\n            params[key] -= self.lr * self.w",
    ),
    "its root is taken twice": ("np.sqrt(v_hat)", "np.sqrt(np.sqrt(v_hat))"),
    "it divides by v, without a root": ("np.sqrt(v_hat)", "v_hat"),
    "epsilon is inside the root": ("(np.sqrt(v_hat) + self.eps)", "np.sqrt(v_hat + self.eps)"),
    "there is no epsilon: a gradient of 0 gives 0 / 0": (
        "(np.sqrt(v_hat) + self.eps)",
        "np.sqrt(v_hat)",
    ),
    "beta1 is used in place of beta2": ("b1, b2 = self.beta1, self.beta2", "b1 = b2 = self.beta1"),
    "beta1 and beta2 are swapped": ("b1, b2 = self", "b2, b1 = self"),
    "g is not multiplied by 1 - beta1": ("(1 - b1) * g\n", "g\n"),
    "g^2 is not multiplied by 1 - beta2": ("(1 - b2) * g**2", "g**2"),
    "v averages g, not g^2": ("g**2", "g"),
    "the moments start from 0 at each step": ("self.m[key] = m\n            self.v[key] = v", ""),
    "moments are shared between parameters": ("for key, g in grads.items():", SHARED),
    "the step is added and not subtracted, so it climbs": (
        "-= self.lr * m_hat",
        "+= self.lr * m_hat",
    ),
    "it is multiplied by lr twice": ("self.lr * m_hat", "self.lr**2 * m_hat"),
}
"""The words of each fault, and the text of ADAM that is replaced, by what."""

DECAYS = {
    "weight decay is added to the gradient (L2), not decoupled": (
        "t = self.t",
        "t = self.t; g = g + self.weight_decay * params[key]",
    ),
    "weight decay is left out": ("", ""),
    "weight decay is not multiplied by lr": (
        "t = self.t",
        "t = self.t; params[key] -= self.weight_decay * params[key]",
    ),
    "weight decay is applied to the parameters after their update": (
        "(np.sqrt(v_hat) + self.eps)",
        "(np.sqrt(v_hat) + self.eps); params[key] *= 1 - self.lr * self.weight_decay",
    ),
}
"""Of AdamW, without its line of weight decay."""

DECAY = "            params[key] -= self.lr * self.weight_decay * params[key]\n"


def make(name, source, replaced="", by=""):
    """Return a class from a source, after replacing a text that it must contain."""
    if replaced not in source:
        raise ValueError(f"the source has no {replaced!r}")
    if replaced:
        source = source.replace(replaced, by)
    namespace = {"np": np}
    exec(source, namespace)
    return namespace[name]


def adam_with(replaced, by):
    return make("Adam", ADAM, replaced, by)


def adamw_with(replaced, by):
    return make("AdamW", ADAM.replace(DECAY, "").replace("class Adam", "class AdamW"), replaced, by)
