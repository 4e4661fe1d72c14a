"""npformer play: a page on which a model is trained, looked into and tried out."""

import argparse
import webbrowser
from pathlib import Path

from npformer.core import checks
from npformer.core.support.words import did_you_mean
from npformer.data.libraries import library

FOLDER = Path("runs/play")


def run(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    if options.port is not None:
        checks.whole("--port", options.port, at_least=1, at_most=65535)
    from npformer.learn.play.settings import NAMED
    from npformer.learn.play.tasks import defaults

    what, folder, file, first = options.what, FOLDER, None, None
    if what in NAMED and not Path(what).exists():
        first = [defaults(what).to_dict()]
    elif what is not None and Path(what).is_file():
        file = str(Path(what).resolve())
    elif what and Path(what).is_dir():
        folder = Path(what)
    elif what is not None:
        problem = "is neither a file nor a folder" if Path(what).exists() else "does not exist"
        runs = ", ".join(sorted(map(str, Path(what).parent.glob("run-*")))) or "a folder with runs"
        raise FileNotFoundError(
            f"{what!r} {problem}; expected a table, a text, {runs}, or one of the tasks "
            f"{', '.join(NAMED)}{did_you_mean(what, NAMED)}"
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
