"""The machine as one diagram, whose boxes are the chapters: ``python -m docs.site.machine``.

The command writes ``docs/pictures/machine.svg``, which Markdown shows. On the site,
`docs.site.machine_on_pages` puts the same diagram in its place, with a link on each box, and a
small one at the head of each chapter.
"""

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1]
FILE = DOCS / "pictures" / "machine.svg"

WIDTH, HEIGHT = 360, 668


class Box(NamedTuple):
    """A box: the chapter that it leads to, its kind, what stands in it, its corner and size."""

    chapter: str
    kind: str
    label: str
    x: int
    y: int
    width: int
    height: int = 26


BOXES = [
    # from the sentence to the loss
    Box("embedding", "row", "Embedding and positions", 22, 30, 200),
    Box("block", "frame", "Block: residual connections", 10, 76, 224),
    Box("attention", "mix", "Attention", 20, 114, 204),
    Box("linear", "mix", "Linear map: query, key, value", 20, 144, 204),
    Box("softmax", "mix", "Softmax: who looks at whom", 20, 174, 204),
    Box("synthesizers", "instead", "Synthesizers", 20, 221, 99),
    Box("fourier", "instead", "Fourier mixing", 125, 221, 99),
    Box("dropout", "row", "Dropout", 10, 263, 109),
    Box("layer_norm", "row", "Layer norm", 125, 263, 109),
    Box("linear", "row", "Linear", 18, 318, 58),
    Box("activations", "row", "ReLU, GELU", 80, 318, 88),
    Box("linear", "row", "Linear", 172, 318, 54),
    Box("dropout", "row", "Dropout", 10, 358, 109),
    Box("layer_norm", "row", "Layer norm", 125, 358, 109),
    Box("pooling", "row", "Pooling: one row", 22, 406, 200),
    Box("linear", "row", "Linear map: logits", 22, 442, 200),
    Box("softmax", "row", "Softmax: probabilities", 22, 478, 200),
    Box("cross_entropy", "row", "Cross-entropy: the loss", 22, 514, 200),
    # from the loss back to the weights
    Box("initialization", "train", "How weights\nbegin", 260, 30, 100, 42),
    Box("training", "train", "How training\ngoes", 260, 130, 100, 42),
    Box("adam", "train", "Adam:\na small step", 260, 226, 100, 42),
    Box("finite_differences", "train", "Check: finite\ndifferences", 260, 322, 100, 42),
    Box("chain_rule", "train", "Chain rule:\ngoing back", 260, 418, 100, 42),
    # what models that write have besides
    Box("cross_attention", "write", "Mask, cross-attention", 0, 572, 177),
    Box("decoder", "write", "Decoder", 183, 572, 177),
    Box("language_models", "write", "Language models", 0, 604, 177),
    Box("caches", "write", "State: token by token", 183, 604, 177),
    Box("causal_fourier", "write", "Fourier transforms that do not look ahead", 0, 636, 360),
]

FRAMES = [(0, 68, 244, 324), (10, 108, 224, 147), (10, 297, 224, 53)]
"""What holds several boxes, as x, y, width, height: the block, its mixer, its network."""

TEXTS = [
    (122, 14, "the food was not good"),
    (122, 215, "or, in place of attention"),
    (122, 312, "feed-forward network"),
    (310, 20, "training"),
    (180, 562, "models that write"),
]

ARROWS = [
    *("M122 19V28", "M122 56V66", "M122 392V404", "M122 432V440", "M122 468V476", "M122 504V512"),
    "M222 527H310V462",  # the loss, going back
    *("M310 418V366", "M310 322V270", "M310 226V174"),
    "M260 151H246",  # new weights, and all of it again
    "M260 51H224",
]

KINDS = {"row": "#009e73", "mix": "#0072b2", "instead": "#0072b2", "train": "#d55e00"}
KINDS |= {"write": "#cc79a7", "frame": "#777777"}
STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#1f2328}"
    ".said{font-style:italic;font-size:12px;fill:#57606a}"
    ".arrow,.holds{fill:none;stroke:#888}.head{fill:#888}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.said{fill:#9da7b1}}"
)
"""How the file looks by itself; on the site a style sheet says it."""


def whole(link: Callable[[str], str | None] = lambda chapter: None, style: str = STYLE) -> str:
    """Return the diagram; `link` says where the box of a chapter leads, or None."""
    title = "The machine: from a sentence to a loss, and back. Each box has a chapter."
    boxes = [_linked(box, link(box.chapter)) for box in BOXES]
    texts = [f'<text class="said" x="{x}" y="{y}">{text}</text>' for x, y, text in TEXTS]
    head = (
        '<defs><marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" '
        'markerHeight="6" orient="auto"><path class="head" d="M0 0L6 3L0 6z"/></marker></defs>'
    )
    arrows = [f'<path class="arrow" marker-end="url(#head)" d="{way}"/>' for way in ARROWS]
    styled = f"<style>{style}</style>" if style else ""
    inside = [styled + head, *_frames(), *arrows, *texts, *boxes]
    size = f'width="{WIDTH}" height="{HEIGHT}" ' if style else ""  # by itself it needs one
    return _svg("machine", title, inside, f'role="{"img" if style else "group"}" {size}')


def small(chapter: str) -> str:
    """Return the diagram without words, with the boxes of one chapter lit."""
    labels = [box.label.replace("\n", " ") for box in BOXES if box.chapter == chapter]
    boxes = [_shape(box, lit=box.chapter == chapter) for box in BOXES]
    title = f"Where it stands in the machine: {labels[0]}"
    return _svg("machine small", title, [*_frames(), *boxes], 'role="img" ')


def _svg(kind: str, title: str, inside: list[str], attributes: str) -> str:
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" {attributes}'
    box = f'viewBox="-1 0 {WIDTH + 2} {HEIGHT}" aria-label="{escape(title)}">'
    return "\n".join([begin + box, f"<title>{escape(title)}</title>", *inside, "</svg>"])


def _frames() -> list[str]:
    return [
        f'<rect class="holds" x="{x}" y="{y}" width="{width}" height="{height}" rx="7"/>'
        for x, y, width, height in FRAMES
    ]


def _shape(box: Box, lit: bool = False) -> str:
    dashes = ' stroke-dasharray="4 3"' if box.kind == "instead" else ""
    name, filled = ("box lit", 1) if lit else ("box", 0.16)
    colour = KINDS[box.kind]
    return (
        f'<rect class="{name}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" '
        f'rx="5" fill="{colour}" fill-opacity="{filled}" stroke="{colour}"{dashes}/>'
    )


def _linked(box: Box, target: str | None) -> str:
    lines = box.label.split("\n")
    first = box.y + box.height / 2 + 4.5 - 8 * (len(lines) - 1)
    texts = [
        f'<text x="{box.x + box.width / 2:g}" y="{first + 16 * k:g}">{line}</text>'
        for k, line in enumerate(lines)
    ]
    drawn = "".join([_shape(box), *texts])
    return drawn if target is None else f'<a href="{escape(target)}">{drawn}</a>'


if __name__ == "__main__":
    FILE.write_text(whole() + "\n", "utf-8")
    print(FILE.relative_to(DOCS.parent))
