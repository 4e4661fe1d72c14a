"""The kinds of optimizers: their formulas, published forms, and the words for known faults."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from npformer.proof.promises.update_rules import (
    Adagrad,
    Adam,
    GradientDescent,
    Lion,
    Momentum,
    RMSProp,
    Rule,
    Settings,
)

Option = tuple[str, str | bool]
"""A field of a rule and its value."""

Words = Mapping[Option, str]


@dataclass(frozen=True)
class Kind:
    """A kind of optimizer.

    `forms` are as good as `rule`: somebody has published them, or a library has them.
    """

    title: str
    formula: str
    rule: Rule
    forms: Words
    faults: Words


@dataclass(frozen=True)
class Variant:
    """A rule with some options, and what they are in words; "" for the kind's own rule."""

    kind: str
    rule: Rule
    words: str
    is_right: bool

    def __str__(self) -> str:
        title = KINDS[self.kind].title
        return f"{title}: {self.words}" if self.words else title


COMMON: Words = {
    ("direction", "up"): "the step is added and not subtracted, so it climbs",
    ("lr_power", "twice"): "it is multiplied by lr twice",
}

OF_STATE: Words = {
    ("moments", "shared"): "moments are shared between parameters",
}

OF_COUNT: Words = {
    ("counter", "calls"): "t counts the parameters that were updated, not the steps",
}

ROOT: Words = {
    ("root", "twice"): "its root is taken twice",
    ("root", "none"): "it divides by v, without a root",
}

EPS_INSIDE: Words = {("eps", "inside"): "epsilon is inside the root"}

NO_EPS: Words = {("eps", "none"): "there is no epsilon: a gradient of 0 gives 0 / 0"}

DECAY: Words = {
    ("decay", "none"): "weight decay is left out",
    ("decay", "without_lr"): "weight decay is not multiplied by lr",
    ("decay", "after"): "weight decay is applied to the parameters after their update",
}

L2: Words = {("decay", "l2"): "weight decay is added to the gradient (L2), not decoupled"}

DECOUPLED: Words = {("decay", "decoupled"): "weight decay is decoupled, as in AdamW"}

VELOCITY_FAULTS: Words = {
    ("velocity", "swapped"): "momentum and 1 - momentum are swapped",
    ("velocity", "without_momentum"): "the velocity is not multiplied by momentum",
}

VELOCITY_FORMS: Words = {
    ("velocity", "lr_inside"): "lr is inside the velocity, the classical form",
    ("velocity", "averaged"): "the velocity is an average: g is multiplied by 1 - momentum",
}

BETAS: Words = {
    ("betas", "swapped"): "beta1 and beta2 are swapped",
    ("betas", "first"): "beta1 is used in place of beta2",
}

ADAM_FAULTS: Words = {
    ("count", "frozen"): "t is frozen at 1, so the bias correction never changes",
    ("correction", "none"): "without bias correction",
    ("correction", "first"): "only m has its bias correction",
    ("correction", "second"): "only v has its bias correction",
    ("correction", "stored"): "the corrected moments are kept as the moments of the next step",
    ("count", "from_0"): "t is counted from 0, so the first correction divides by 0",
    ("count", "from_2"): "t is one too large: it is counted before and after the step, or from 2",
    **ROOT,
    **EPS_INSIDE,
    **NO_EPS,
    **BETAS,
    ("average", "sum_m"): "g is not multiplied by 1 - beta1",
    ("average", "sum_v"): "g^2 is not multiplied by 1 - beta2",
    ("average", "first_power"): "v averages g, not g^2",
    ("average", "forgotten"): "the moments start from 0 at each step",
    **OF_STATE,
    **OF_COUNT,
    **COMMON,
    **DECAY,
}

ADAM_FORMS: Words = {
    ("eps", "uncorrected"): "epsilon is added to the root before its correction (TensorFlow)",
}

