"""The command line: npformer train, predict, look, play, data and the others in ``program``."""

import signal
import threading
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, or the process's own; return its exit status.

    The status is 0; 1 if a check failed; 2 for a mistake in the call; 130 after Ctrl-C.
    """
    # Python drops a KeyboardInterrupt that comes in the middle of some imports, and prints a
    # traceback at others. By default the signal ends the process at once.
    heard = signal.getsignal(signal.SIGINT)
    plain = heard is signal.default_int_handler
    if plain and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from npformer.cli.program import run

    if signal.getsignal(signal.SIGINT) is not heard:
        signal.signal(signal.SIGINT, heard)
    return run(arguments)
