"""Draw the pictures of the pages: ``python -m docs.site.pictures [NAME ...]``.

``docs/pictures/NAME.py`` has a function ``draw`` that returns figures by name; the figure ``KEY``
becomes ``docs/pictures/NAME_KEY.svg``. The same arrays give the same file.
"""

import argparse
import importlib
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from docs.site.colours import WEIGHTS

PICTURES = Path(__file__).resolve().parents[1] / "pictures"

STYLE = {
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": mpl.cycler(
        color=["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
    ),  # Okabe and Ito (2008): told apart by colour-blind readers
    "image.cmap": WEIGHTS.name,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",  # text stays text: small files that can be searched
    "svg.hashsalt": "npformer",
}


def names() -> list[str]:
    """Return the names of all pictures' files."""
    return sorted(file.stem for file in PICTURES.glob("*.py") if not file.stem.startswith("_"))


def draw(name: str) -> list[Path]:
    """Draw the pictures of one file; return the files that were written."""
    with mpl.rc_context(STYLE):
        figures = importlib.import_module(f"docs.pictures.{name}").draw()
        written = []
        for key, figure in figures.items():
            path = PICTURES / f"{name}_{key}.svg"
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            plt.close(figure)
            path.write_text("\n".join(map(str.rstrip, path.read_text("utf-8").splitlines())) + "\n")
            written.append(path)
    return written


def main(words: list[str]) -> int:
    """Draw the named pictures, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m docs.site.pictures", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=names(), metavar="NAME", help=", ".join(names())
    )
    mpl.use("svg")
    for name in parser.parse_args(words).names or names():
        print(*(path.name for path in draw(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
