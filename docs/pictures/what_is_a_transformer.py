"""What training changes in the machine of "What is a Transformer?"; runs the page's code."""

import contextlib
import io

import matplotlib.pyplot as plt
import numpy as np

from docs.site.colours import WEIGHTS
from docs.site.pages import BLOCK, DOCS


def draw():
    """Draw which word looks at which, and the answers, before and after training."""
    page = machine_of_the_page()
    before, after = page["machine"](), page["model"]
    words, ids = page["sentence"], page["ids"][None]
    figure = plt.figure(figsize=(5.2, 6.9))  # narrow, so that its words are legible on a phone
    grid = figure.add_gridspec(3, 2, height_ratios=[1, 1, 1.2])
    for line, (name, model) in enumerate((("before", before), ("after", after))):
        matrices = model.explain(ids, mask=ids > 0)[0].matrices[0]
        for head in (0, 1):
            axis = figure.add_subplot(grid[line, head])
            axis.pcolormesh(matrices[head], cmap=WEIGHTS, vmin=0.0, vmax=1.0, ec="white", lw=1.2)
            axis.set_title(f"head {head + 1}, {name} training", fontsize=10)
            axis.set_xticks(np.arange(5) + 0.5, words, fontsize=9)
            axis.set_yticks(np.arange(5) + 0.5, words if head == 0 else [""] * 5, fontsize=9)
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
            axis.set_aspect("equal")
            axis.invert_yaxis()
    answers(figure.add_subplot(grid[2, :]), page, before, after)
    return {"training": figure}


def machine_of_the_page():
    """Return the names that the page's blocks define: the picture shows the page's own machine."""
    names = {"__name__": "__main__"}
    text = (DOCS / "what_is_a_transformer.md").read_text("utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        for found in BLOCK.finditer(text):
            exec(found["code"], names)
    return names


def answers(axis, page, before, after):
    """Draw the probability of "positive" for the page's sentences."""
    for line, text in enumerate(page["texts"]):
        start, end = (1 - page["probability_of_negative"](m, text.split()) for m in (before, after))
        axis.annotate(
            "", (end, line), (start, line), arrowprops={"arrowstyle": "->", "color": "#888888"}
        )
        axis.plot(start, line, "o", color="#e69f00", label="before" if line == 0 else None)
        axis.plot(end, line, "o", color="#0072b2", label="after" if line == 0 else None)
        axis.text(0.5, line - 0.25, text, ha="center", fontsize=9)
    axis.set(xlim=(-0.04, 1.04), ylim=(len(page["texts"]) - 0.5, -0.9), yticks=[])
    axis.set_xticks([0, 0.5, 1], ["negative", "1/2", "positive"])
    axis.axvline(0.5, color="#cccccc", lw=0.8, zorder=0)
    axis.spines["left"].set_visible(False)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 0.97), ncols=2, fontsize=9, frameon=False)
