"""npformer and PyTorch on one case: the same weights, the same results, then timed in turn."""

from contextlib import contextmanager

import numpy as np

from benchmarks.remote import Remote
from benchmarks.timing import Others, interleave, ratio, significant, summary

NO_COMPILE = "not measured: --no-compile"
QUICK = {"seconds": 0.5, "least": 2}
LOSSES = 3


@contextmanager
def both(ours, theirs):
    """Start both sides, each (module, class, *arguments) in its own process, with our weights."""
    with Remote(*ours) as one, Remote(*theirs) as other:
        other.call("load", one.call("weights"))
        yield one, other


def prepare(ours, theirs, case, compiled, agree=(1e-4, 1e-3), held=False, others=()):
    """Choose PyTorch's best, check that the sides compute the same; return the figures so far.

    Parameters
    ----------
    ours, theirs : Remote
        Of `Ours` and of `peers.classifiers.Peer`.
    case : Case
    compiled : bool
        Whether to compile PyTorch's model, too.
    agree : tuple of float
        How far logits and the losses of the first steps may be apart.
    held : bool
        Whether to ask for the memory that both hold. A pool keeps what a compiled model needs, so
        they are asked before there is one.
    others : list of Remote
        Further peers, which compute the same.
    """
    figures = {"case": case.described()}
    logits = ours.call("logits")
    for other in others:
        logits_apart(logits, other.call("logits"), agree[0])
        other.call("choose")
    figures["logits_apart"] = logits_apart(logits, theirs.call("logits"), agree[0])
    figures |= theirs.call("choose")
    check = case.kind == "train" and case.dropout == 0.0
    expected = ours.call("losses", LOSSES) if check else None
    if check:
        for each in (theirs, *others):
            check_losses(expected, each.call("losses", "eager", LOSSES), agree[1])
    if held:
        sides = {"npformer": ours, "PyTorch": theirs}
        figures["held_mib"] = {name: side.call("held_mib") for name, side in sides.items()}
    figures["not_compiled"] = theirs.call("compile") if compiled else NO_COMPILE
    if check and not figures["not_compiled"]:
        check_losses(expected, theirs.call("losses", "compiled", LOSSES), agree[1])
    return figures


def logits_apart(ours, theirs, tolerance=1e-4):
    """Return the largest difference of logits; raise if it is too large for the same function."""
    apart = {name: float(np.abs(ours - logits).max()) for name, logits in theirs.items()}
    allowed = tolerance * max(1.0, float(np.abs(ours).max()))
    for name, distance in apart.items():
        if not distance <= allowed:
            raise ValueError(f"logits of {name!r} are {distance:.1e} apart; allowed {allowed:.1e}")
    return significant(max(apart.values()))


def check_losses(ours, theirs, tolerance=1e-3):
    """Raise an error unless the first steps of both sides have the same losses."""
    apart = np.abs(np.array(theirs) / np.array(ours) - 1.0).max()
    if not apart <= tolerance:
        raise ValueError(f"losses are {ours}, and PyTorch's {theirs}; expected the same")


def timing(turns, pids=(), **rounds):
    """Time candidates in turn, npformer first; return times and ratios."""
    with Others(*pids) as others:
        taken = interleave(turns, **rounds)
    first = next(iter(taken))
    return {
        "others_share": others.share,
        "rounds": len(taken[first]),
        "ms": {who: summary(seconds) for who, seconds in taken.items()},
        "ratio": {who: ratio(taken[first], seconds) for who, seconds in taken.items()},
    }
