"""Checks of what other people's optimizers, schedules, dropout and masks promise.

`optimcheck` and `schedulecheck` compare with formulas, step by step; `dropoutcheck`, `maskcheck`
and `evaluationcheck` try promises. `checks_for` says which of them apply to an object.
"""

from npformer.proof.promises.applicable import checks_for
from npformer.proof.promises.dropoutcheck import dropoutcheck
from npformer.proof.promises.evaluationcheck import evaluationcheck
from npformer.proof.promises.maskcheck import maskcheck
from npformer.proof.promises.optimcheck import optimcheck
from npformer.proof.promises.optimizer_report import OptimcheckError, OptimcheckReport
from npformer.proof.promises.promise import Promise, PromiseError, PromiseReport
from npformer.proof.promises.schedulecheck import schedulecheck

__all__ = [
    "OptimcheckError",
    "OptimcheckReport",
    "Promise",
    "PromiseError",
    "PromiseReport",
    "checks_for",
    "dropoutcheck",
    "evaluationcheck",
    "maskcheck",
    "optimcheck",
    "schedulecheck",
]
