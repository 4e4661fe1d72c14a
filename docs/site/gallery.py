"""How examples look on the site: pictures for light and dark pages, and no progress bars."""

from functools import partial
from typing import Any

import matplotlib as mpl
import tqdm

from docs.site.pictures import STYLE

INK = "#7d838a"
"""A grey that is legible on both."""


def bar_without_output(usual: Any, *args: Any, **options: Any) -> Any:
    """Return a progress bar that draws nothing: on a page, each of its states would be a line."""
    return usual(*args, **{**options, "disable": True})


tqdm.tqdm = partial(bar_without_output, tqdm.tqdm)


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
