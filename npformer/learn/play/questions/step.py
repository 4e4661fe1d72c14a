"""The way of one sample through the model, forward and then backward."""

from __future__ import annotations

from typing import Any

from npformer.core import to_numpy
from npformer.learn.museum import BUGS
from npformer.learn.play.broken import is_wrong
from npformer.learn.play.questions.formulas import LEFT_OUT, words_of
from npformer.learn.play.questions.samples import one_of
from npformer.learn.play.questions.sources import lines_of, place_of
from npformer.learn.play.questions.tensors import tensor
from npformer.learn.play.state import Now
from npformer.mixers import Mixer
from npformer.training.inspection.calls import BackwardCall, Call
from npformer.training.inspection.explain import matrices_of
from npformer.training.inspection.trace import Trace, trace

CANDIDATES = 12


def step(now: Now, sample: int = 0) -> dict[str, Any]:
    """Return the boxes of a step: layers without others inside, and mixers with their matrices."""
    rows = one_of(now, sample)
    inputs, y, masks = now.work.sample(rows)
    model = now.plain
    found = trace(model, inputs, masks, labels=y)
    parts = {call.name for call in found}
    leaves = [call for call in found if not _has_parts(call.name, parts)]
    bug = now.settings.bug
    forward = [_forward(call, found, bug) for call in _in_order(found, leaves)]
    shown = {box["layer"] for box in forward}
    return {
        "step": now.training.step,
        "loss": found.loss,
        "prediction": _prediction(now, model, found[0], y),
        "forward": forward,
        "backward": [_backward(call, bug) for call in found.backward if call.name in shown],
    }


def _has_parts(name: str, names: set[str]) -> bool:
    return not name or any(each.startswith(f"{name}.") for each in names)


def _in_order(found: Trace, leaves: list[Call]) -> list[Call]:
    """Return what is shown: leaves, and each mixer after its parts, before its output."""
    shown: list[Call] = []
    for call in leaves:
        if type(call.layer) not in LEFT_OUT:
            shown.append(call)
    for call in found:
        if isinstance(call.layer, Mixer) and call not in leaves:
            inside = [k for k, c in enumerate(shown) if c.name.startswith(f"{call.name}.")]
            at = inside[-1] if inside and shown[inside[-1]].name.endswith(".output") else None
            shown.insert(len(shown) if not inside else at or inside[-1] + 1, call)
    return shown


def _forward(call: Call, found: Trace, bug: str | None) -> dict[str, Any]:
    title, formula, _ = words_of(call.name, call.layer)
    output = call.outputs()[0]
    if isinstance(call.layer, Mixer):
        output = matrices_of(call)
    box = _box(call, title, formula, "forward", bug)
    inputs = [tensor(f"{call.name} in", each) for each in call.inputs()]
    parameters = [
        {
            "name": f"{call.name}.{name}",
            "tensor": tensor(name, p.value),
            "gradient": tensor(name, g),
        }
        for name, p in vars(call.layer).items()
        if found.gradients is not None
        and (g := found.gradients.get(f"{call.name}.{name}")) is not None
    ]
    return box | {
        "inputs": inputs,
        "output": tensor(f"{call.name} out", output),
        "parameters": parameters,
    }


def _backward(call: BackwardCall, bug: str | None) -> dict[str, Any]:
    title, _, formula = words_of(call.name, call.layer)
    box = _box(call, f"d {title}", formula, "backward", bug)
    dx = call.dx if isinstance(call.dx, tuple) else (call.dx,)
    dy = call.dy if isinstance(call.dy, tuple) else (call.dy,)
    output = next((each for each in dx if each is not None), None)
    return box | {
        "inputs": [tensor(f"d {call.name} out", each) for each in dy if each is not None],
        "output": None if output is None else tensor(f"d {call.name} in", output),
        "parameters": [],
    }


def _box(
    call: Call | BackwardCall, title: str, formula: str, way: str, bug: str | None
) -> dict[str, Any]:
    if bug is not None and is_wrong(bug, call.layer):  # its own lines, not the right ones
        wrong = BUGS[bug]
        formula, name = wrong.title, wrong.name
        lines, source = wrong.code, place_of(wrong.wrong)
    else:
        kind: Any = type(call.layer)
        name, lines, source = lines_of(kind, way)
    box = {"layer": call.name, "title": title, "formula": formula, "function": name}
    return box | {"lines": lines, "source": source}


def _prediction(now: Now, model: Any, whole: Call, y: Any) -> list[dict[str, Any]]:
    """Return the likeliest classes; for a sequence of answers, those of the last one."""
    p = to_numpy(model.loss.probabilities(whole.output))[0]
    while p.ndim > 1:
        p = p[-1]
    best = (-p).argsort()[:CANDIDATES].tolist()
    return [{"class": now.work.answer(k), "p": float(p[k])} for k in best]
