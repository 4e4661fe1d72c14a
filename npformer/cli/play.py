"""npformer play: a page on which a model is trained, looked into and tried out."""

import argparse
import webbrowser
from pathlib import Path

from npformer.core import checks

FOLDER = Path("runs/play")


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
    elif what is not None and Path(what).is_dir():
        folder = Path(what)
    elif what is not None:
        hint = checks.did_you_mean(what, TASKS)
        raise FileNotFoundError(
            f"{what} is not a task, and there is no such file or folder; expected one of "
            f"{', '.join(TASKS)}, a file or a folder{hint}"
        )
    if options.export is not None:
        from npformer.learn.play.played import export_folder

        print(export_folder(folder, options.export))
        return 0

    try:
        from npformer.learn.play import server
    except ModuleNotFoundError as error:
        raise ImportError(
            f"npformer play needs {error.name}; expected the extra play. Install it: "
            'pip install "npformer[play]", in a clone pip install ".[play]"'
        ) from error

    def ready(address: str) -> None:
        print(f"{address}\nCtrl-C ends it.", flush=True)
        if not options.no_open:
            webbrowser.open(address)

    server.serve(folder, options.port, file, first, ready)
    return 0
