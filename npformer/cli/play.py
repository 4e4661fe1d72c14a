"""npformer play: a page on which a model is trained, looked into and tried out."""

import argparse
import importlib.util
import webbrowser
from pathlib import Path
from typing import Any

from npformer.cli.options import POSITIVE_INT, Commands, add_command, output_path
from npformer.cli.parser import Parser
from npformer.cli.shared_options import add_overwrite
from npformer.core import checks
from npformer.core.support.wording import did_you_mean
from npformer.data.libraries import install_command, library

FOLDER = Path("runs/play")

ENDS = "Ctrl-C ends it and its runs, which keep a checkpoint; the same command shows them again."

LIBRARIES = ("starlette", "uvicorn")
"""What the server needs: the extra `play`."""

EPILOG = """\
The page is served to this machine only, and its address contains an access token. Press
Ctrl-C to stop the server. Run the same command to see your runs again, and to resume them."""


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "play",
        summary="open a page that trains a model, draws what happens inside, and lets you try it",
        epilog=EPILOG,
        run=run,
    )
    parser.add_argument(
        "what",
        metavar="TASK|FILE|DIR",
        nargs="?",
        help="a task to start with, a CSV or text file, or the folder of an earlier page "
        "(runs/play)",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=POSITIVE_INT,
        help="port to listen on (default: the last one used, or any free port)",
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the address without opening a browser"
    )
    parser.add_argument(
        "--export",
        metavar="FILE",
        type=output_path,
        help="save the last state of a run's folder as one self-contained page, and exit",
    )
    add_overwrite(parser)


def run(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    if options.port is not None:
        checks.whole("--port", options.port, at_least=1, at_most=65535)
    folder, file, runs = _open(options.what)
    if options.export is not None:
        if runs or file:
            raise ValueError(
                f"--export is given with {options.what}; expected the folder of a page"
            )
        from npformer.learn.play.played import export_folder

        print(export_folder(folder, options.export, overwrite=options.overwrite))
        return 0

    for name in LIBRARIES:
        library(name, "play", "npformer play")
    from npformer.learn.play import server

    def ready(address: str) -> None:
        print(f"{address}\n{ENDS}", flush=True)
        if not options.no_open:
            webbrowser.open(address)

    server.serve(folder, options.port, file, runs, ready)
    return 0


def what_to_type() -> str:
    """Return the command that opens the page here: without its libraries, it installs them."""
    command = "npformer play"
    if all(importlib.util.find_spec(name) for name in LIBRARIES):
        return command
    return f"{install_command('play')} && {command}"


def _open(what: str | None) -> tuple[Path, str | None, list[dict[str, Any]] | None]:
    """Return the folder of the page, the file, and the settings of the runs that it begins with.

    `what` is a task, a file, the folder of a page, or None.
    """
    from npformer.learn.play.settings import NAMED
    from npformer.learn.play.tasks import defaults

    if what is None:
        return FOLDER, None, None
    path = Path(what)
    if what in NAMED and not path.exists():
        return FOLDER, None, [defaults(what).to_dict()]
    if path.is_file():
        return FOLDER, str(path.resolve()), None
    if what and path.is_dir():
        return path, None, None
    problem = "is neither a file nor a folder" if path.exists() else "does not exist"
    runs = ", ".join(sorted(map(str, path.parent.glob("run-*")))) or "a folder with runs"
    raise FileNotFoundError(
        f"{what!r} {problem}; expected a table, a text, {runs}, or one of the tasks "
        f"{', '.join(NAMED)}{did_you_mean(what, NAMED)}"
    )
