"""The machine as one diagram, whose boxes are the chapters: ``python -m docs.site.machine``.

The command writes ``docs/pictures/machine.svg``, which Markdown shows. On the site,
`docs.site.machine_on_pages` replaces it with the same diagram with a link on each box, and puts a
small one at the top of each chapter.
"""

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1]
FILE = DOCS / "pictures" / "machine.svg"

WIDTH, HEIGHT = 360, 831


class Box(NamedTuple):
    """A box: the chapter that it links to, its kind, its label, its corner and its size."""

    chapter: str
    kind: str
    label: str
    x: int
    y: int
    width: int
    height: int = 26


BOXES = [
    # from the sentence to the loss
    Box("embedding", "row", "Embedding, positional encoding", 10, 30, 224),
    Box("block", "frame", "Block: residual connections", 10, 76, 224),
    Box("attention", "frame", "Attention", 20, 120, 204),
    Box("linear", "mix", "Linear: query, key, value", 20, 152, 204),
    Box("attention", "mix", "Scores, by head", 20, 188, 136),
    Box("softmax", "mix", "Softmax", 166, 188, 58),
    Box("attention", "mix", "Average of values", 20, 224, 128),
    Box("linear", "mix", "Linear", 158, 224, 66),
    Box("synthesizers", "instead", "Synthesizers", 20, 271, 99),
    Box("fourier", "instead", "Fourier mixing", 125, 271, 99),
    Box("dropout", "row", "Dropout", 10, 321, 82),
    Box("layer_norm", "row", "Layer norm", 140, 321, 94),
    Box("linear", "row", "Linear", 18, 382, 52),
    Box("activations", "row", "ReLU, GELU", 80, 382, 84),
    Box("linear", "row", "Linear", 174, 382, 52),
    Box("dropout", "row", "Dropout", 10, 433, 82),
    Box("layer_norm", "row", "Layer norm", 140, 433, 94),
    Box("pooling", "row", "Pooling: one row", 22, 481, 200),
    Box("linear", "row", "Linear: logits", 22, 517, 200),
    Box("softmax", "row", "Softmax: probabilities", 22, 553, 200),
    Box("cross_entropy", "row", "Cross-entropy: the loss", 22, 589, 200),
    # from the loss back to the weights
    Box("training", "train", "How training\ngoes", 260, 30, 100, 42),
    Box("adam", "train", "Adam:\na small step", 260, 130, 100, 42),
    Box("chain_rule", "train", "Chain rule:\ngoing back", 260, 230, 100, 42),
    Box("finite_differences", "train", "Finite\ndifferences", 260, 298, 100, 42),
    Box("initialization", "train", "How weights\nbegin", 260, 428, 100, 42),
    # what models that write have in addition
    Box("cross_attention", "write", "Mask, cross-attention", 0, 647, 177),
    Box("decoder", "write", "Decoder", 183, 647, 177),
    Box("language_models", "write", "Language models", 0, 679, 177),
    Box("caches", "write", "KV cache: token by token", 183, 679, 177),
    Box("causal_fourier", "write", "Fourier transforms that do not look ahead", 0, 711, 282),
    # what learns before there are labels
    Box("masked_tokens", "write", "No labels", 288, 711, 72),
    # what today's models have in place of other parts
    Box("rms_norm", "instead", "RMS norm", 0, 767, 90),
    Box("rotary", "instead", "Rotary (RoPE)", 96, 767, 136),
    Box("gates", "instead", "Gated network", 238, 767, 122),
    Box("grouped_queries", "instead", "Grouped queries", 0, 799, 177),
    Box("window", "instead", "A window: local attention", 183, 799, 177),
]

FRAMES = [(0, 68, 244, 399), (10, 114, 224, 189), (10, 362, 224, 53)]
"""Frames around several boxes, as x, y, width, height: the block, its mixer, its network."""

TEXTS = [
    (122, 14, "the food was not good"),
    (122, 265, "or, in place of attention"),
    (122, 376, "feed-forward network"),
    (336, 22, "again"),
    (310, 292, "checked by"),
    (310, 422, "before training"),
    (180, 637, "models that write"),
    (180, 757, "in today's models, in place of other parts"),
]

ARROWS = [
    "M122 19V28",
    "M122 56V66",
    "M122 102V112",
    "M88 178V186",
    "M156 201H164",
    "M195 214V219H78V222",
    "M148 237H156",
    "M51 303V319",
    "M92 334H113",
    "M129 334H138",
    "M187 347V360",
    "M122 107H239V312H122V325",  # the residual connection around the mixer
    "M70 395H78",
    "M164 395H172",
    "M51 415V431",
    "M92 446H113",
    "M129 446H138",
    "M187 354H239V424H122V437",  # and around the network
    "M122 467V479",
    "M122 507V515",
    "M122 543V551",
    "M122 579V587",
]
PLUSES = [(122, 334), (122, 446)]
BACK = [
    "M222 602H252V43H236",  # from the loss to the embedding, past every box
    "M252 566H224",
    "M252 530H224",
    "M252 494H224",
    "M252 395H246",
    "M252 200H246",
    "M252 251H258",
    "M310 230V174",
    "M310 130V74",
    "M310 30V10H192",  # new weights, and the next examples
]

KINDS = {"row": "#009e73", "mix": "#0072b2", "instead": "#0072b2", "train": "#d55e00"}
KINDS |= {"write": "#cc79a7", "frame": "#777777"}
STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#1f2328}"
    ".said{font-style:italic;font-size:12px;fill:#57606a}"
    ".arrow,.holds{fill:none;stroke:#888}.head{fill:#888}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.said{fill:#9da7b1}}"
)
"""The style of the file on its own; on the site a style sheet replaces it."""


def whole(link: Callable[[str], str | None] = lambda chapter: None, style: str = STYLE) -> str:
    """Return the diagram; `link` returns the address for the box of a chapter, or None."""
    title = "The machine: from a sentence to a loss, and back. Each box has a chapter."
    boxes = [_linked(box, link(box.chapter)) for box in BOXES]
    texts = [f'<text class="said" x="{x}" y="{y}">{text}</text>' for x, y, text in TEXTS]
    head = (
        '<defs><marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" '
        'markerHeight="6" orient="auto"><path class="head" d="M0 0L6 3L0 6z"/></marker></defs>'
    )
    arrow = '<path class="arrow" marker-end="url(#head)" '
    arrows = [f'{arrow}d="{way}"/>' for way in ARROWS]
    arrows += [f'{arrow}stroke-dasharray="3 3" d="{way}"/>' for way in BACK]
    ring = '<path class="holds" d="M{} {}m-7 0a7 7 0 1 0 14 0a7 7 0 1 0 -14 0m3 0h8m-4 -4v8"/>'
    arrows += [ring.format(*where) for where in PLUSES]
    styled = f"<style>{style}</style>" if style else ""
    inside = [styled + head, *_frames(), *arrows, *texts, *boxes]
    size = f'width="{WIDTH}" height="{HEIGHT}" ' if style else ""  # on its own it needs one
    return _svg("machine", title, inside, f'role="{"img" if style else "group"}" {size}')


def small(chapter: str) -> str:
    """Return the diagram without words, with the boxes of one chapter highlighted."""
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
