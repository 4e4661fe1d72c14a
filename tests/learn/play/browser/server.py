"""A server of npformer play in a process of its own, for tests."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


class Server:
    """`npformer play FOLDER`, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def known(self) -> dict[str, str | int]:
        """Token and port, as the server left them in its folder."""
        return json.loads((self.folder / "server.json").read_text("utf-8"))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.known['port']}/?token={self.known['token']}"

    @property
    def last(self) -> Path:
        """The folder of the first of the runs that were begun last."""
        return self.folder / json.loads((self.folder / "shown.json").read_text("utf-8"))[0]

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)  # an argument that exists is a folder
        command = [sys.executable, "-m", "npformer", "play", str(self.folder), "--no-open"]
        with (self.folder.parent / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log
            try:
                urllib.request.urlopen(self.address, timeout=5).close()
            except (OSError, ValueError):  # not written yet, or nobody listens yet
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"the server does not answer\n{self.log}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    @property
    def log(self) -> str:
        return (self.folder.parent / "server.log").read_text("utf-8")
