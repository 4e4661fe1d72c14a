"""A bar on stderr that shows how far a long work has come."""

import sys
import warnings
from contextlib import redirect_stderr
from typing import Any

from npformer.core.streams import Forgiving


def bar(shown: bool, **options: Any) -> Any:
    """Return a bar of tqdm with these options; it draws nothing unless `shown`."""
    from tqdm import TqdmMonitorWarning, tqdm

    shown = shown and sys.stderr is not None  # closed (`2>&-`), or a program of windows
    with redirect_stderr(Forgiving(sys.stderr)), warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmMonitorWarning)  # where there are no threads
        return tqdm(disable=not shown, **options)
