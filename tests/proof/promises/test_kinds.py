"""The table of formulas and faults: each row can be told from all others."""

from dataclasses import replace

import pytest

import npformer as nf
from npformer.proof.promises.kinds import KINDS, kind_in_name
from npformer.proof.promises.setting_names import SETTINGS_OF_KIND
from npformer.proof.promises.update_rules import Settings

FAULTS = [(kind, fault) for kind, table in KINDS.items() for fault in table.faults]
FORMS = [(kind, form) for kind, table in KINDS.items() for form in table.forms]
SETTINGS = Settings(lr=0.01, momentum=0.8, weight_decay=0.1)


class Follower:
    """An optimizer that follows a rule of the table."""

    def __init__(self, rule, kind):
        self.rule = rule
        self.lr = SETTINGS.lr
        for name in SETTINGS_OF_KIND[kind]:
            setattr(self, name, getattr(SETTINGS, name))
        self.calls = self.steps = 0
        self.states = {}

    def step(self, params, grads):
        self.steps += 1
        for i in range(len(params)):
            self.calls += 1
            t = self.calls if self.rule.counter == "calls" else self.steps
            state = self.states.setdefault(0 if self.rule.moments == "shared" else i, {})
            params[i] = self.rule.update(params[i], grads[i], state, t, SETTINGS)


def follower(kind, option):
    return Follower(replace(KINDS[kind].rule, **{option[0]: option[1]}), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rule_of_a_kind_passes_as_that_kind(kind):
    report = nf.optimcheck(Follower(KINDS[kind].rule, kind), kind=kind)
    assert report.diagnosis == KINDS[kind].title


@pytest.mark.parametrize(("kind", "fault"), FAULTS)
def test_each_fault_of_the_table_is_told_from_the_others(kind, fault):
    with pytest.raises(nf.OptimcheckError) as error:
        nf.optimcheck(follower(kind, fault), kind=kind)
    words = f"{KINDS[kind].title}: {KINDS[kind].faults[fault]}"
    assert error.value.report.diagnosis.startswith(words)


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_each_published_form_passes(kind, form):
    report = nf.optimcheck(follower(kind, form), kind=kind)
    same_while_lr_stays = form == ("velocity", "lr_inside")
    words = "" if same_while_lr_stays else f": {KINDS[kind].forms[form]}"
    assert report.diagnosis == f"{KINDS[kind].title}{words}"


def test_lr_inside_the_velocity_is_told_where_lr_changes():
    class Momentum(Follower):
        def step(self, params, grads):
            for i in range(len(params)):
                u = self.states.get(i, 0.0)
                self.states[i] = u = self.momentum * u + self.lr * grads[i]
                params[i] = params[i] - u
            self.lr *= 0.5

    optimizer = Momentum(KINDS["momentum"].rule, "momentum")
    optimizer.weight_decay = 0.0
    report = nf.optimcheck(optimizer, kind="momentum")
    assert report.diagnosis.endswith("lr is inside the velocity, the classical form")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Adam", "adam"),
        ("AdamW", "adamw"),
        ("AdamWOfAModel", "adamw"),
        ("adam_w", "adamw"),
        ("AdamWithMomentsOutside", "adam"),
        ("MyAdamOptimizer", "adam"),
        ("Optimizer_SGD", "sgd"),
        ("update_parameters_with_adam", "adam"),
        ("RMSprop", "rmsprop"),
        ("rms_prop", "rmsprop"),
        ("SGDMomentum", "momentum"),
        ("NAG", "nesterov"),
        ("Lion", "lion"),
        ("Nadam", None),
        ("Million", None),
        ("Trainer", None),
    ],
)
def test_a_name_says_its_kind(name, kind):
    assert kind_in_name(name) == kind
