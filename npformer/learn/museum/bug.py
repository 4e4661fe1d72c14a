"""What a bug is: a wrong thing beside the right one, and what catches it."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from npformer.layers import GELU, Dropout, LayerNorm, Linear, Sequential
from npformer.learn.museum.attention_by import AttentionBy, with_softmax
from npformer.learn.museum.probes import WIDTH, report_of, small
from npformer.mixers import Mixer
from npformer.models import Encoder, EncoderBlock
from npformer.models.trainable import SequenceClassifier
from npformer.proof.cases.case import draw
from npformer.proof.report import GradcheckReport

REFEREES = ("differences", "complex step", "protocol")
"""How `gradcheck` may notice a bug: by two ways to a derivative, or by a rule of the protocol."""


WITHOUT_A_PLACE = ("functional.softmax_cross_entropy", "functional.embedding", "layers.TiedOutput")
"""What `Bug.model` has no place for: its loss is no layer, and it embeds no ids."""


class Source:
    """A source file with a bug in it: its path, its wrong text and its right text."""

    path: str
    text: str
    right: str


@dataclass(frozen=True)
class Bug:
    """One bug.

    `build` and `right` return the same kind of thing: a layer, a pair (forward, backward), a class,
    a function, or source text as ``{path: text}``. A layer is small and in float64, unless they get
    another `config`, `seed` and `dtype`. The docstring of the wrong class or function describes the
    bug: a sentence, then who makes it, why it is wrong, what it costs, and what catches it.
    """

    number: int  # related bugs share one; those up to 17 were seen in published code
    wrong: Any  # the class or function that is wrong; for a pair, the forward function
    of: str  # what it is a wrong version of: a dotted name below npformer, or a file's path
    build: Callable[..., Any]  # () -> the wrong thing
    right: Callable[..., Any]  # () -> the right thing
    caught_by: tuple[str, ...]  # what catches it: some of REFEREES, and its own invariants
    inputs: tuple[Any, ...] = ()  # for gradcheck; only layers and pairs have some
    options: Mapping[str, Any] = field(default_factory=dict)  # for gradcheck
    config: Mapping[str, Any] = field(default_factory=dict)  # changes to a model's configuration

    @property
    def name(self) -> str:
        """Name of the wrong class or function."""
        return str(self.wrong.__name__)

    @property
    def doc(self) -> str:
        """The whole description."""
        return inspect.getdoc(self.wrong) or ""

    @property
    def title(self) -> str:
        """What is wrong, in one sentence."""
        return self.doc.partition("\n")[0]

    def section(self, label: str) -> str:
        """Return what the description says after "Who", "Why", "Cost" or "Caught"."""
        pattern = rf"^{label}: (.*?)(?=^(?:Who|Why|Cost|Caught): |\Z)"
        match = re.search(pattern, self.doc, re.MULTILINE | re.DOTALL)
        return "" if match is None else " ".join(match[1].split())

    @property
    def code(self) -> str:
        """The wrong lines without docstrings; the wrong functions of a pair."""
        if isinstance(self.wrong, type) and issubclass(self.wrong, Source):
            return self.wrong.text
        return source_of(filter(None, [self.wrong, backward_of(self.wrong)]))

    @property
    def has_a_place(self) -> bool:
        """Whether it can be put into a model."""
        return bool(self.inputs) and self.of not in WITHOUT_A_PLACE

    def report(self, thing: Any = None) -> GradcheckReport | None:
        """Return gradcheck's report on the bug, or on another thing; None without a derivative."""
        if not self.inputs:
            return None
        return report_of(self.build() if thing is None else thing, *self.inputs, **self.options)

    def model(self, thing: Any = None) -> SequenceClassifier:
        """Return a small model in float64 with the bug, or another thing, in its first block.

        All parameters are moved away from their initial values. What has no place in a model is a
        TypeError.
        """
        if not self.has_a_place:
            raise TypeError(f"{self.name} has no place in a model")
        model = SequenceClassifier(small(**self.config), 3, n_features=WIDTH, dtype="float64")
        self.put(model, thing)
        for i, array in enumerate(model.parameters().values()):
            array += 0.3 * draw(*array.shape, seed=i)  # a fresh gamma is 1, a fresh bias 0
        return model

    def put(self, model: SequenceClassifier, thing: Any = None) -> None:
        """Put the bug, or another thing, where its kind belongs: in, or before, the first block."""
        drawn: dict[str, Any] = {"seed": 0, "dtype": model.dtype}
        block: Any = model.encoder.blocks[0]
        if thing is None:
            thing = self.build(config=model.config, **drawn)
        if isinstance(thing, tuple):
            pair = with_softmax(*thing) if self.of == "functional.softmax" else thing
            thing = AttentionBy(model.config.d_model, model.config.n_heads, attend=pair, **drawn)
        match thing:
            case LayerNorm():
                block.mixer_norm = thing
            case Sequential():  # of one dropout, used twice
                block.mixer_dropout = block.feed_forward_dropout = thing.chain[0]
            case Dropout():
                tokens: Any = Sequential(thing, model.embed.tokens)
                model.embed.tokens = tokens
            case GELU():
                block.feed_forward.activation = thing
            case Linear():
                block.feed_forward.expand = thing
            case Mixer():
                block.mixer = thing
            case EncoderBlock():
                model.encoder.blocks[0] = thing
            case Encoder():
                model.encoder = thing


def backward_of(forward: Any) -> Any:
    """Return the backward pass of a function; None if there is none."""
    return getattr(inspect.getmodule(forward), f"{forward.__name__}_backward", None)


def source_of(things: Iterable[Any]) -> str:
    """Return the lines of functions or classes, without docstrings."""
    source = "\n\n".join(textwrap.dedent(inspect.getsource(thing)).rstrip() for thing in things)
    source = re.sub(r"\A@.*?\n(?=class |def )", "", source, flags=re.DOTALL)  # a bug's row
    return re.sub(r'^ *""".*?"""\n+', "", source, flags=re.MULTILINE | re.DOTALL)


def referees(report: GradcheckReport | None) -> set[str]:
    """Return which of `REFEREES` found something wrong."""
    if report is None:
        return set()
    exact = [t.complex_error for t in report.tensors if t.complex_error is not None]
    tolerance = report.complex_tolerance or float("inf")
    noticed = {
        "differences": not all(t.error <= report.tolerance for t in report.tensors),
        "complex step": not all(error <= tolerance for error in exact),
        "protocol": bool(report.broken_rules),
    }
    return {name for name, wrong in noticed.items() if wrong}
