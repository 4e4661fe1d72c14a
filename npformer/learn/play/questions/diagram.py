"""The machine's diagram for one sample: nodes are arrays, joined by what computes them.

A node is the output of a layer, one of the arrays inside an attention (S, A, Y), or the sum of a
residual connection. Its gradient has its shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import to_numpy
from npformer.layers import CrossAttention, Dropout, TokenDropout
from npformer.mixers import Attention, AveragingMixer, GeneralAttention, Mixer
from npformer.training.inspection.calls import BackwardCall, Call, arrays_of
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


def nodes_of(trace: Trace) -> list[Node]:
    """Return the nodes of a pass in the order of computation."""
    backward = {call.name: call for call in trace.backward}
    merged = {call.name: call.inputs()[0] for call in trace if call.name.endswith(".output")}
    nodes: list[Node] = []
    for call, is_mixer in _is_shown(trace):
        if is_mixer:
            _add_mixer(nodes, call, merged[f"{call.name}.output"], backward)
        else:
            back = backward.get(call.name)
            dy = None if back is None else _first_array(back.dy)
            _add_layer(nodes, call, call.outputs()[0], dy, back)
    for node in nodes:
        if node.kind == "+":  # both terms get the gradient of the sum, and the branch comes last
            node.gradient = nodes[node.before[1]].gradient
            node.results = [("to each of the two", node.gradient)]
    return nodes


def _first_array(value: Any) -> Any:
    """Return the first array in what a pass took or returned; None without one."""
    return next(iter(arrays_of(value)), None)


def _is_shown(trace: Trace) -> Iterator[tuple[Call, bool]]:
    """Yield (layer without others inside, False), and (mixer, True) before its output layer.

    Mixers without such a layer are yielded after the layers inside them, with False.
    """
    calls = [call for call in trace if type(call.layer) not in DROPOUTS]
    names = {call.name for call in calls}
    mixers = [
        call
        for call in calls
        if isinstance(call.layer, Mixer | CrossAttention) and f"{call.name}.output" in names
    ]
    waiting: list[Call] = []  # mixers without an output layer
    for call in calls:
        while waiting and not call.name.startswith(f"{waiting[-1].name}."):
            yield waiting.pop(), False
        if not _has_inside(call, calls):
            yield from ((mixer, True) for mixer in mixers if call.name == f"{mixer.name}.output")
            yield call, False
        elif isinstance(call.layer, Mixer) and f"{call.name}.output" not in names:
            waiting.append(call)
    for mixer in reversed(waiting):
        yield mixer, False


def _has_inside(call: Call, calls: list[Call]) -> bool:
    """Return whether other calls are those of layers inside this one."""
    prefix = call.name and f"{call.name}."
    return any(other is not call and other.name.startswith(prefix) for other in calls)


def _add_mixer(
    nodes: list[Node], call: Call, merged: Any, backward: Mapping[str, BackwardCall]
) -> None:
    """Add what a mixer hands to its output layer; if it averages values, S, A and Y."""
    output = backward.get(f"{call.name}.output")
    dy = None if output is None else _first_array(output.dx)
    if isinstance(call.layer, Attention | AveragingMixer | CrossAttention):
        _add_inside(nodes, call, merged, dy)
    else:
        _add_layer(nodes, call, merged, dy, backward.get(call.name))


def _add_layer(
    nodes: list[Node], call: Call, output: Any, dy: Any, back: BackwardCall | None
) -> None:
    """Add a layer's output, with what its backward pass took and returned, if there was one."""
    before = _sources(nodes, call)
    inputs = [("x", x) for x in call.inputs()]
    results = [] if back is None else [("dx", dx) for dx in back.outputs()]
    nodes.append(
        Node(
            call,
            kind="",
            output=output,
            gradient=dy,
            inputs=inputs,
            results=results,
            before=before,
        )
    )


def _add_inside(nodes: list[Node], call: Call, merged: Any, dY: Any) -> None:
    """Add S, A and Y of a mixer that averages values: S only where it is softmax attention."""
    places = {node.call.name: k for k, node in enumerate(nodes)}
    q, k, v = (places.get(f"{call.name}.{layer}") for layer in ("query", "key", "value"))
    A = matrices_of(call)
    dA = None if v is None else _gradient_of_averages(A, nodes[v].output, dY)
    before = [place for place in (q, k) if place is not None] or _sources(nodes, call)
    softmax = type(call.layer) in (Attention, GeneralAttention, CrossAttention)
    if softmax and q is not None and k is not None and dA is not None:
        S = _scores_node(call, A, dA, nodes, q, k)
        nodes.append(S)
        before = [len(nodes) - 1]
        inputs = [("S", S.output)]
        results = [("dS", S.gradient)]
    else:
        letters = "QK" if q is not None else "x" * len(before)
        inputs = [(n, nodes[place].output) for n, place in zip(letters, before, strict=False)]
        results = []
    nodes.append(
        Node(call, kind="A", output=A, gradient=dA, inputs=inputs, results=results, before=before)
    )
    Y = Node(call, kind="Y", output=merged, gradient=dY, inputs=[("A", A)], before=[len(nodes) - 1])
    if dA is not None:
        Y.results.append(("dA", dA))
    if v is not None:
        Y.inputs.append(("V", nodes[v].output))
        Y.results.append(("dV", nodes[v].gradient))
        Y.before.append(v)
    nodes.append(Y)


def _gradient_of_averages(A: Any, V: Any, dY: Any) -> Any:
    """Return dA, where Y = A V in each head; None if Y has no gradient or is of another shape."""
    if dY is None or V.shape != dY.shape:
        return None
    n_heads = A.shape[-3]
    return F.split_heads(dY, n_heads) @ F.split_heads(V, n_heads).swapaxes(-1, -2)


def _scores_node(call: Call, A: Any, dA: Any, nodes: list[Node], q: int, k: int) -> Node:
    """Return the node of the scores S, where A = softmax(S); nodes q and k are queries and keys."""
    Q, K = nodes[q], nodes[k]
    return Node(
        call,
        kind="S",
        output=_scores(call, A, Q.output, K.output),
        gradient=A * (dA - (dA * A).sum(axis=-1, keepdims=True)),
        inputs=[("Q", Q.output), ("K", K.output)],
        results=[("dQ", Q.gradient), ("dK", K.gradient)],
        before=[q, k],
    )


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
    sources = []
    for x in map(to_numpy, call.inputs()):
        if x.dtype.kind in "iu":  # ids of tokens
            continue
        equal = [k for k, node in enumerate(nodes) if _equal(node.output, x)]
        if equal:
            sources.append(equal[-1])
            continue
        if (residual := _residual_sum(nodes, call, x)) is not None:
            nodes.append(residual)
        if nodes:
            sources.append(len(nodes) - 1)
    return sources


def _residual_sum(nodes: list[Node], call: Call, x: np.ndarray) -> Node | None:
    """Return the node of x if that is the last output added to an earlier one."""
    last = len(nodes) - 1
    for k in reversed(range(last)):
        a, b = to_numpy(nodes[k].output), to_numpy(nodes[last].output)
        if a.shape == b.shape == x.shape and np.array_equal(a + b, x):
            inputs = [("x", a), ("f(x)", b)]
            return Node(call, kind="+", output=x, inputs=inputs, before=[k, last])
    return None


def _equal(a: Any, b: np.ndarray) -> bool:
    a = to_numpy(a)
    return a.shape == b.shape and a.dtype == b.dtype and bool(np.array_equal(a, b))
