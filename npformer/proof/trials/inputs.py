"""Inputs of forward passes to try: x of several shapes, labels of several kinds, masks, modes."""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from npformer.proof import pair_names
from npformer.proof.foreign.gradient_names import plain
from npformer.proof.trials.arguments import (
    FLAGS,
    GENERATORS,
    IDS,
    LABELS,
    MASKS,
    NUMBERS,
    SIZES,
    write_shapes,
)
from npformer.proof.trials.sizes import (
    BATCH,
    CLASSES,
    HEADS,
    HIDDEN,
    LENGTH,
    OUT,
    VOCABULARY,
    WIDTH,
    look_up,
)
from npformer.proof.trials.weights import (
    FIRST_WEIGHTS,
    STATES,
    WEIGHTS_ONLY,
    settings_of,
    weight_shape,
)

LABEL_KINDS = ("ids", "one hot", "same")
"""What labels may be: the index of a class, a row of zeros and a one, or numbers as x has."""

LABEL_KINDS_OF_IDS = ("tokens", "ids")
"""What labels may be beside ids: each next token, or a class of each sample."""

MODES = {"training", "train", "istraining", "trainflg", "trainmode"}
"""Names of the flag that tells training from evaluation."""

TOKENS: tuple[int, ...] = (BATCH, LENGTH)
N_SAMPLES = 4


class Layout(NamedTuple):
    """A shape of x, and which of its axes a weight fits."""

    shape: tuple[int, ...]
    is_rare: bool  # tried only if no other shape is taken, as many layers broadcast it wrongly
    columns: bool = False  # features along axis 0, so a weight has shape (out, in)


LAYOUTS = (
    Layout((BATCH, LENGTH, WIDTH), is_rare=False),
    Layout((N_SAMPLES, WIDTH), is_rare=False),
    Layout((BATCH, WIDTH, LENGTH, 7), is_rare=True),  # images: batch, channels, height, width
    Layout((BATCH, WIDTH, N_SAMPLES, 8), is_rare=True),  # with sizes that a window divides
    Layout((WIDTH, N_SAMPLES), is_rare=True, columns=True),
    Layout((WIDTH, 1), is_rare=True, columns=True),
    Layout((WIDTH,), is_rare=True),
)


