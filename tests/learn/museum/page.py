"""Write docs/museum.md from the package's table of bugs: python -m tests.learn.museum.page."""

import inspect
import textwrap
from pathlib import Path

import numpy as np

from docs.site.pages import imports_of
from npformer.learn.museum import BUGS, INVARIANTS, REFEREES, Bug, referees
from tests.learn.museum.costs import COSTS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "museum.md"

INTRODUCTION = """\
These are {bugs} bugs of the kind that people make when they write a Transformer by hand. Bugs 1 to
17 were seen in published NumPy code and in texts about it, and bugs 27 to 40 in 26 public
Transformers on NumPy alone, whose parts were compared with central differences: 23 of the 26 have a
wrong gradient somewhere, mostly where right parts are joined. The others were made in npformer or
are easy to make. Bugs of one kind share a number. Each is a class, a function, a pair of functions
or a source file in `npformer.learn.museum`, and {in_models} of them can be put into a model.
"""

GRADIENT_CHECKS = """\
A gradient check compares a backward pass with its forward pass, so it cannot see that the forward
pass itself is wrong. Gradient checks of ordinary inputs notice {noticed} of the {bugs} bugs, some
of them only because the backward pass is still the right one. The others need an invariant: a check
that knows what the result must be. There are {invariants} invariants, and the tests make sure that
each bug is noticed by the invariants in its row.
"""

HEAD = """\
# A museum of real bugs

Written by `python -m tests.learn.museum.page` from `npformer.learn.museum.BUGS`.

{introduction}

{gradient_checks}

| bug | what is wrong | noticed by a gradient check | invariants that notice it |
|---|---|---|---|
{rows}

To put a bug into a model of yours, or to test a layer of yours:

```python
from npformer.learn.museum import BUGS, INVARIANTS
import npformer as nf

bug = BUGS["LayerNormWithoutGamma"]
config = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=16, max_len=5)
model = nf.SequenceClassifier(config, n_classes=3, n_features=4)
model.encoder.blocks[0].mixer_norm = bug.build()    # bug.model() is a small model with the bug
my_layer_norm = nf.layers.LayerNorm(8, dtype="float64")
INVARIANTS["gradient_of_layer_norm"](my_layer_norm) # raises AssertionError if it has a bug
```

## The bugs, one by one
"""

BUG = """\
### {bug.number}. {bug.title}

{place}, `{bug.name}`:

```{kind}
{code}
```

{why}

- Who makes it: {who}
- What it costs: {cost}{measured}
- What catches it: {caught}
{invariants}
- Chapter: {chapter}. Exercise: {exercise}
"""

CHAPTERS = {
    "functional.softmax": ("softmax", "softmax_backward"),
    "functional.softmax_cross_entropy": ("cross_entropy", "cross_entropy_backward"),
    "functional.embedding": ("embedding", "embedding_backward"),
    "functional.scaled_dot_product_attention": ("attention", "attention_backward"),
    "layers.Dropout": ("dropout", "dropout_backward"),
    "layers.LayerNorm": ("layer_norm", "layer_norm_backward"),
    "layers.Linear": ("linear", "linear_backward"),
    "layers.GELU": ("activations", "gelu_backward"),
    "mixers.Attention": ("attention", "multi_head_backward"),
    "mixers.GeneralAttention": ("rotary", "rotary_backward"),
    "mixers.Fourier": ("fourier", "fourier_backward"),
    "layers.TiedOutput": ("embedding", "embedding_backward"),
    "layers.CrossAttention": ("cross_attention", "attention_backward"),
    "layers.Positions": ("caches", "embedding_backward"),
    "layers.state.State": ("caches", "attention_backward"),
    "tasks.estimators.text_writer.windows": ("language_models", "cross_entropy_backward"),
    "models.EncoderBlock": ("block", "residual_backward"),
    "models.Encoder": ("block", "residual_backward"),
    "optim.Adam": ("adam", "adam_update"),
}
"""What a bug takes the place of -> the chapter about it, and the blank of `npformer exercises`."""

ELSEWHERE = "finite_differences", "broken_model"
"""Of bugs in files and in the referee: how one knows that a gradient is right."""


def write() -> str:
    """Return the page."""
    bugs = list(BUGS.values())
    with np.errstate(all="ignore"):
        noticed = [referees(bug.report()) for bug in bugs]
        sections = [_section(bug) for bug in bugs]
    counts = {"bugs": len(bugs), "invariants": len(INVARIANTS), "noticed": sum(map(bool, noticed))}
    counts["in_models"] = sum(bug.has_a_place for bug in bugs)
    texts = {"introduction": INTRODUCTION, "gradient_checks": GRADIENT_CHECKS}
    texts = {name: textwrap.fill(text.format(**counts), 100) for name, text in texts.items()}
    head = HEAD.format(**texts, rows="\n".join(map(_row, bugs, noticed)))
    return "\n".join([head, *sections])


def _invariants(bug: Bug) -> list[str]:
    return [name for name in bug.caught_by if name in INVARIANTS]


def _row(bug: Bug, noticed: set[str]) -> str:
    by = ", ".join(name for name in REFEREES if name in noticed) or "-"
    invariants = ", ".join(f"`{name}`" for name in _invariants(bug))
    return f"| {bug.number} | {bug.title.rstrip('.')} | {by} | {invariants} |"


def _imports(bug: Bug) -> str:
    """Return the imports that the wrong lines need, so that they can be pasted."""
    file = Path(inspect.getsourcefile(bug.wrong) or "")
    return imports_of(file.read_text("utf-8"), file.relative_to(ROOT).as_posix(), bug.code)


def _section(bug: Bug) -> str:
    in_a_file = bug.of.endswith(".py")
    lines = [f"  - `{name}`: {INVARIANTS[name].__doc__}" for name in _invariants(bug)]
    chapter, exercise = CHAPTERS.get(bug.of, ELSEWHERE)
    title = chapter.replace("_", " ")
    measured = f" Measured: {COSTS[bug.name](bug)}." if bug.name in COSTS else ""
    return BUG.format(
        bug=bug,
        place=f"A new file `{bug.of}`" if in_a_file else f"In place of `npformer.{bug.of}`",
        kind="py" if in_a_file else "python",
        code=("" if in_a_file else _imports(bug)) + bug.code.rstrip(),
        why=textwrap.fill(bug.section("Why"), 100),
        who=bug.section("Who"),
        cost=bug.section("Cost"),
        measured=measured,
        caught=bug.section("Caught"),
        invariants="\n".join(lines),
        chapter=f"[{title}](chapters/{chapter}.md)",
        exercise=f"[`{exercise}`](exercises.md)",
    )


if __name__ == "__main__":
    PAGE.write_text(write(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
