"""Objects in processes of their own, so that what is compared cannot share anything.

Two libraries in one process share the memory allocator, whose habits depend on what was freed
before, and each finds the other's threads on its cores. Who uses npformer has no PyTorch beside it.
"""

import importlib
import multiprocessing
import traceback


class Remote:
    """An object in another process; its methods are called over a pipe.

    Parameters
    ----------
    module, name : str
        Where its class is. Only the other process imports it.
    *arguments
        Of the class.
    """

    def __init__(self, module, name, *arguments):
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        # Not a daemon: those may have no processes of their own, and npformer's workers are some.
        self._process = context.Process(target=_serve, args=(there, module, name, arguments))
        self._process.start()
        there.close()  # then the other side's end of the pipe ends it, whatever happens here

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._here.close()  # which ends the other side's loop
        self._process.join(timeout=30)
        if self._process.is_alive():
            self._process.kill()

    @property
    def pid(self):
        """Number of the process."""
        return self._process.pid

    def call(self, method, *arguments):
        """Return what a method returns.

        Raises
        ------
        RuntimeError
            It raised; the message is the other process's traceback.
        """
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
