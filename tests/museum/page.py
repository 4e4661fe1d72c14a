"""Write docs/museum.md from the package's table of bugs: python -m tests.museum.page."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np

from npformer.museum import BUGS, INVARIANTS, REFEREES, SEEN, Bug, referees

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "museum.md"

INTRODUCTION = """\
Bugs 1 to {seen} were seen in published NumPy transformers and in texts about them; those after were
made here or are near at hand. Each is a class, a pair of functions or a file in `npformer.museum`,
wrong beside the one that is right, and the test suite fails unless the invariants that are named
for it notice: {bugs} bugs, {checks} invariants. {placed} of them can be put into a model, run there
with and without kernels alike, and are noticed there too.
"""

WHAT_GRADIENT_CHECKS_SEE = """\
A gradient check compares a backward pass with its forward pass, and cannot see a forward pass that
is wrong in itself. Of the {bugs}, {noticed} are noticed by gradient checks of ordinary inputs, some
of them only because npformer's own backward pass stays beside the wrong forward pass here. The
others take a check that knows what is meant to come out.
"""

HEAD = """\
# A museum of real bugs

Written by `python -m tests.museum.page` from `npformer.museum.BUGS`; a test compares the two.

{introduction}

{what_gradient_checks_see}

| bug | what it is | a gradient check notices by | what is named for it |
|---|---|---|---|
{rows}

To put one into a model of yours, and to be told whether a layer of yours has one:

```python
from npformer.museum import BUGS, INVARIANTS

bug = BUGS["LayerNormWithoutGamma"]
model.encoder.blocks[0].mixer_norm = bug.build()    # or bug.model(): a small one with it in place
INVARIANTS["gradient_of_layer_norm"](my_layer_norm) # AssertionError, or nothing
```

## What they look like
"""

BUG = """\
### {number}. {title}

{place}, `{name}`:

```python
{code}
```

{why}

- Who could make it: {who}
- What it costs: {cost}{measured}
- What catches it: {caught}
{invariants}
"""


def write() -> str:
    """Return the page; what it measures is measured now."""
    bugs = list(BUGS.values())
    with np.errstate(all="ignore"):
        noticed = [referees(bug.report()) for bug in bugs]
        rows = [_row(bug, by) for bug, by in zip(bugs, noticed, strict=True)]
        sections = [_section(bug) for bug in bugs]
    counts = {
        "seen": max(SEEN),
        "bugs": len(bugs),
        "checks": len(INVARIANTS),
        "placed": sum(bug.place is not None for bug in bugs),
        "noticed": sum(map(bool, noticed)),
    }
    head = HEAD.format(
        introduction=textwrap.fill(INTRODUCTION.format(**counts), 100),
        what_gradient_checks_see=textwrap.fill(WHAT_GRADIENT_CHECKS_SEE.format(**counts), 100),
        rows="\n".join(rows),
    )
    return "\n".join([head, *sections])


def _invariants(bug: Bug) -> list[str]:
    return [name for name in bug.caught_by if name in INVARIANTS]


def _row(bug: Bug, noticed: set[str]) -> str:
    by = ", ".join(name for name in REFEREES if name in noticed) or "-"
    named = ", ".join(f"`{name}`" for name in _invariants(bug))
    return f"| {bug.number} | {bug.title.rstrip('.')} | {by} | {named} |"


def _section(bug: Bug) -> str:
    in_a_file = bug.of.endswith(".py")
    measured = "" if bug.measure is None else f" Measured: {bug.measure(bug)}."
    lines = [
        f"- {(INVARIANTS[name].__doc__ or '').partition(chr(10))[0]} (`{name}`)"
        for name in _invariants(bug)
    ]
    return BUG.format(
        number=bug.number,
        title=bug.title,
        name=bug.name,
        place=f"A new file `{bug.of}`" if in_a_file else f"In place of `npformer.{bug.of}`",
        code=bug.code.rstrip(),
        why=textwrap.fill(bug.told("Why"), 100),
        who=bug.told("Who"),
        cost=bug.told("Cost"),
        measured=measured,
        caught=bug.told("Caught"),
        invariants=textwrap.indent("\n".join(lines), "  "),
    )


if __name__ == "__main__":
    PAGE.write_text(write(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
