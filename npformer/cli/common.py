"""What commands share: exit statuses, warnings, and a few words."""

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from npformer.core import get_backend

STATUS = {"interrupted": 130, "terminated": 143}
"""Exit statuses by `History.stopped`: what shells report after Ctrl-C and after SIGTERM."""


@contextmanager
def print_warnings_as_lines(command: str) -> Iterator[None]:
    """Print warnings as errors are printed, without the line of code that Python adds."""
    with warnings.catch_warnings():
        show_warning = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                print(f"npformer {command}: warning: {message}", file=sys.stderr)
            else:
                show_warning(message, category, *rest, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", UserWarning)
        yield


def device_of(options: argparse.Namespace) -> str:
    """Return a description of where a command computes."""
    device = get_backend(options.backend).device()
    if options.ranks.size > 1:
        device = f"{options.ranks.size} ranks, the first on {device}"
    return device if options.precision == "float32" else f"{device}, products in TF32"


def counted(n: int, kind: str) -> str:
    """Return "1 text", "2 texts", "1 series"."""
    return f"{n:,} {kind if n != 1 or kind.endswith('series') else kind.removesuffix('s')}"


def one_line(text: str, most: int) -> str:
    """Return the beginning of a text for a terminal: one line, without control characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"
