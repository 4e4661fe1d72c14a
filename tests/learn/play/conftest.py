"""A server of npformer play, and a client in place of a page."""

import http.client
import json
import time
import urllib.error
import urllib.request

import pytest

from tests.learn.play.browser.server import Server
from tests.needs import NEEDS

TINY = {"task": "digits", "mixers": ["attention"], "d_model": 16, "n_heads": 2, "d_ff": 16}


class Client:
    """What the page's scripts do."""

    def __init__(self, server):
        self.server = server

    @property
    def host(self):
        return f"127.0.0.1:{self.server.known['port']}"

    @property
    def token(self):
        return self.server.known["token"]

    def request(self, method, path, body=None, **headers):
        """Return (status, answer); the headers are as given, with the token of the page."""
        headers = {"X-Token": self.token, **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] == b"{" else text
        finally:
            connection.close()

    def post(self, name, /, **body):
        status, answer = self.request("POST", f"/api/{name}", json.dumps(body).encode())
        assert status == 200, answer
        return answer

    def ask(self, question, /, **more):
        """Ask the first of the runs that were begun last."""
        return self.post("ask", run=self.runs()[0]["run"], question=question, **more)

    def events(self, seconds=5.0):
        """Yield what the server tells a page that has just come."""
        address = f"http://{self.host}/events?token={self.token}"
        with urllib.request.urlopen(address, timeout=seconds) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

    def runs(self):
        return next(self.events())["runs"]

    def wait_for(self, *states, seconds=60.0):
        """Return the runs once all of them are in one of some states."""
        end = time.monotonic() + seconds
        while True:
            runs = self.runs()
            if runs and all(run["state"] in states for run in runs):
                return runs
            assert time.monotonic() < end, runs
            time.sleep(0.05)

    def begin(self, **settings):
        """Start a run, and agree to the end of all others."""
        ends = [run["run"] for run in self.runs()]
        return self.post("start", runs=[{**TINY, **settings}], ends=ends)


@pytest.fixture(scope="session")
def live(tmp_path_factory):
    for package in ("starlette", "uvicorn"):
        pytest.importorskip(package, reason=NEEDS[package])
    server = Server(tmp_path_factory.mktemp("live") / "runs")
    server.start()
    yield server
    server.stop()
    assert "Traceback" not in server.log  # whatever it was asked


@pytest.fixture
def client(live):
    return Client(live)
