"""Examples that train in a loop of their own let NumPy's BLAS use one thread."""

import ast
import os
import subprocess
import sys

import pytest

from tests.examples.conftest import EXAMPLES

WITH_THEIR_OWN_LOOP = [
    "fnet_as_written",
    "gpt_in_one_file",
    "one_step_by_hand",
    "translator_by_hand",
    "whole_encoder",
]


def line_of(tree, words):
    """Return the number of the first line whose statement contains some words."""
    return next(node.lineno for node in tree.body if words in ast.unparse(node))


@pytest.mark.parametrize("name", WITH_THEIR_OWN_LOOP)
def test_the_threads_are_limited_before_numpy_is_loaded(name):
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8"))
    limit = line_of(tree, "os.environ.setdefault('OMP_NUM_THREADS', '1')")
    assert limit < line_of(tree, "import numpy")


def test_numpy_has_one_thread_if_the_user_chose_no_number():
    script = (
        f"import runpy; runpy.run_path({str(EXAMPLES / 'whole_encoder.py')!r})\n"
        "from threadpoolctl import threadpool_info\n"
        "print([library['num_threads'] for library in threadpool_info()])"
    )
    environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() in ("[1]", "[]")  # threadpoolctl does not know every BLAS
