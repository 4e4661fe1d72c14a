"""The page of `npformer play`: how fast it answers while a run trains, and what it costs.

A script replaces the page, which on the same cores would measure itself: it listens to the
events, and asks questions. The run is digits with two layers of d_model 64.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from benchmarks.results_files import markdown, write

SETTINGS = {"task": "digits", "mixers": ["attention", "attention"], "d_model": 64, "dropout": 0.2}
EPOCHS = 25
ROUNDS = 3
ASKED = 100
QUESTIONS = (
    {"question": "digit", "image": [[0.5] * 8] * 8},
    {"question": "step", "sample": 3},
    {"question": "weight", "name": "classify.weight", "index": [0, 0], "sample": 3},
    {"question": "samples"},
)

ALONE = """
import json, sys, time
from npformer.learn.play.tasks import defaults, work_of
from npformer.training.callbacks import Callback

class Clock(Callback):
    def on_start(self, state):
        self.began = time.perf_counter()
    def after_training(self, state):
        print(time.perf_counter() - self.began)

settings = json.loads(sys.argv[1])
work = work_of(defaults(**{"name": settings.pop("task"), **settings}))
work.train(callbacks=[Clock()], checkpoint=sys.argv[2], every=5, progress=False, workers=1)
"""


class Page:
    """A server, and a client in place of the page."""

    def __init__(self, folder):
        folder.mkdir()
        command = [sys.executable, "-m", "npformer", "play", str(folder), "--no-open"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        address = self.process.stdout.readline().strip()
        self.host, self.token = address.removeprefix("http://").split("/?token=")
        self.states, self.changed = [], threading.Condition()
        self.run = None  # the name of the one that was begun last
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        address = f"http://{self.host}/events?token={self.token}"
        with urllib.request.urlopen(address) as stream:
            for line in stream:
                if line.startswith(b'data: {"kind": "runs"'):
                    runs = json.loads(line.removeprefix(b"data: "))["runs"]
                    with self.changed:
                        self.states.append((time.perf_counter(), [run["state"] for run in runs]))
                        self.changed.notify_all()

    def wait_for(self, state):
        """Return when a run was first seen in a state since the last start."""
        with self.changed:
            while True:
                for when, states in self.states:
                    if states and set(states) == {state}:
                        return when
                self.changed.wait()

    def post(self, name, /, **body):
        """Return the answer, and the seconds that it took."""
        began = time.perf_counter()
        connection = http.client.HTTPConnection(self.host)
        connection.request("POST", f"/api/{name}", json.dumps(body), {"X-Token": self.token})
        answer = json.loads(connection.getresponse().read())
        assert "error" not in answer, answer
        return answer, time.perf_counter() - began

    def begin(self, **settings):
        """Start a run, and return its name."""
        self.states.clear()
        ends = [self.run] if self.run else []
        answer, _ = self.post("start", runs=[SETTINGS | settings], ends=ends)
        self.run = answer["runs"][0]["run"]
        return self.run

    def end(self):
        """End the server."""
        self.process.terminate()
        self.process.wait()


def run():
    """Measure, and write the table."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        page = Page(Path(folder, "play"))
        try:
            found |= _times(page, Path(folder))
            found |= _answers(page)
        finally:
            page.end()
    write("play", found, table(found))


def _times(page, folder):
    """Return the seconds of a training with a page and without, in turn, and the server's share."""
    with_page, without, share = [], [], []
    settings = SETTINGS | {"epochs": EPOCHS}
    for k in range(ROUNDS):
        command = [sys.executable, "-c", ALONE, json.dumps(settings), str(folder / f"alone-{k}")]
        without.append(float(subprocess.run(command, capture_output=True, text=True).stdout))
        page.begin(epochs=EPOCHS)
        began, cpu = page.wait_for("running"), _cpu(page.process.pid)
        ended = page.wait_for("finished")
        with_page.append(ended - began)
        share.append((_cpu(page.process.pid) - cpu) / (ended - began))
        print(f"{with_page[-1]:.2f} s with a page, {without[-1]:.2f} s without", flush=True)
    medians = statistics.median(with_page), statistics.median(without)
    return {
        "seconds_with_a_page": round(medians[0], 3),
        "seconds_without": round(medians[1], 3),
        "ratio": round(medians[0] / medians[1], 3),
        "servers_share_of_a_core": round(statistics.median(share), 4),
    }


def _answers(page):
    """Return answer times: of questions while a run trains, and of a weight while it pauses."""
    run = page.begin(epochs=1000)
    page.wait_for("running")
    taken = []
    for k in range(ASKED):
        taken.append(page.post("ask", run=run, **QUESTIONS[k % len(QUESTIONS)])[1])
        time.sleep(0.05)
    page.post("control", run=run, action="pause")
    page.wait_for("paused")
    paused = []
    for k in range(21):
        _, seconds = page.post(
            "ask",
            run=run,
            sample=k,
            question="weight",
            name="encoder.blocks.0.mixer.query.weight",
            index=[1, 2],
        )
        paused.append(seconds)
    page.post("control", run=run, action="stop")
    return {
        "asked": ASKED,
        "within_100_ms": sum(each <= 0.1 for each in taken),
        "median_ms": round(1e3 * statistics.median(taken), 1),
        "slowest_ms": round(1e3 * max(taken), 1),
        "weight_while_paused_ms": round(1e3 * statistics.median(paused), 1),
        "slowest_weight_while_paused_ms": round(1e3 * max(paused), 1),
    }


def _cpu(pid):
    """Return the CPU seconds that a process has used, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def table(found):
    """Return the table in Markdown."""
    paused = "{weight_while_paused_ms} ms, {slowest_weight_while_paused_ms} ms"
    cells = {
        "answers within 100 ms while a run trains": "{within_100_ms} of {asked}",
        "median, slowest answer": "{median_ms} ms, {slowest_ms} ms",
        "a weight's gradients, while paused: median, slowest": paused,
        "training with a page / without": "{ratio:.2f}",
        "the server's share of a core": "{servers_share_of_a_core:.1%}",
    }
    found = [(name, cell.format(**found).replace("%", " %")) for name, cell in cells.items()]
    return markdown(("", ""), found)
