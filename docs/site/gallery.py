"""The style of the examples' pictures, for light and dark pages."""

from typing import Any

import matplotlib as mpl

from docs.site.pictures import STYLE

INK = "#7d838a"
"""A grey that is legible on both."""


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