@dataclass(frozen=True)
class Inputs:
    """Arguments of a forward pass, in the order of its signature."""

    values: dict[str, Any]
    is_rare: bool = False
    has_guessed_labels: bool = False  # numbers as x has, where classes are more likely

    @property
    def words(self) -> str:
        """The shapes of the arguments."""
        return write_shapes(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first argument."""
        return np.shape(next(iter(self.values.values())))


def trial_inputs(
    forward: Any, sizes: dict[str, Any], owner: str = "", takes_ids: bool = False
) -> Iterator[Inputs]:
    """Yield arguments of a forward pass to try.

    `sizes` are the arguments that an object was built with: one with a vocabulary is first given
    ids below it. `owner` is the name of the class or function, and `takes_ids` says that it is
    given nothing but ids.
    """
    names = required_names(forward)
    vocabularies = [size for name, size in sizes.items() if look_up(SIZES, name) == VOCABULARY]
    ids = _ids(TOKENS, below=vocabularies[0] if vocabularies else LENGTH)
    has_labels = any(plain(name) in LABELS for name in names[1:])
    guess = _Guess(names, owner, ids, other_names=list(sizes))
    modes = _modes(names)
    if takes_ids or vocabularies or plain(names[0]) in IDS:
        layout = Layout(TOKENS, is_rare=False)
        kinds: tuple[str, ...] = LABEL_KINDS_OF_IDS if has_labels else ("",)
        for label_kind, mode in product(kinds, modes):
            yield Inputs(guess.values(layout, label_kind, mode, first_are_ids=True))
    if not takes_ids:
        kinds = LABEL_KINDS if has_labels else ("",)
        for layout, label_kind, mode in product(LAYOUTS, kinds, modes):
            values = guess.values(layout, label_kind, mode)
            yield Inputs(values, layout.is_rare, has_guessed_labels=label_kind == "same")


def _modes(names: Sequence[str]) -> tuple[bool, ...]:
    """Return the values of a required flag: evaluation and training."""
    has_mode = any(plain(name) in MODES for name in names)
    return (False, True) if has_mode else (False,)


class _Guess:
    """Values for the required arguments of one forward pass."""

    def __init__(
        self, names: list[str], owner: str, ids: np.ndarray, other_names: list[str]
    ) -> None:
        self.names = names
        self.all_names = [*names, *other_names]  # with those of weights that an object has
        self.owner = owner
        self.ids = ids
        words = [plain(name) for name in names]
        weight_is_first = words[0] in FIRST_WEIGHTS and "x" in words
        self.x_name = names[words.index("x")] if weight_is_first else names[0]

    def values(
        self, layout: Layout, label_kind: str, mode: bool, first_are_ids: bool = False
    ) -> dict[str, Any]:
        """Return a value for each argument."""
        arguments: dict[str, Any] = {}
        for position, name in enumerate(self.names):
            word = plain(name)
            is_label = position > 0 and word in LABELS
            if is_label and label_kind == "tokens":
                arguments[name] = np.roll(self.ids, 1, axis=1)
            elif is_label:
                rng = np.random.default_rng(position)
                arguments[name] = _labels(layout.shape, label_kind, rng)
            elif word in IDS or (first_are_ids and position == 0):
                arguments[name] = self.ids
            elif word in MODES and position:
                arguments[name] = mode
            else:
                arguments[name] = self._argument(name, layout, label_kind)
        return arguments

    def _argument(self, name: str, layout: Layout, label_kind: str) -> Any:
        """Return the value of an argument that is neither ids nor labels nor a mode."""
        word = plain(name)
        if word in MASKS:
            return None
        if word in GENERATORS:
            return np.random.default_rng(0)
        rng = np.random.default_rng(self.names.index(name) + 2)
        if name == self.x_name:
            return _draw_x(word, layout.shape, label_kind, rng)
        setting = _setting_of_pass(name)
        if setting is not None:
            return setting
        shape = self._shape(name, word, layout)
        return _draw_x(word, shape, label_kind, rng)

    def _shape(self, name: str, word: str, layout: Layout) -> tuple[int, ...]:
        """Return the shape of an array beside x."""
        if word in STATES and {plain(other) for other in self.all_names} & WEIGHTS_ONLY:
            return (layout.shape[0], HIDDEN)
        shape = weight_shape(name, self.names, self.owner)
        if shape is None:
            return layout.shape
        if layout.columns:
            return (OUT, 1) if len(shape) == 1 else shape[::-1]
        return shape


def _draw_x(
    word: str, shape: tuple[int, ...], label_kind: str, rng: np.random.Generator
) -> np.ndarray:
    """Return normal numbers, or probabilities where a loss says that it takes some."""
    x = rng.normal(size=shape)
    if label_kind and re.search(r"prob|^p$|pred$", word):
        return np.asarray(np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True))
    return x


def required_names(forward: Any) -> list[str]:
    """Return the names of the arguments that have no defaults; at least x."""
    return pair_names.required_names(forward) or ["x"]


def _parameters(forward: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return []


def _ids(shape: tuple[int, ...], below: int) -> np.ndarray:
    """Return whole numbers, the first two of which are equal."""
    ids = np.random.default_rng(1).integers(0, below, size=shape)
    ids.flat[1] = ids.flat[0]
    return ids


def _setting_of_pass(name: str) -> Any:
    """Return a number, flag, dictionary or number of heads that a function takes, or None."""
    for table in (NUMBERS, FLAGS):
        value = look_up(table, name)
        if value is not None:
            return value
    settings = settings_of(name)
    if settings is not None:
        return settings
    return HEADS if "head" in plain(name) else None


def _labels(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> np.ndarray:
    of_samples = shape[:1] if len(shape) == 4 else shape[:-1]
    ids = rng.integers(0, min(shape[-1], CLASSES), size=of_samples)
    if kind == "ids":
        return np.asarray(ids)
    if kind == "one hot":
        return np.eye(shape[-1])[ids]
    return rng.normal(size=shape)


def takes_mask(forward: Any) -> bool:
    """Whether a forward pass has an argument that is called a mask."""
    return _mask_name(forward) is not None


def requires_mask(forward: Any) -> bool:
    """Whether a forward pass has a mask without a default."""
    return _mask_name(forward) in required_names(forward)


def _mask_name(forward: Any) -> str | None:
    return next((p.name for p in _parameters(forward) if plain(p.name) in MASKS), None)


def with_masks(forward: Any, inputs: Inputs) -> Iterator[Inputs]:
    """Yield the same inputs with masks, of shapes that may fit; nothing if none is taken."""
    name = _mask_name(forward)
    for mask in () if name is None else _masks(inputs.shape):
        values = _replace(forward, inputs.values, name, mask)
        if values is not None:
            yield Inputs(values, inputs.is_rare)


def _masks(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Yield masks that keep some positions of each row and hide others, whatever True means."""
    if len(shape) < 2:
        return
    batch, length = shape[:2]
    positions = np.arange(batch)[:, None] + np.arange(length)
    keys = positions % 3 != 1
    yield keys
    yield keys[:, None, :]
    yield keys[:, None, None, :]
    queries_and_keys = (np.arange(length)[:, None] + np.arange(length)) % 3 != 1
    yield queries_and_keys
    yield keys.astype("float64")


def in_other_mode(forward: Any, inputs: Inputs) -> Iterator[Inputs]:
    """Yield the same inputs in training or evaluation, whichever is not the default."""
    for parameter in _parameters(forward):
        if plain(parameter.name) in MODES and isinstance(parameter.default, bool):
            values = _replace(forward, inputs.values, parameter.name, not parameter.default)
            if values is not None:
                yield Inputs(values, inputs.is_rare)


def _replace(
    forward: Any, values: dict[str, Any], name: str | None, value: Any
) -> dict[str, Any] | None:
    """Return arguments in the order of a signature, up to the last that is needed.

    None if one of them can only be passed by its name.
    """
    replaced: dict[str, Any] = {}
    missing = {*values, name}
    for parameter in _parameters(forward):
        if not missing:
            break
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            return None
        default = values.get(parameter.name, parameter.default)
        replaced[parameter.name] = value if parameter.name == name else default
        missing.discard(parameter.name)
    return replaced
