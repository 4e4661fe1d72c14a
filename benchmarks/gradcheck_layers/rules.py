"""Where mistakes show that are not wrong numbers: what is changed, kept, or wrong in float32."""

import copy

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.differences import apply


def start(case, dtype="float64", seed=0):
    """Return the layer, its inputs, y and a function that runs the backward pass."""
    layer, arrays = case.build(dtype=dtype), case.given.arrays(seed)
    arrays = [x.astype(dtype) if x.dtype == float else x for x in arrays]
    y, back = apply(layer, arrays, case.given.options)
    return layer, arrays, y, back


def some(y, order="C"):
    """Return a dy."""
    dy = np.random.default_rng(3).normal(size=y.shape).astype(y.dtype)
    return np.asarray(dy, order=order)


def equal(a, b):
    """Return whether two sets of gradients agree."""
    return all(
        np.allclose(a[name], b[name], rtol=1e-9, atol=1e-12) for name in a if a[name] is not None
    )


def changes_dy(case, order="C"):
    """Whether backward changes its dy."""
    _, _, y, back = start(case)
    dy = some(y, order)
    before = dy.copy()
    back(dy)
    return not np.array_equal(dy, before)


def changes_dy_in_fortran_order(case):
    """Whether backward changes its dy only if that is in Fortran order."""
    return not changes_dy(case) and changes_dy(case, "F")


def depends_on_layout(case):
    """Whether another memory layout of dy gives other gradients."""
    _, _, y, back = start(case)
    one, two = back(some(y)), start(case)[3](some(y, "F"))
    return not equal(one, two)


def changes_x(case):
    """Whether forward changes its input."""
    return not np.array_equal(start(case)[1][0], case.given.arrays()[0])


def changes_mask(case):
    """Whether forward changes the mask in the context, which later layers also get."""
    context = nf.Context(mask=case.given.options["mask"].copy())
    before = context.mask.copy()
    case.build().forward(*case.given.arrays(), context)
    return not np.array_equal(context.mask, before)


def changes_parameters(case):
    """Whether a pass changes parameters."""
    layer, _, y, back = start(case)
    back(some(y))
    fresh = case.build().named_parameters()
    return any(
        not np.array_equal(p.value, fresh[name].value)
        for name, p in layer.named_parameters().items()
    )


def second_forward_spoils(case):
    """Whether a second forward pass changes the gradients of the first one's backward pass."""
    layer, _, y, back = start(case)
    other = case.given.arrays(seed=9)
    alone = start(case)[3](some(y))
    apply(layer, other, case.given.options)
    return not equal(alone, back(some(y)))


def results_are_overwritten(case):
    """Whether a second call changes the y or the dx that the first returned."""
    layer, _, y, back = start(case)
    dx = back(some(y))
    kept = y.copy(), copy.deepcopy(dx)
    y2, back2 = apply(layer, case.given.arrays(seed=9), case.given.options)
    back2(some(y2))
    return not (np.array_equal(kept[0], y) and equal(kept[1], dx))


def second_backward_differs(case):
    """Whether a second backward pass with the same cache and dy gives something else."""
    _, _, y, back = start(case)
    one = copy.deepcopy(back(some(y)))
    try:
        return not equal(one, back(some(y)))
    except IndexError:
        return True


def overwrites_gradients(case):
    """Whether a gradient that was already there is lost."""
    _, _, y, back = start(case)
    once = back(some(y))
    layer, arrays, _, _ = start(case)
    gradients = nf.Gradients(layer)
    for _ in range(2):
        _, back = apply(layer, arrays, case.given.options, gradients)
        back(some(y))
    return any(not np.allclose(gradients[name], 2 * once[name]) for name in gradients)


def forward_differs(case):
    """Whether the same input and seed give another result."""
    layer, arrays, y, _ = start(case)
    return not np.array_equal(y, apply(layer, arrays, case.given.options)[0])


def frozen_fails(case):
    """Whether backward raises an error, or gives another dx, once parameters are frozen."""
    layer, arrays, y, back = start(case)
    expected = back(some(y))["input 0"]
    layer.freeze("*")
    try:
        _, back = apply(layer, arrays, case.given.options)
        return not np.allclose(back(some(y))["input 0"], expected)
    except KeyError:
        return True


def float32_differs(case, arrays=None):
    """Whether gradients in float32 are not those of float64, or not float32."""
    inputs = [x.astype("float32") for x in arrays or case.given.arrays()]
    y, back = apply(case.build(dtype="float32"), inputs, case.given.options)
    _, back_wide = apply(case.build(), [x.astype(float) for x in inputs], case.given.options)
    narrow, wide = back(some(y)), back_wide(some(y).astype(float))
    return any(
        g.dtype != np.float32 or not abs(g - wide[name]).max() < 1e-4 * abs(wide[name]).max()
        for name, g in narrow.items()
    )


def broken(case):
    """Return which of the rules for all layers a layer breaks."""
    rules = [changes_dy, changes_dy_in_fortran_order, depends_on_layout, changes_x]
    rules += [second_forward_spoils, second_backward_differs, results_are_overwritten]
    rules += [forward_differs]
    if isinstance(case.build(), nf.Layer):
        rules += [changes_parameters, overwrites_gradients]
    return [rule.__name__ for rule in rules if rule(case)]
