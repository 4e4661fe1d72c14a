"""The machine's diagram for one sample: nodes are arrays, joined by what computes them.

A node is the output of a layer, one of the arrays inside an attention (S, A, Y), or the sum of a
residual connection. Its gradient has its shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import to_numpy
from npformer.layers import CrossAttention, Dropout, TokenDropout
from npformer.mixers import Attention, AveragingMixer, GeneralAttention, Mixer
from npformer.training.inspection.calls import Call, arrays_of
from npformer.training.inspection.explain import matrices_of
from npformer.training.inspection.trace import Trace

DROPOUTS = Dropout, TokenDropout
"""Layers that do nothing at evaluation."""


@dataclass
class Node:
    """One array on the way of a sample.

    Attributes
    ----------
    call : Call
        The layer that it belongs to; of a sum, the one that takes it.
    kind : {"", "S", "A", "Y", "+"}
        "" is a layer's output.
    output, gradient : array
        The array, and the gradient of the loss with respect to it.
    inputs, results : list of (str, array)
        What it is computed from, and what the backward pass makes of its gradient.
    before : list of int
        The nodes that `inputs` are the outputs of, if they are known.
    """

    call: Call
    kind: str
    output: Any
    gradient: Any = None
    inputs: list[tuple[str, Any]] = field(default_factory=list)
    results: list[tuple[str, Any]] = field(default_factory=list)
    before: list[int] = field(default_factory=list)


def nodes_of(found: Trace) -> list[Node]:
    """Return the nodes of a pass in the order of computation."""
    back = {each.name: each for each in found.backward}
    merged = {call.name: call.inputs()[0] for call in found if call.name.endswith(".output")}
    nodes: list[Node] = []
    for call, whole in _shown(found):
        output = merged[f"{call.name}.output"] if whole else call.outputs()[0]
        if whole and isinstance(call.layer, Attention | AveragingMixer | CrossAttention):
            _add_inside(nodes, call, output, back)
            continue
        node = Node(call, "", output, inputs=[("x", x) for x in call.inputs()])
        node.before = _sources(nodes, call)
        if (gradient := back.get(call.name)) is not None:
            dy = back[f"{call.name}.output"].dx if whole else gradient.dy
            node.gradient = next(iter(arrays_of(dy)), None)
            node.results = [("dx", dx) for dx in gradient.outputs()]
        nodes.append(node)
    for node in nodes:
        if node.kind == "+":  # both terms get the gradient of the sum, and the branch comes last
            node.gradient = nodes[node.before[1]].gradient
            node.results = [("to each of the two", node.gradient)]
    return nodes


def _shown(found: Trace) -> Iterator[tuple[Call, bool]]:
    """Yield layers without others inside, and where the arrays of a mixer belong among them."""
    calls = [call for call in found if type(call.layer) not in DROPOUTS]
    parents = [
        call
        for call in calls
        if isinstance(call.layer, Mixer | CrossAttention)
        and any(each.name == f"{call.name}.output" for each in calls)
    ]
    waiting: list[Call] = []  # mixers of another kind come after their parts
    for call in calls:
        while waiting and not call.name.startswith(f"{waiting[-1].name}."):
            yield waiting.pop(), False
        within = call.name and f"{call.name}."
        if any(each is not call and each.name.startswith(within) for each in calls):
            if isinstance(call.layer, Mixer) and call not in parents:
                waiting.append(call)
            continue
        for parent in parents:
            if call.name == f"{parent.name}.output":
                yield parent, True
        yield call, False
    while waiting:
        yield waiting.pop(), False


def _add_inside(nodes: list[Node], call: Call, merged: Any, back: Any) -> None:
    """Add S, A and Y of a mixer that averages values: S only where it is softmax attention."""
    places = {each.call.name: k for k, each in enumerate(nodes)}
    q, k, v = (places.get(f"{call.name}.{part}") for part in ("query", "key", "value"))
    output = back.get(f"{call.name}.output")
    A, dY = matrices_of(call), None if output is None else next(iter(output.outputs()), None)
    before = [each for each in (q, k) if each is not None] or _sources(nodes, call)
    dA = None
    if v is not None and dY is not None and nodes[v].output.shape == dY.shape:
        heads, values = (F.split_heads(each, A.shape[-3]) for each in (dY, nodes[v].output))
        dA = heads @ values.swapaxes(-1, -2)  # Y = A V
    softmax = type(call.layer) in (Attention, GeneralAttention, CrossAttention)
    if softmax and q is not None and k is not None and dA is not None:
        S = _scores(call, A, nodes[q].output, nodes[k].output)
        dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True))  # A = softmax(S)
        from_both = [("Q", nodes[q].output), ("K", nodes[k].output)]
        to_both = [("dQ", nodes[q].gradient), ("dK", nodes[k].gradient)]
        nodes.append(Node(call, "S", S, dS, from_both, to_both, before))
        before, inputs, results = [len(nodes) - 1], [("S", S)], [("dS", dS)]
    else:
        named = "QK" if q is not None else "x" * len(before)
        inputs = [(n, nodes[each].output) for n, each in zip(named, before, strict=False)]
        results = []
    nodes.append(Node(call, "A", A, dA, inputs, results, before))
    at = len(nodes) - 1
    Y = Node(call, "Y", merged, dY, [("A", A)], [], [at])
    if dA is not None:
        Y.results.append(("dA", dA))
    if v is not None:
        Y.inputs.append(("V", nodes[v].output))
        Y.results.append(("dV", nodes[v].gradient))
        Y.before.append(v)
    nodes.append(Y)


def _scores(call: Call, A: Any, Q: Any, K: Any) -> Any:
    if isinstance(call.layer, GeneralAttention):
        x = call.inputs()[0]
        query, _ = call.layer.queries(x, call.context)
        key, _ = call.layer.keys(x, call.context)
        keys, _ = F.repeat_heads(key, call.layer.group)
        return F.attention_scores(query, keys)[0]
    n_heads = A.shape[-3]
    return F.attention_scores(F.split_heads(Q, n_heads), F.split_heads(K, n_heads))[0]


def _sources(nodes: list[Node], call: Call) -> list[int]:
    """Return the nodes that a layer's inputs come from, adding the sum of a residual connection.

    An input is an earlier output; or, after a residual connection, the sum of two; or else it is
    the last output in another form.
    """
    found = []
    for x in map(to_numpy, call.inputs()):
        if x.dtype.kind in "iu":  # ids of tokens
            continue
        same = [k for k, each in enumerate(nodes) if _equal(each.output, x)]
        if same:
            found.append(same[-1])
            continue
        last = len(nodes) - 1
        for k in reversed(range(last)):
            a, b = to_numpy(nodes[k].output), to_numpy(nodes[last].output)
            if a.shape == b.shape == x.shape and np.array_equal(a + b, x):
                terms = [("x", a), ("f(x)", b)]
                nodes.append(Node(call, "+", x, inputs=terms, before=[k, last]))
                break
        if nodes:
            found.append(len(nodes) - 1)
    return found


def _equal(a: Any, b: np.ndarray) -> bool:
    a = to_numpy(a)
    return a.shape == b.shape and a.dtype == b.dtype and bool(np.array_equal(a, b))