KINDS: dict[str, Kind] = {
    "sgd": Kind(
        title="gradient descent",
        formula="theta = theta - lr g",
        rule=GradientDescent(),
        forms={},
        faults={**COMMON, **DECAY},
    ),
    "momentum": Kind(
        title="gradient descent with momentum",
        formula="u = momentum u + g; theta = theta - lr u",
        rule=Momentum(),
        forms=VELOCITY_FORMS,
        faults={**VELOCITY_FAULTS, **OF_STATE, **COMMON, **DECAY},
    ),
    "nesterov": Kind(
        title="gradient descent with Nesterov's momentum",
        formula="u = momentum u + g; theta = theta - lr (g + momentum u)",
        rule=Momentum(lookahead=True),
        forms=VELOCITY_FORMS,
        faults={
            ("lookahead", False): "it does not look ahead: this is plain momentum",
            **VELOCITY_FAULTS,
            **OF_STATE,
            **COMMON,
            **DECAY,
        },
    ),
    "adagrad": Kind(
        title="Adagrad",
        formula="v = v + g^2; theta = theta - lr g / (sqrt(v) + eps)",
        rule=Adagrad(),
        forms=EPS_INSIDE,
        faults={**ROOT, **NO_EPS, **OF_STATE, **COMMON, **DECAY},
    ),
    "rmsprop": Kind(
        title="RMSProp",
        formula="v = rho v + (1 - rho) g^2; theta = theta - lr g / (sqrt(v) + eps)",
        rule=RMSProp(),
        forms=EPS_INSIDE,
        faults={
            ("average", "swapped"): "rho and 1 - rho are swapped",
            ("average", "sum"): "g^2 is not multiplied by 1 - rho",
            ("average", "first_power"): "v averages g, not g^2",
            **ROOT,
            **NO_EPS,
            **OF_STATE,
            **COMMON,
            **DECAY,
        },
    ),
    "adam": Kind(
        title="Adam",
        formula="theta = theta - lr m_hat / (sqrt(v_hat) + eps), "
        "m_hat = m / (1 - beta1^t), v_hat = v / (1 - beta2^t)",
        rule=Adam(decay="l2"),
        forms={**ADAM_FORMS, **DECOUPLED},
        faults=ADAM_FAULTS,
    ),
    "adamw": Kind(
        title="AdamW",
        formula="theta = theta - lr (m_hat / (sqrt(v_hat) + eps) + weight_decay theta)",
        rule=Adam(),
        forms=ADAM_FORMS,
        faults={**L2, **ADAM_FAULTS},
    ),
    "amsgrad": Kind(
        title="AMSGrad",
        formula="theta = theta - lr m_hat / (sqrt(max(v) / (1 - beta2^t)) + eps)",
        rule=Adam(decay="l2", largest="v"),
        forms={
            ("largest", "v_hat"): "the largest corrected v is taken",
            ("correction", "none"): "without bias correction, as Reddi et al. (2018) write it",
            **DECOUPLED,
        },
        faults={
            ("largest", "none"): "the largest v is not kept: this is Adam",
            **{k: words for k, words in ADAM_FAULTS.items() if k != ("correction", "none")},
        },
    ),
    "lion": Kind(
        title="Lion",
        formula="theta = theta - lr (sign(beta1 m + (1 - beta1) g) + weight_decay theta); "
        "m = beta2 m + (1 - beta2) g",
        rule=Lion(),
        forms={},
        faults={
            ("sign", "moment"): "the sign is that of m after its own update",
            ("sign", "none"): "there is no sign",
            **BETAS,
            **OF_STATE,
            **COMMON,
            **L2,
            **DECAY,
        },
    ),
}
"""Each kind of optimizer, by its name in `optimcheck`."""

NAMES = {
    "adamw": "adamw",
    "amsgrad": "amsgrad",
    "adagrad": "adagrad",
    "rmsprop": "rmsprop",
    "nesterov": "nesterov",
    "nag": "nesterov",
    "lion": "lion",
    "adam": "adam",
    "momentum": "momentum",
    "sgd": "sgd",
    "gradientdescent": "sgd",
}
"""The kind that a name says, by words that it may contain; the first that fits counts."""

SHORT_NAMES = "nag", "sgd", "lion"
"""Names that other words contain, such as million."""

OTHER_KINDS = "nadam", "adamax", "radam", "adafactor", "adadelta", "scheduler", "schedule"
"""Names that contain one of `NAMES`, or nearly, and are something else."""


def kind_in_name(name: str) -> str | None:
    """Return the kind that the name of a class or a function says; None if it says none."""
    plain = re.sub("[^a-z]", "", name.lower())
    if any(word in plain for word in OTHER_KINDS):
        return None
    words = {word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    is_adamw = re.search("[Aa]dam_?[Ww](?![a-z])|ADAMW", name) is not None
    for word, kind in NAMES.items():
        if word == "adamw":
            fits = is_adamw
        elif word in SHORT_NAMES:
            fits = word in words
        else:
            fits = word in plain
        if fits:
            return kind
    return None


def right_variants(kind: str, settings: Settings) -> Iterator[Variant]:
    """Yield the rule of a kind, then its published forms, alone and two together."""
    table = KINDS[kind]
    yield Variant(kind=kind, rule=table.rule, words="", is_right=True)
    options = _options_that_matter(table.forms, settings)
    for count in (1, 2):
        yield from _variants(kind, table.rule, table.forms, options, count, is_right=True)


def wrong_variants(kind: str, settings: Settings) -> Iterator[Variant]:
    """Yield the faults of a kind, alone, then of its published forms, then two together."""
    table = KINDS[kind]
    faults = _options_that_matter(table.faults, settings)
    yield from _variants(kind, table.rule, table.faults, faults, count=1, is_right=False)
    words = {**table.faults, **table.forms}
    forms = _options_that_matter(table.forms, settings)
    for form, fault in itertools.product(forms, faults):
        if form[0] != fault[0]:
            rule = _set_options(table.rule, (fault, form))
            yield Variant(kind, rule, f"{words[fault]}; {words[form]}", is_right=False)
    yield from _variants(kind, table.rule, table.faults, faults, count=2, is_right=False)


def other_kinds(kind: str, settings: Settings) -> Iterator[Variant]:
    """Yield what it may be in place of its kind: first the right forms of the other kinds."""
    other_names = [name for name in KINDS if name != kind]
    for name in other_names:
        yield from (replace(v, is_right=False) for v in right_variants(name, settings))


def _variants(
    kind: str, rule: Rule, words: Words, options: list[Option], count: int, is_right: bool
) -> Iterator[Variant]:
    for chosen in itertools.combinations(options, count):
        if len({name for name, _ in chosen}) == count:
            text = "; ".join(words[option] for option in chosen)
            yield Variant(kind, _set_options(rule, chosen), text, is_right)


def _set_options(rule: Rule, options: tuple[Option, ...]) -> Rule:
    values = {field.name: getattr(rule, field.name) for field in fields(rule)}
    values.update(options)
    return type(rule)(**values)


def _options_that_matter(words: Words, settings: Settings) -> list[Option]:
    """Return the options of a table, without those of weight decay if there is none."""
    return [option for option in words if option[0] != "decay" or settings.weight_decay != 0.0]
