"""What each argument of an optimizer's method is, by its name: a parameter, its gradient, t ..."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from npformer.proof.promises.setting_names import SETTING_NAMES, plain_name, word_set

COUNTERS = word_set(
    "t step steps n_step iteration iterations iter it i epoch timestep time_step global_step "
    "n_iter num_iter count"
)
KEYS = word_set("name key layer_id layer_idx layer_name idx index param_name param_id id layer_num")
STATES = word_set(
    "m v s u state states cache config optim_config velocity velocities moments momentums "
    "opt_state optimizer_state momentum_buffer exp_avg exp_avg_sq sdw vdw m_t v_t mt vt "
    "first_moment second_moment h memory"
)
LAYERS = word_set("layer layers model network net module nn modules")
PAIRS = word_set(
    "grads_and_vars params_and_grads params_grads pairs param_grad_pairs grads_and_params"
)
GRADIENTS = word_set("g gs gt dparams dweights dbiases dbias derivative derivatives")
SETTINGS = frozenset(name for names in SETTING_NAMES.values() for name in names)


@dataclass(frozen=True)
class Argument:
    """An argument: its name, its role, and whether it may be left out."""

    name: str
    role: str  # "parameter", "gradient", "counter", "key", "state", "layer", "pairs", "setting"
    is_optional: bool


def arguments_of(function: Callable[..., Any]) -> list[Argument] | None:
    """Return the arguments of a function with their roles; None without a signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = [p.name for p in named]
    return [Argument(p.name, role_of(p.name, names), p.default is not p.empty) for p in named]


def role_of(name: str, names: list[str]) -> str:
    """Return the role of an argument among others of these names."""
    plain = plain_name(name)
    for words, role in ((PAIRS, "pairs"), (LAYERS, "layer"), (KEYS, "key")):
        if plain in words:
            return role
    if is_gradient(plain, [plain_name(other) for other in names]):
        return "gradient"
    if plain in COUNTERS:
        return "counter"
    if plain in STATES:
        return "state"
    if plain in SETTINGS or plain in ("betas", "beta", "lr_rate", "kwargs"):
        return "setting"
    return "parameter"


def is_gradient(name: str, names: list[str]) -> bool:
    """Return whether a name says gradient: g, grads, dw beside w."""
    if "grad" in name or name in GRADIENTS:
        return True
    if re.fullmatch(r"d_?(w|b|x|theta|param|params|weight|weights|p|h|beta|gamma)\d*", name):
        return True
    return any(name in (f"d{other}", f"d_{other}") for other in names)
