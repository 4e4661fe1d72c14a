"""How somebody's layer is called: forward and backward, in training and at evaluation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import Context, Gradients, Layer, describe
from npformer.proof.foreign.pass_names import (
    BACKWARD_NAMES,
    FORWARD_NAMES,
    OUTPUT_ATTRIBUTES,
)
from npformer.proof.pairs import backward_beside
from npformer.proof.promises.checked_arguments import copy_of
from npformer.proof.promises.setting_names import plain_name, word_list, word_set

TRAINING_NAMES = word_set("training train is_training train_flg is_train train_mode training_mode")
"""Arguments and attributes that are True in training."""

EVALUATION_NAMES = word_set("test eval evaluation inference deterministic is_test testing")
"""Arguments and attributes that are True at evaluation."""

MODES = ("train", "test"), ("train", "eval"), ("training", "evaluation")
"""Values of `mode` in training and at evaluation."""

GENERATOR_NAMES = word_set("generator rng random_state")
MASK_NAMES = word_list(
    "mask attention_mask attn_mask key_padding_mask padding_mask pad_mask src_mask x_mask key_mask "
    "src_padding_mask src_key_padding_mask masks m"
)
RATE_NAMES = word_set(
    "rate p drop_prob dropout dropout_rate dropout_ratio p_drop drop_rate prob drop pdrop "
    "dropout_p drop_ratio dropout_prob probability"
)
KEEP_NAMES = word_set("keep_prob keep_rate p_keep keep keep_probability retain_prob")

NOT_PASSED = object()
"""Stands for an argument that is not passed."""

INPUT_GRADIENTS = "dinputs", "dinput", "dx", "d_inputs", "grad_input", "input_grad"


class NoWayToCall(TypeError):
    """A layer cannot be called in a usual way."""


@dataclass
class LayerCalls:
    """A layer, a pair or a function, as the checks of promises call it.

    `settings` are arguments that a function gets by name, such as the rate of dropout.
    """

    title: str
    run: Callable[..., Any]
    run_backward: Callable[..., Any] | None
    layer: Any
    settings: dict[str, Any]
    cache: Any = None
    is_pair: bool = False
    draws: int = 0
    """How many generators were made: each call in training gets another."""

    def forward(self, *inputs: np.ndarray, training: bool = False, mask: Any = None) -> np.ndarray:
        """Return y; keep what backward needs."""
        if isinstance(self.layer, Layer):
            generator = self._new_generator() if training else None
            context = Context(mask=mask, training=training, generator=generator)
            forward: Any = self.layer.forward  # some layers have two inputs
            y, self.cache = forward(*inputs, context)
            return np.asarray(y)
        self._switch_layer(training)
        result = self.run(*inputs, **self._arguments(training, mask))
        return self._output_of(result)

    def backward(self, dy: np.ndarray) -> Any:
        """Return what the backward pass returns: dx, or several gradients."""
        if self.run_backward is None:
            raise NoWayToCall(f"{self.title} has no backward pass")
        if isinstance(self.layer, Layer):
            return self.layer.backward(dy, self.cache, Gradients(self.layer))
        if self.is_pair:
            return self.run_backward(dy, self.cache)
        returned = self.run_backward(dy)
        if returned is None:
            names = [name for name in INPUT_GRADIENTS if hasattr(self.layer, name)]
            returned = getattr(self.layer, names[0]) if names else None
        return returned

    def _new_generator(self) -> np.random.Generator:
        self.draws += 1
        return np.random.default_rng(self.draws)

    @property
    def can_switch(self) -> bool:
        """Whether training and evaluation differ by an argument or an attribute."""
        if isinstance(self.layer, Layer):
            return True
        names = {plain_name(name) for name in self._names}
        words = TRAINING_NAMES | EVALUATION_NAMES | {"mode"}
        has_attribute = any(plain_name(n) in words for n in getattr(self.layer, "__dict__", {}))
        has_dict = any(name.endswith(("param", "params")) for name in names)
        draws = bool(names & GENERATOR_NAMES) and self.layer is None
        return bool(names & words) or has_attribute or has_dict or draws or self._has_methods

    @property
    def _names(self) -> list[str]:
        with suppress(TypeError, ValueError):
            return list(inspect.signature(self.run).parameters)
        return []

    @property
    def _has_methods(self) -> bool:
        return callable(getattr(self.layer, "train", None)) and callable(
            getattr(self.layer, "eval", None)
        )

    @property
    def mask_name(self) -> str | None:
        """The name of the argument that takes a mask; None if there is none."""
        names = {plain_name(name): name for name in self._names}
        return next((names[name] for name in MASK_NAMES if name in names), None)

    def _arguments(self, training: bool, mask: Any) -> dict[str, Any]:
        """Return the named arguments of a forward pass."""
        arguments = {name: self._argument(plain_name(name), training) for name in self._names}
        arguments = {name: value for name, value in arguments.items() if value is not NOT_PASSED}
        if mask is not None:
            if self.mask_name is None:
                raise NoWayToCall(
                    f"{self.title} takes {', '.join(self._names)}; expected an argument such as "
                    "mask. Pass a function of x and mask that calls it"
                )
            arguments[self.mask_name] = mask
        return arguments

    def _argument(self, name: str, training: bool) -> Any:
        """Return the value of an argument by its plain name, or NOT_PASSED."""
        mode = "train" if training else "test"
        if name in TRAINING_NAMES:
            return training
        if name in EVALUATION_NAMES:
            return not training
        if name == "mode":
            return mode
        if name in GENERATOR_NAMES:
            return self._new_generator() if training else None
        if name in RATE_NAMES | KEEP_NAMES:
            return self.settings.get("rate", NOT_PASSED)
        if name.endswith(("param", "params")):
            return {"mode": mode, "p": self.settings.get("rate", 0.3)}
        return NOT_PASSED

    def _switch_layer(self, training: bool) -> None:
        """Set a layer to training or to evaluation, by its method or its attribute."""
        if self._has_methods:
            (self.layer.train if training else self.layer.eval)()
            return
        for name, value in list(getattr(self.layer, "__dict__", {}).items()):
            plain = plain_name(name)
            if plain in TRAINING_NAMES and isinstance(value, bool):
                setattr(self.layer, name, training)
            elif plain in EVALUATION_NAMES and isinstance(value, bool):
                setattr(self.layer, name, not training)
            elif plain == "mode" and isinstance(value, str):
                modes = next((pair for pair in MODES if value in pair), MODES[0])
                setattr(self.layer, name, modes[0 if training else 1])

    def _output_of(self, result: Any) -> np.ndarray:
        """Return y of what a forward pass returned or set; keep the cache behind it."""
        if result is None:
            names = [name for name in OUTPUT_ATTRIBUTES if hasattr(self.layer, name)]
            result = getattr(self.layer, names[0]) if names else None
        if isinstance(result, tuple) and result:
            self.cache = result[1] if len(result) == 2 else result[1:]
            result = result[0]
        if not isinstance(result, np.ndarray):
            raise NoWayToCall(
                f"the forward pass of {self.title} returned {describe(result)}; expected an array, "
                "or a tuple that begins with one"
            )
        return np.array(result)


def calls_of(target: Any, backward: Any = None, **settings: Any) -> LayerCalls:
    """Return a layer, a pair or a function as `LayerCalls`; layers are copied.

    Raises
    ------
    NoWayToCall
        It has no forward pass under a usual name.
    """
    if isinstance(target, tuple) and len(target) == 2:
        forward, backward = target
        return LayerCalls(_name_of(forward), forward, backward, None, settings, is_pair=True)
    if inspect.isroutine(target):
        backward = backward or backward_beside(target)
        return LayerCalls(_name_of(target), target, backward, None, settings, is_pair=True)
    if inspect.isclass(target):
        raise NoWayToCall(
            f"got the class {target.__name__}; expected a layer, made with its arguments: "
            f"{target.__name__}(...)"
        )
    layer = copy_of(target)
    run = _method_of(layer, FORWARD_NAMES)
    if run is None:
        raise NoWayToCall(
            f"got {describe(target)}; expected a layer with forward, a pair (forward, backward) or "
            "a function"
        )
    run_backward = _method_of(layer, BACKWARD_NAMES)
    return LayerCalls(type(layer).__name__, run, run_backward, layer, settings)


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _method_of(layer: Any, names: tuple[str, ...]) -> Callable[..., Any] | None:
    methods = [getattr(layer, n) for n in names if inspect.isroutine(getattr(layer, n, None))]
    return next((method for method in methods if inspect.ismethod(method)), None)
