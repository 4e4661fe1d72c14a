"""Pictures for the questions, drawn from the measurements of `python -m benchmarks questions`."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "questions.json"


def draw():
    """Return the figures by name."""
    found = {name: part["figures"] for name, part in json.loads(RESULTS.read_text("utf-8")).items()}
    settings = [*found["fourier vowels"], *found["fourier sentences"]]
    return {
        "collapse": collapse(found["collapse"]),
        "memories": memories(found["memories"]["shown"]),
        "fourier": one_at_a_time(settings),
    }


def collapse(found):
    """Draw how far tokens are from equal after each layer."""
    figure, axes = plt.subplots(figsize=(7.0, 4.2))
    for k, (name, values) in enumerate(found.items()):
        # In pairs: without a feed-forward network, and with one.
        style = {"ls": "-", "lw": 1.2} if k % 2 else {"ls": ":", "lw": 2.6, "zorder": 3}
        axes.plot(values, color=f"C{k // 2}", label=name, **style)
    axes.text(23.8, 1.5e-15, "rounding of float64", ha="right", fontsize=9)
    axes.set_yscale("log")
    axes.set_ylim(1e-16, 3.0)
    axes.set_xlim(0, 24)
    axes.set_xlabel("layer")
    axes.set_ylabel("difference between tokens, relative")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    return figure


def memories(units):
    """Draw the five images with a unit's strongest rows, and frame these rows."""
    figure, all_axes = plt.subplots(len(units), 6, figsize=(7.0, 1.05 * len(units)))
    for unit, axes in zip(units, all_axes, strict=True):
        for image, row, ax in zip(unit["images"], unit["rows"], axes, strict=False):
            ax.imshow(np.array(image), cmap="gray_r", vmin=0.0, aspect="equal")
            frame = plt.Rectangle((-0.5, row - 0.5), 8, 1, fill=False, ec="#d55e00", lw=1.8)
            frame.set_clip_on(False)
            ax.add_patch(frame)
            ax.axis("off")
        counts = np.bincount(unit["digits"], minlength=10)
        axes[5].bar(range(10), counts, color="#0072b2")
        axes[5].set_xticks(range(10))
        axes[5].set_yticks([0, 20])
        axes[5].set_ylim(0, 20)
        axes[5].tick_params(labelsize=9, length=2)
        axes[5].set_title(f"unit {unit['unit']}", fontsize=9, pad=2)
    return figure


def one_at_a_time(found):
    """Draw the accuracy of both mixers after each change of a setting, for each task."""
    changes = list(dict.fromkeys(f["change"] for f in found))
    tasks = list(dict.fromkeys(f["task"] for f in found))
    figure, all_axes = plt.subplots(1, len(tasks), figsize=(7.4, 4.6), sharey=True)
    for task, axes in zip(tasks, all_axes, strict=True):
        for mixer, colour, marker in (("attention", "#0072b2", "o"), ("fourier", "#d55e00", "D")):
            of_mixer = [f for f in found if (f["task"], f["mixer"]) == (task, mixer)]
            rows = [changes.index(f["change"]) for f in of_mixer]
            means = [np.mean(f["accuracy"]) for f in of_mixer]
            axes.scatter(means, rows, color=colour, marker=marker, s=26, label=mixer, zorder=3)
            axes.axvline(means[0], color=colour, lw=0.8, ls=":")
        axes.set_title(task, fontsize=10)
        axes.set_xlabel("test accuracy")
        axes.grid(axis="y", lw=0.3)
    all_axes[0].set_yticks(range(len(changes)), [name.replace("`", "") for name in changes])
    all_axes[0].invert_yaxis()
    all_axes[0].legend(frameon=False, fontsize=9, loc="lower left")
    return figure
