"""Objects in separate processes, so that compared libraries share nothing.

In one process, both would use the same memory allocator, whose speed depends on what was freed
before, and their threads would compete for cores. Users of npformer have no PyTorch in the process.
"""

import importlib
import json
import multiprocessing
import os
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def printed(*words, launcher=(), **environment):
    """Return what ``python -m WORDS`` prints last, which is JSON, in its own process."""
    command = [*launcher, sys.executable, "-m", *map(str, words)]
    environment = os.environ | environment
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


class Remote:
    """An object in another process; its methods are called over a pipe.

    Parameters
    ----------
    module, name : str
        The module and the name of the class. Only the other process imports them.
    *arguments
        Arguments of the class.
    **environment
        Variables of the process's environment.
    """

    def __init__(self, module, name, *arguments, **environment):
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        # Not a daemon: daemons cannot start processes.
        self._process = context.Process(target=_serve, args=(there, module, name, arguments))
        before = dict(os.environ)
        os.environ.update(environment)
        try:
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        there.close()  # so that the other process ends when this one does

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._here.close()  # which ends the other side's loop
        self._process.join(timeout=30)
        if self._process.is_alive():
            self._process.kill()

    @property
    def pid(self):
        """The id of the process."""
        return self._process.pid

    def call(self, method, *arguments):
        """Call a method; if it raises, raise RuntimeError with the other process's traceback."""
        try:
            self._here.send((method, arguments))
            good, value = self._here.recv()
        except (EOFError, OSError) as problem:
            raise RuntimeError(f"the process ended during {method}; out of memory?") from problem
        if not good:
            raise RuntimeError(value)
        return value


def _serve(pipe, module, name, arguments):
    served = failed = None
    try:
        served = getattr(importlib.import_module(module), name)(*arguments)
    except Exception:
        failed = traceback.format_exc()
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            return
        try:
            if failed:
                raise RuntimeError(failed)
            pipe.send((True, getattr(served, method)(*arguments)))
        except Exception:
            pipe.send((False, traceback.format_exc()))
