"""checks_for: which checks apply to what a file defines."""

import numpy as np
import pytest

import npformer as nf
from npformer.proof.promises import checks_for
from tests.proof.promises.attention import Attention, CausalAttention, softmax
from tests.proof.promises.faults_of_optimizers import ADAM, adam_with, make
from tests.proof.promises.styles import AdamOfDicts, AdamWOfAModel, RMSProp, adam
from tests.proof.promises.test_dropoutcheck import Dropout, ScaledByOneOverP
from tests.proof.promises.test_evaluationcheck import BatchNorm
from tests.proof.promises.test_schedulecheck import Noam, noam, noam_late


def adam_backward(dy, cache):
    return dy


def initialize_adam(parameters):
    return {}


def lr_schedule(step, d_model=512, warmup_steps=4000):
    return noam(step, d_model, warmup_steps)


def learning_rate(step):
    return 0.1


def linear(x, weight):
    return x @ weight


class LinearLayer:
    def forward(self, x):
        return x


class CrossAttention:
    def __init__(self):
        self.d_model = 8

    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(0, 2, 1)
        return softmax(scores if mask is None else np.where(mask[:, None], scores, -1e9)) @ v


class TokenDropout(Dropout):
    pass


class BatchNormOf8(BatchNorm):
    features = 8


def with_width(layer):
    layer.d_model = 8
    return layer


@pytest.mark.parametrize(
    ("obj", "titles"),
    [
        (AdamOfDicts, ["AdamOfDicts: each step against its formula"]),
        (AdamOfDicts(), ["AdamOfDicts: each step against its formula"]),
        (RMSProp, ["RMSProp: each step against its formula"]),
        (adam, ["adam: each step against its formula"]),
        (
            AdamWOfAModel,
            [
                "AdamWOfAModel: each step against its formula",
                "AdamWOfAModel: each step with weight decay",
            ],
        ),
        (noam, ["noam: each step against the schedule's formula"]),
        (Noam, ["Noam: each step against the schedule's formula"]),
        (lr_schedule, ["lr_schedule: each step against the schedule's formula"]),
        (learning_rate, []),
        (Dropout, []),
        (Dropout(), ["Dropout: what dropout promises"]),
        (CrossAttention(), ["CrossAttention: what its mask promises"]),
        (Attention(), ["Attention: what its mask promises"]),
        (
            CausalAttention(),
            [
                "CausalAttention: what its mask promises",
                "CausalAttention: no position sees later ones",
            ],
        ),
        (with_width(BatchNorm()), ["BatchNorm: what evaluation promises"]),
        (TokenDropout(), []),
        (adam_backward, []),
        (initialize_adam, []),
        (linear, []),
        (LinearLayer, []),
        (LinearLayer(), []),
        (nf.layers.Linear(4, 4, seed=0), []),
        (3, []),
        (np.tanh, []),
    ],
)
def test_checks_are_found_by_name_and_signature(obj, titles):
    assert [title for title, _ in checks_for(obj)] == titles


@pytest.mark.parametrize(
    "obj",
    [
        AdamOfDicts,
        adam,
        noam,
        Noam,
        lr_schedule,
        Dropout(),
        Attention(),
        CrossAttention(),
        with_width(BatchNorm()),
        nf.mixers.Attention(8, 2, causal=True, seed=0, dtype="float64"),
        nf.mixers.Attention(8, 2, seed=0),
        make("Adam", ADAM),
    ],
)
def test_the_checks_of_what_is_right_pass(obj):
    assert all(check().passed for _, check in checks_for(obj))


class DropoutByOneOverP(ScaledByOneOverP):
    pass


@pytest.mark.parametrize("obj", [adam_with("t = self.t", "t = 1"), noam_late, DropoutByOneOverP()])
def test_the_checks_of_what_is_wrong_raise_with_a_report(obj):
    _, check = checks_for(obj)[0]
    with pytest.raises((nf.OptimcheckError, nf.PromiseError)) as error:
        check()
    assert not error.value.report.passed
