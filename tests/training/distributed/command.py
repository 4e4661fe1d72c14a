"""Run a command of npformer as a rank of several, and keep what it prints."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from npformer import cli
from npformer.training.distributed import world


def main(folder, *words):
    """Write status, output and errors of this rank."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        try:
            status = cli.main(words)
        except SystemExit as end:
            status = end.code
    output = {"status": status, "out": out.getvalue(), "err": err.getvalue()}
    (folder / f"{world().rank}.json").write_text(json.dumps(output))
