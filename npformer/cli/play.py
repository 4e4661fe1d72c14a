"""npformer play: a page on which a model is trained, looked into and tried out."""

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from npformer.cli import common
from npformer.cli.common import option
from npformer.core import checks
from npformer.data.libraries import library

FOLDER = Path("runs/play")


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    epilog = (
        "The page is served on this machine alone, and its address has a token in it. Ctrl-C ends\n"
        "it. The same command shows the runs again: each goes on where it stopped when you say so."
    )
    summary = "open a page that trains a model, draws what happens inside, and lets you try it"
    parser = common.add_command(commands, "play", run, summary, epilog)
    what = f"a task to begin with, a CSV or text, or the folder of an earlier page ({FOLDER})"
    parser.add_argument("what", nargs="?", metavar="TASK|FILE|DIR", help=what)
    option(parser, "--port N", "where to listen (default: the same as last time, or any)")
    option(parser, "--no-open", "print the address without opening a browser")
    export = "write the last state of a folder's run as one page without a server, and end"
    option(parser, "--export FILE", export)


def run(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    if options.port is not None:
        checks.whole("--port", options.port, at_least=1, at_most=65535)
    from npformer.learn.play.settings import TASKS
    from npformer.learn.play.tasks import defaults

    what, folder, file, first = options.what, FOLDER, None, None
    if what in TASKS and not Path(what).exists():
        first = [defaults(what).to_dict()]
    elif what is not None and Path(what).is_file():
        file = str(Path(what).resolve())
    elif what and Path(what).is_dir():
        folder = Path(what)
    elif what is not None:
        hint = checks.did_you_mean(what, TASKS)
        raise FileNotFoundError(
            f"{what!r} is neither a task nor a file nor a folder; expected a folder, a file, which "
            f"each run reads anew, or one of {', '.join(TASKS)}{hint}"
        )
    if options.export is not None:
        if first or file:
            raise ValueError(f"--export is given with {what}; expected the folder of a page")
        from npformer.learn.play.played import export_folder

        print(export_folder(folder, options.export))
        return 0

    for name in ("starlette", "uvicorn"):
        library(name, "play", "npformer play")
    from npformer.learn.play import server

    def ready(address: str) -> None:
        print(f"{address}\nCtrl-C ends it.", flush=True)
        if not options.no_open:
            webbrowser.open(address)

    server.serve(folder, options.port, file, first, ready)
    return 0
