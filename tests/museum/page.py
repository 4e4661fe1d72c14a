"""Write docs/museum.md from the table of mutants: python -m tests.museum.page."""

from __future__ import annotations

import textwrap

import numpy as np

from .invariants import ROOT
from .mutants import MUTANTS, SEEN, Mutant, infected, noticed_by_gradient_checks

PAGE = ROOT / "docs" / "museum.md"

INTRODUCTION = """\
Bugs 1 to {seen} were seen in published NumPy transformers and in texts about them; those after were
made here or are near at hand. Each is put into npformer in place of its own code, and the test
suite fails unless the check that is named for it notices: {mutants} mutants, {checks} checks.
"""

WHAT_GRADIENT_CHECKS_SEE = """\
A gradient check compares a backward pass with its forward pass, and cannot see a forward pass that
is wrong in itself. Of the {mutants}, {noticed} are noticed by gradient checks of ordinary inputs
(of pairs, and of an encoder with attention, Fourier mixing and padding), some of them only because
npformer's own backward pass stays beside the wrong forward pass here. The others take a check that
knows what is meant to come out.
"""

HEAD = """\
# A museum of real bugs

Written by `python -m tests.museum.page` from `tests/museum/mutants.py`; a test compares the two.

{introduction}

{what_gradient_checks_see}

| bug | what it is | a gradient check notices | what is named for it |
|---|---|---|---|
{rows}

## What they look like

A name that begins with `healthy` is npformer's own function.
"""

BUG = """\
### {number}. {bug}

{place}:

```python
{code}
```

{why}

- Who could make it: {who}
- What it costs: {cost}.
- What catches it here: {check} (`{name}`)
"""


def write() -> str:
    """Return the page; what it measures is measured now."""
    seen = [_noticed_by_gradient_checks(mutant) for mutant in MUTANTS]
    rows = [
        f"| {m.number} | {m.bug.rstrip('.')} | {'yes' if noticed else 'no'} | "
        f"`{m.killed_by.__name__}` |"
        for m, noticed in zip(MUTANTS, seen, strict=True)
    ]
    counts = {
        "seen": max(SEEN),
        "mutants": len(MUTANTS),
        "checks": len({mutant.killed_by for mutant in MUTANTS}),
        "noticed": sum(seen),
    }
    head = HEAD.format(
        introduction=textwrap.fill(INTRODUCTION.format(**counts), 100),
        what_gradient_checks_see=textwrap.fill(WHAT_GRADIENT_CHECKS_SEE.format(**counts), 100),
        rows="\n".join(rows),
    )
    return "\n".join([head, *map(_section, MUTANTS)])


def _noticed_by_gradient_checks(mutant: Mutant) -> bool:
    with infected(mutant), np.errstate(all="ignore"):
        return noticed_by_gradient_checks()


def _section(mutant: Mutant) -> str:
    with infected(mutant), np.errstate(all="ignore"):
        cost = mutant.cost()
    what, _, _ = (mutant.killed_by.__doc__ or "").partition("\n")
    in_a_file = mutant.target.endswith(".py")
    target = mutant.target if in_a_file else f"npformer.{mutant.target}"
    new = in_a_file and not (ROOT / target).exists()
    return BUG.format(
        number=mutant.number,
        bug=mutant.bug,
        place=f"A new file `{target}`" if new else f"In place of `{target}`",
        code=mutant.code.rstrip(),
        why=textwrap.fill(mutant.why, 100),
        who=mutant.who,
        cost=cost,
        check=what,
        name=mutant.killed_by.__name__,
    )


if __name__ == "__main__":
    PAGE.write_text(write(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
