"""Marking in a separate process: a reader's file may loop for ever, or end Python."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from npformer.core import cores
from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.folder import find
from npformer.learn.exercises.reader_file import source_of
from npformer.learn.exercises.referee import MISSING, NOT_BEGUN, WRONG, Verdict, is_untouched, judge
from npformer.learn.exercises.table import exercise
from npformer.training.storage.files import write_whole

STARTING = 60.0
"""How much longer a process may take, to start and to import."""


def check(
    folder: Path, names: list[str], seconds: float | None = None
) -> Iterator[tuple[Path | None, Verdict]]:
    """Yield the file of each exercise, and the verdict on it."""

    def check_one(name: str) -> tuple[Path | None, Verdict]:
        path = find(folder, name)
        return path, Verdict(MISSING) if path is None else check_file(name, path, seconds)

    with ThreadPoolExecutor(min(4, cores())) as pool:
        yield from pool.map(check_one, names)


def check_file(name: str, path: Path, seconds: float | None = None) -> Verdict:
    """Mark one file in a separate process, which runs in the file's folder."""
    seconds = exercise(name).seconds if seconds is None else seconds
    try:
        text, _ = source_of(path)
    except ValueError as error:
        return Verdict(WRONG, [str(error)])
    if is_untouched(exercise(name), text):
        return Verdict(NOT_BEGUN)
    with tempfile.TemporaryDirectory() as place:
        verdict = Path(place) / "verdict.json"
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONPATH": os.pathsep.join(str(Path(folder).resolve()) for folder in sys.path),
        }
        try:
            process = subprocess.run(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    __name__,
                    name,
                    str(path.resolve()),
                    str(verdict),
                    str(seconds),
                ],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                env=environment,
                timeout=seconds + STARTING,
                cwd=path.parent,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Verdict(WRONG, [_too_long(seconds, "")])
        if verdict.exists():
            return Verdict(**json.loads(verdict.read_text("utf-8")))
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        status = process.returncode
        return Verdict(
            WRONG, [f"its process ended with status {status} before it was marked: {last}"]
        )


def main(name: str, path: str, verdict: str, seconds: str) -> None:
    """Mark one file in this process, and write the verdict to a file."""
    text, places = source_of(Path(path))
    answer = Answer(text, path, places)
    limit = float(seconds)
    thread = threading.get_ident()

    def give_up() -> None:
        says = _too_long(limit, answer.line_now(thread))
        _write(Verdict(WRONG, [says], answer.prints()), Path(verdict))
        os._exit(1)

    alarm = threading.Timer(limit, give_up)
    alarm.daemon = True
    alarm.start()
    judgement = judge(exercise(name), answer)
    alarm.cancel()
    _write(judgement, Path(verdict))


def _write(said: Verdict, verdict: Path) -> None:
    """Write all or nothing: the process may be ended at any moment."""
    write_whole(verdict, json.dumps(asdict(said)).encode())


def _too_long(seconds: float, where: str) -> str:
    at = f"; it was at {where}" if where else ""
    return f"it was stopped after {seconds:g} seconds{at}. Does a loop never end?"


if __name__ == "__main__":
    main(*sys.argv[1:])
