"""The samples, and the way of one through the model, forward and then backward."""

from __future__ import annotations

from typing import Any

from npformer.core import checks
from npformer.layers import Dropout
from npformer.learn.museum import BUGS
from npformer.learn.play.broken import is_wrong
from npformer.learn.play.questions.formulas import words_of
from npformer.learn.play.questions.sources import lines_of, place_of
from npformer.learn.play.seen import CANDIDATES, answer_probabilities, shown_sample
from npformer.learn.play.state import Now
from npformer.learn.play.tensors import tensor
from npformer.mixers import Mixer
from npformer.training.inspection.calls import BackwardCall, Call, arrays_of
from npformer.training.inspection.explain import matrices_of
from npformer.training.inspection.trace import Trace, trace

MOST_SAMPLES = 100


def samples(now: Now, start: int = 0, n: int = 12) -> dict[str, Any]:
    """Return n samples from `start` on, and from 0 again after the last."""
    checks.whole("start", start, at_least=0)
    checks.whole("n", n, at_least=1, at_most=MOST_SAMPLES)
    work, total = now.work, len(now.work)

    def shown(i: int) -> dict[str, Any]:
        x, y, mask = work.shown(slice(i, i + 1))
        one = x[0] if mask is None else x[0][mask[0]]
        return shown_sample(now.training.model, work.names, i, one, y[0])

    rows = range(start, start + min(n, total))
    return {"total": total, "samples": [shown(i % total) for i in rows]}


def one_of(now: Now, sample: Any) -> slice:
    """Return the rows of one sample, after checking its number."""
    i = checks.whole("sample", sample, at_least=0, at_most=len(now.work) - 1)
    return slice(i, i + 1)


def step(now: Now, sample: int = 0) -> dict[str, Any]:
    """Return the boxes of a step: layers without others inside, and mixers with their matrices.

    The prediction is that of the likeliest classes; for a sequence of answers, of the last one.
    """
    inputs, y, masks = now.work.sample(one_of(now, sample))
    model, bug = now.plain, now.work.settings.bug
    found = trace(model, inputs, masks, labels=y)
    p = answer_probabilities(model, found)
    best = (-p).argsort()[:CANDIDATES].tolist()
    forward = [_forward(call, found, bug) for call in _in_order(found)]
    shown = {box["layer"] for box in forward}
    return {
        "step": now.training.step,
        "loss": found.loss,
        "prediction": [{"class": now.work.names.answer(k), "p": float(p[k])} for k in best],
        "forward": forward,
        "backward": [_backward(call, bug) for call in found.backward if call.name in shown],
    }


def _in_order(found: Trace) -> list[Call]:
    """Return what is shown: leaves, and each mixer after its parts, before its output."""

    def inside(call: Call, calls: list[Call]) -> list[int]:
        beginning = call.name and f"{call.name}."
        return [k for k, each in enumerate(calls) if each.name.startswith(beginning)]

    leaves = [call for call in found if not inside(call, found)]
    shown = [call for call in leaves if type(call.layer) is not Dropout]  # nothing at evaluation
    for call in found:
        if isinstance(call.layer, Mixer) and call not in leaves:
            last = inside(call, shown)[-1]
            shown.insert(last + (not shown[last].name.endswith(".output")), call)
    return shown


def _forward(call: Call, found: Trace, bug: str | None) -> dict[str, Any]:
    output = matrices_of(call) if isinstance(call.layer, Mixer) else call.outputs()[0]
    gradients: Any = found.gradients or {}
    return {
        **_box(call, "forward", bug),
        "inputs": [tensor(f"{call.name} in", each) for each in call.inputs()],
        "output": tensor(f"{call.name} out", output),
        "parameters": [
            {
                "name": f"{call.name}.{name}",
                "tensor": tensor(name, p.value),
                "gradient": tensor(name, gradients[f"{call.name}.{name}"]),
            }
            for name, p in vars(call.layer).items()
            if gradients.get(f"{call.name}.{name}") is not None
        ],
    }


def _backward(call: BackwardCall, bug: str | None) -> dict[str, Any]:
    dx = call.outputs()
    return {
        **_box(call, "backward", bug),
        "inputs": [tensor(f"d {call.name} out", each) for each in arrays_of(call.dy)],
        "output": tensor(f"d {call.name} in", dx[0]) if dx else None,
        "parameters": [],
    }


def _box(call: Call | BackwardCall, way: str, bug: str | None) -> dict[str, Any]:
    title, *formulas = words_of(call.name, call.layer)
    if bug is not None and is_wrong(bug, call.layer):  # its own lines, not the right ones
        wrong = BUGS[bug]
        formula, name = wrong.title, wrong.name
        lines, source = wrong.code, place_of(wrong.wrong)
    else:
        kind: Any = type(call.layer)
        formula, (name, lines, source) = formulas[way == "backward"], lines_of(kind, way)
    title = f"d {title}" if way == "backward" else title
    box = {"layer": call.name, "title": title, "formula": formula, "function": name}
    return box | {"lines": lines, "source": source}
