"""The samples, and the way of one through the model, forward and then backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import checks
from npformer.data.tokenizers.tokenizer import pad_rows
from npformer.learn.museum import BUGS
from npformer.learn.museum.bug import source_of
from npformer.learn.play.broken import is_wrong
from npformer.learn.play.model_answers import CANDIDATES, answer_probabilities, sample_to_show
from npformer.learn.play.questions.diagram import Node, nodes_of
from npformer.learn.play.questions.formulas import WORDS, letter_of, words_of
from npformer.learn.play.questions.sources import lines_of, place_of, summary_of, summary_of_layer
from npformer.learn.play.state import Now
from npformer.learn.play.tensors import tensor
from npformer.models import EncoderBlock
from npformer.models.trainable import EncoderDecoder, SequenceClassifier
from npformer.training.inspection.trace import trace

MOST_SAMPLES = 100

LOOKED_AT = 256
"""Samples among which one with a wrong answer is looked for."""


def samples(now: Now, start: int = 0, n: int = 12) -> dict[str, Any]:
    """Return n samples from `start` on, and from 0 again after the last.

    "wrong" is the first sample with a wrong answer, or None.
    """
    checks.whole("start", start, at_least=0)
    checks.whole("n", n, at_least=1, at_most=MOST_SAMPLES)
    work, total = now.work, len(now.work)

    def shown(i: int) -> dict[str, Any]:
        x, y, mask = work.shown(slice(i, i + 1))
        one = x[0] if mask is None else x[0][mask[0]]
        (text,) = work.texts(slice(i, i + 1)) or (None,)
        return sample_to_show(now.training.model, work.names, i, one, y[0], text)

    rows = range(start, start + min(n, total))
    shown_samples = [shown(i % total) for i in rows]
    return {"total": total, "wrong": _first_wrong(now), "samples": shown_samples}


def predictions(now: Now, samples: Sequence[int], at: int | None = None) -> dict[str, Any]:
    """Return the answer that the model gives for each sample, with the weights after step `at`.

    Of a sequence of answers it is the last one, and of a pair what the model writes for the source.
    A language model gives none: None.
    """
    checks.instance("samples", samples, list)
    if len(samples) > MOST_SAMPLES:
        raise ValueError(
            f"samples has {len(samples)} numbers; expected {MOST_SAMPLES} at most. Ask twice"
        )
    rows = [one_of(now, sample) for sample in samples]
    model = now.plain_at(at)
    answers: list[str | None] = [None for _ in rows]
    if isinstance(model, SequenceClassifier):
        answers = [_predicted_class(now, model, row) for row in rows]
    elif isinstance(model, EncoderDecoder) and rows:
        answers = _written_targets(now, model, rows)
    return {"predictions": answers}


def _predicted_class(now: Now, model: SequenceClassifier, row: slice) -> str:
    """Return the class that a model gives a sample; of several tokens that of the last."""
    inputs, _, masks = now.work.sample(row)
    return now.work.names.answer(int(np.ravel(model.predict(inputs, masks))[-1]))


def _written_targets(now: Now, model: EncoderDecoder, rows: list[slice]) -> list[str | None]:
    """Return what a model writes for the sources of some pairs, all in one batch."""
    sources = [now.work.sample(row)[0][0][0] for row in rows]
    batch, _ = pad_rows([source.tolist() for source in sources], model.padding_id)
    written = model.generate(batch)
    return [now.work.names.said(ids, targets=True) for ids in written]


def _first_wrong(now: Now) -> int | None:
    """Return the first of some samples whose class the model gets wrong."""
    inputs, y, masks = now.work.sample(slice(0, LOOKED_AT))
    if not isinstance(now.training.model, SequenceClassifier) or np.ndim(y) != 1:
        return None
    wrong = np.flatnonzero(now.plain.predict(inputs, masks) != y)
    return int(wrong[0]) if len(wrong) else None


def one_of(now: Now, sample: Any) -> slice:
    """Return the rows of one sample, after checking its number."""
    i = checks.whole("sample", sample, at_least=0, at_most=len(now.work) - 1)
    return slice(i, i + 1)


def step(now: Now, sample: int = 0, at: int | None = None) -> dict[str, Any]:
    """Return the nodes of a step, forward and backward, with the weights after step `at`.

    The prediction is that of the likeliest classes; for a sequence of answers, of the last one.
    """
    inputs, y, masks = now.work.sample(one_of(now, sample))
    model = now.plain_at(at)
    calls = trace(model, inputs, masks, labels=y)
    p = answer_probabilities(model, calls)
    best = (-p).argsort(kind="stable")[:CANDIDATES].tolist()
    nodes = nodes_of(calls)
    gradients: Any = calls.gradients or {}
    return {
        "step": now.training.step if at is None else at,
        "kept": now.steps(),
        "loss": calls.loss,
        "prediction": [{"class": now.work.names.answer(k), "p": float(p[k])} for k in best],
        "forward": [_forward(k, node, gradients, now) for k, node in enumerate(nodes)],
        "backward": [
            _backward(k, nodes[k], gradients, now)
            for k in reversed(range(len(nodes)))
            if nodes[k].gradient is not None
        ],
    }


def _parameters(node: Node, gradients: Any) -> dict[str, Any]:
    """Return the parameters of a layer that have gradients, by their own names."""
    if node.kind not in ("", "A"):
        return {}
    of = vars(node.call.layer).items()
    return {n: p for n, p in of if gradients.get(f"{node.call.name}.{n}") is not None}


def _forward(k: int, node: Node, gradients: Any, now: Now) -> dict[str, Any]:
    box = _box(k, node, "forward", now)
    return {
        **box,
        "before": node.before,
        "inputs": [tensor(name, value) for name, value in node.inputs],
        "output": tensor(box["title"], node.output),
        "results": [tensor(box["title"], node.output)],
        "parameters": [
            {
                "name": f"{node.call.name}.{name}",
                "tensor": tensor(name, p.value),
                "gradient": tensor(f"d {name}", gradients[f"{node.call.name}.{name}"]),
            }
            for name, p in _parameters(node, gradients).items()
        ],
    }


def _backward(k: int, node: Node, gradients: Any, now: Now) -> dict[str, Any]:
    box = _box(k, node, "backward", now)
    own_gradients = [
        (f"d{letter_of(node.call.name, name)}", gradients[f"{node.call.name}.{name}"])
        for name in _parameters(node, gradients)
    ]
    gradient = tensor(box["title"], node.gradient)
    results = [
        tensor(name, value) for name, value in node.results + own_gradients if value is not None
    ]
    return {**box, "inputs": [gradient], "output": gradient, "results": results, "parameters": []}


def _box(k: int, node: Node, way: str, now: Now) -> dict[str, Any]:
    """Return what a node is called, its formula, and the lines that compute it."""
    layer, bug, back = node.call.layer, now.work.settings.bug, way == "backward"
    if node.kind:
        description, *formulas, name = WORDS["inside"][node.kind]
        title, pair = node.kind, _function(name, back)
        lines = pair.__name__, source_of([pair]), place_of(pair)
        summary = summary_of(pair)
    else:
        title, description, *formulas = words_of(node.call.name, layer)
        kind: Any = type(layer)
        lines = lines_of(kind, way)
        summary = summary_of_layer(kind, way)
    formula, (name, code, source) = formulas[back], lines
    if is_wrong(bug, layer) and node.kind != "+":  # its own lines, not the right ones
        wrong = BUGS[str(bug)]
        formula, name, code, summary = wrong.title, wrong.name, wrong.code, ""
        source = place_of(wrong.wrong)
    box = {"node": k, "layer": node.call.name, "title": f"d{' ' * (len(title) > 1)}{title}"}
    box |= {} if back else {"title": title}
    words = {
        "about": description,
        "formula": formula,
        "function": name,
        "summary": summary,
        "lines": code,
        "source": source,
    }
    return box | words


def _function(name: str, back: bool) -> Any:
    """Return a function of `functional`, or a block's pass, where its residual connections are."""
    if name == "residual":
        return EncoderBlock.backward if back else EncoderBlock.forward
    return getattr(F, f"{name}{'_backward' * back}")
