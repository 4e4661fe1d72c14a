"""Systems and builds of Python that lack something: npformer computes there, alone if it has to."""

import subprocess
import sys

import pytest

from tests.sampling import mark_others

NO_FORK = "del os.fork"
NO_AFFINITY = "del os.sched_getaffinity, os.sched_setaffinity"
NO_THREADS = 'threading.Thread.start = refuse(RuntimeError("can\'t start new thread"))'
UNKNOWN = "os.cpu_count = lambda: None"
NO_PROCESSES = "block('_multiprocessing', '_posixshmem', 'mmap', 'fcntl')"

PLATFORMS = {  # what is missing
    "nothing": "",
    "fork": NO_FORK,
    "multiprocessing": "block('multiprocessing', '_multiprocessing', '_posixshmem')",
    "threads": NO_THREADS,
    "fcntl": "block('fcntl')",
    "affinity": NO_AFFINITY,
    "a number of cores": f"{NO_AFFINITY}; {UNKNOWN}",
    "nearly everything": (  # as in a browser
        f"{NO_FORK}, os.register_at_fork; {NO_AFFINITY}; {UNKNOWN}; {NO_THREADS}; {NO_PROCESSES}; "
        "sys.platform = 'emscripten'"
    ),
}

PREAMBLE = """
import os, random, sys, tempfile, threading, time, warnings
from pathlib import Path

def block(*names):
    sys.modules.update(dict.fromkeys(names))

def refuse(error):
    def refused(*arguments, **options):
        raise error
    return refused

import numpy as np, scipy.fft, scipy.sparse, scipy.special, safetensors  # they are not on trial
warnings.simplefilter("error")
"""

USE = """
import npformer as nf
from npformer.engine import worker_counts
from npformer.core import cores

assert cores() >= 1
if cores() > 1 or os.cpu_count():
    worker_counts.cores = lambda: 3
worker_counts.THREAD_SECONDS = 1e-9  # sharing is worth it
worker_counts.THREAD_TOKENS = 1

x = np.random.default_rng(0).integers(0, 7, (24, 6))
data = x, x[:, 0] % 2
config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=6)

def trained(**options):
    model = nf.SequenceClassifier(config, 2, vocab_size=7, dtype="float64")
    nf.fit(model, data, validation=data, epochs=2, batch_size=8, **options)
    return model

alone = trained(workers=1, progress=False)
for options in ({}, {"workers": 2}):
    model = trained(**options)
    np.testing.assert_allclose(model.parameters().flat, alone.parameters().flat, atol=1e-9)
assert nf.evaluate(model, data).accuracy == (model.predict(x) == data[1]).mean()
model.loss_and_gradients(*data, workers=2)
nf.gradcheck((nf.functional.gelu, nf.functional.gelu_backward), np.ones((2, 3)))
with tempfile.TemporaryDirectory() as folder:
    nf.save(model, Path(folder) / "model.safetensors")
    again = nf.load(Path(folder) / "model.safetensors")
np.testing.assert_array_equal(again.predict(x), model.predict(x))
print("computed")
"""


@pytest.mark.parametrize(
    "missing", mark_others(["fork", "nearly everything"], PLATFORMS, pytest.mark.processes)
)
def test_it_computes_where_there_is_no(missing):
    command = [sys.executable, "-c", f"{PREAMBLE}\n{PLATFORMS[missing]}\n{USE}"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    assert "Warning" not in process.stderr
    assert process.stdout == "computed\n"
