"""A progress bar on stderr for long tasks."""

import sys
import warnings
from contextlib import redirect_stderr
from typing import Any

from npformer.core.support.lossy_stream import LossyStream


def progress_bar(shown: bool, **options: Any) -> Any:
    """Return a tqdm bar with these options; it draws nothing unless `shown`."""
    from tqdm import TqdmMonitorWarning, tqdm

    shown = shown and sys.stderr is not None  # closed (`2>&-`), or a program without a console
    with redirect_stderr(LossyStream(sys.stderr)), warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmMonitorWarning)  # where there are no threads
        return tqdm(disable=not shown, **options)
