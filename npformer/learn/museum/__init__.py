"""A museum of real bugs: layers and functions that are wrong, beside the right ones.

::

    from npformer.learn.museum import BUGS, INVARIANTS

    bug = BUGS["LayerNormWithoutGamma"]
    print(bug.doc)                              # who makes it, why it is wrong, what catches it
    layer = bug.build()                         # an ordinary layer, for any model
    npformer.gradcheck(layer, *bug.inputs)      # GradcheckError
    INVARIANTS["gradient_of_layer_norm"](layer) # AssertionError; bug.right() passes

The same invariants tell whether a layer of your own has one of these bugs. docs/museum.md shows all
bugs. Nothing is patched. Of the rest of the package only two floors import the museum: the
exercises, which hold the layers that readers write to the same invariants, and the page.
"""

import inspect
from collections.abc import Callable
from typing import Any

from npformer.learn.museum import (  # noqa: F401 - their bugs
    files,
    gradient_tests,
    hand_written_layers,
    invariants,
    invariants_of_training,
    invariants_of_writers,
    layers,
    losses,
    mixers,
    models,
    optim,
    referee,
    rotary,
    rules,
    tables,
    writers,
)
from npformer.learn.museum.bug import REFEREES, Bug, Source, referees
from npformer.learn.museum.rules import Files
from npformer.learn.museum.table import ROWS

__all__ = ["BUGS", "INVARIANTS", "REFEREES", "Bug", "Files", "Source", "referees"]

BUGS: dict[str, Bug] = {bug.name: bug for bug in sorted(ROWS, key=lambda bug: bug.number)}
"""All bugs, by the name of the wrong class or function."""

INVARIANTS: dict[str, Callable[[Any], None]] = {
    name: check
    for module in (invariants, invariants_of_training, invariants_of_writers, rules)
    for name, check in vars(module).items()
    if inspect.isfunction(check) and check.__module__ == module.__name__ and name[0] != "_"
}
"""All invariants, by their names: the functions of four files, but for helpers."""
