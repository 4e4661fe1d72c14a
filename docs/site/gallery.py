"""How examples look on the site: order, pictures for light and dark pages, no progress bars."""

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import tqdm

from docs.site.pictures import STYLE

ORDER = [
    "train_digits",
    "swap_the_mixer",
    "look_inside",
    "classify_texts",
    "classify_series",
    "imbalanced_classes",
    "scikit_learn",
    "fine_tune_pretrained",
    "fnet_as_written",
    "settings_for_fourier",
    "one_step_by_hand",
    "check_a_gradient",
    "whole_encoder",
    "gpt_in_one_file",
    "translator_by_hand",
    "batches_by_length",
    "same_on_gpu",
    "larger_than_memory",
    "several_ranks",
]
"""The examples by level, as their header has them."""

INK = "#7d838a"
"""A grey that is legible on both."""


usual_bar = tqdm.tqdm


def bar_without_output(*args: Any, **options: Any) -> Any:
    """Return a progress bar that draws nothing: on a page, each of its states would be a line."""
    options["disable"] = True
    return usual_bar(*args, **options)


tqdm.tqdm = bar_without_output
# without the path of the machine on which the site is built
warnings.formatwarning = lambda message, kind, *where: f"{kind.__name__}: {message}\n"


def by_level(file: str) -> int:
    """Return the place of a file in the gallery."""
    return ORDER.index(Path(file).stem)


def style(conf: dict[str, Any], name: str, when: str) -> None:
    """Give the next example's pictures a transparent background and grey ink."""
    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    mpl.rcParams.update(STYLE)
    mpl.rcParams.update(dict.fromkeys(ink, INK))
    mpl.rcParams.update(
        {
            "savefig.transparent": True,
            "legend.frameon": False,
            "figure.dpi": 150,
            "axes.facecolor": "none",
            "figure.facecolor": "none",
        }
    )
