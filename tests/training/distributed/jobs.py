"""Run several programs of this folder one after the other: ``jobs.py FOLDER``, see `run_jobs`."""

import importlib
import json
import os
import sys
import warnings
from pathlib import Path

from npformer.training.distributed import RankFailed, world


def run(folder, work):
    """Run each job; return how it ended on each rank. An error does not keep the next from it."""
    ended = {}
    for name, (program, *arguments) in work.items():
        error = ""
        try:
            main = importlib.import_module(f"tests.training.distributed.{program}").main
            with warnings.catch_warnings(action="ignore"):
                main(folder / name, *arguments)
        except (Exception, RankFailed) as caught:
            notes = getattr(caught, "__notes__", [])
            error = "\n".join([f"{type(caught).__name__}: {caught}", *notes])
        ended[name] = world().gather(error)
    return ended


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / f"rank-{world().rank}.pid").write_text(str(os.getpid()))
    ends = run(folder, json.loads((folder / "jobs.json").read_text()))
    if world().rank == 0:
        (folder / "ended.json").write_text(json.dumps(ends))
