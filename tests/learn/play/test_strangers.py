"""Strangers who keep connections, and a terminal that nobody reads: pages are served all the same.

The server is in a thread of this process, and waits for fractions of a second.
"""

import fcntl
import http.client
import io
import os
import socket
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from npformer.learn.play.output import DroppingStream, output_that_never_waits
from tests.needs import NEEDS

pytest.importorskip("starlette", reason=NEEDS["starlette"])

from npformer.learn.play import server

SILENT = 0.3


class Page:
    """A server in a thread, and what its owner and strangers do."""

    def __init__(self, address: str) -> None:
        self.host, _, self.token = address.removeprefix("http://").partition("/?token=")
        self.port = int(self.host.partition(":")[2])
        self.server = None  # once it runs

    def owner(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, timeout=10)

    def ask(self, connection: http.client.HTTPConnection) -> int:
        """Ask as the page does, and return the status."""
        connection.request("POST", "/api/control", b'{"run": "all"}', {"X-Token": self.token})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def stranger(self, words: str = "", **settings: int) -> socket.socket:
        """Connect, and send the beginning of a request, or the whole of it."""
        one = socket.socket()
        one.settimeout(10)
        for name, value in settings.items():
            one.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
        one.connect(("127.0.0.1", self.port))
        one.sendall(words.format(host=f"Host: {self.host}\r\n").encode())
        return one

    @property
    def n_open(self) -> int:
        return len(self.server.server_state.connections)


@contextmanager
def served(folder: Path, monkeypatch):
    """Serve the page of a folder by `serve`, and end."""
    servers = []
    addresses = []
    ready = threading.Event()

    class Kept(server.Server):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            servers.append(self)

    monkeypatch.setattr(server, "Server", Kept)

    def told(address: str) -> None:
        addresses.append(address)
        ready.set()

    thread = threading.Thread(target=server.serve, args=(folder, None, None, None, told))
    thread.start()
    assert ready.wait(20)
    page = Page(addresses[0])
    try:
        owner = page.owner()
        assert page.ask(owner) == 400  # there are no runs; it is served now
        owner.close()
        (page.server,) = servers
        yield page
    finally:
        for started_server in servers:
            started_server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "SILENT", SILENT)
    monkeypatch.setattr(server, "SLOW", SILENT)
    with served(tmp_path / "runs", monkeypatch) as first_page:
        yield first_page


def whole(one: socket.socket) -> bytes:
    """Return what comes until the connection is closed."""
    heard = b""
    try:
        while chunk := one.recv(1 << 16):
            heard += chunk
    except ConnectionResetError:
        pass
    return heard


STATIC = "GET /static/main.js HTTP/1.1\r\n{host}\r\n"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (STATIC, b"200"),
        (f"{STATIC}{STATIC}", b"200"),
        ("HEAD /static/main.js HTTP/1.1\r\n{host}\r\n", b"200"),
        ("GET /static/nothing HTTP/1.1\r\n{host}\r\n", b"404"),
        ("PUT / HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n", b"405"),
        ("POST /api/choices HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n", b"403"),
        ("GET /static/main.js HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n", b"200"),
        ("GET /events HTTP/1.1\r\n{host}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"403"),
        ("no request\r\n\r\n", b"400"),
    ],
)
def test_a_connection_without_the_token_is_closed_after_its_answer(page, words, status):
    began = time.monotonic()
    with page.stranger(words) as one:
        heard = whole(one)
    assert time.monotonic() - began < SILENT  # at once, and not because it was silent
    assert heard.startswith(b"HTTP/1.1 " + status)
    assert heard.lower().count(b"\r\nconnection: close\r\n") == 1
    assert heard.count(b"HTTP/1.1 ") == 1


def test_a_connection_with_the_token_is_kept(page):
    owner = page.owner()
    for _ in range(3):
        assert page.ask(owner) == 400
        owner.request("GET", "/static/main.js")  # also for what needs no token
        answer = owner.getresponse()
        assert (answer.read() != b"", answer.status, answer.will_close) == (True, 200, False)
    time.sleep(2.5 * SILENT)
    assert page.ask(owner) == 400
    assert page.n_open == 1
    owner.close()


BEGINNINGS = {
    "nothing": "",
    "half a head": "GET /static/main.js HTTP/1.1\r\n{host}",
    "a body that does not come": "POST /api/ask HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n{{",
    "a static file": STATIC,
}


@pytest.mark.parametrize("what", BEGINNINGS)
def test_strangers_leave_room_for_the_owner(page, what):
    first = page.owner()
    assert page.ask(first) == 400
    with ExitStack() as stack:
        stack.callback(first.close)
        for _ in range(3 * server.MOST_CONNECTIONS):
            stack.enter_context(page.stranger(BEGINNINGS[what]))
        for _ in range(3):
            later = page.owner()
            stack.callback(later.close)
            assert page.ask(later) == 400  # 503 says that there is no room
        assert page.ask(first) == 400
        assert page.n_open <= server.MOST_CONNECTIONS


def test_who_does_not_read_the_answer_is_cut_off(page, monkeypatch, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(1 << 24))
    monkeypatch.setitem(server.FILES, "large.bin", large)
    with page.stranger("GET /static/large.bin HTTP/1.1\r\n{host}\r\n", SO_RCVBUF=4096):
        time.sleep(SILENT)
        assert page.n_open == 1
        end = time.monotonic() + 10
        while page.n_open:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_half_a_head_is_cut_off(page):
    with page.stranger("GET /static/main.js HTTP/1.1\r\n") as one:
        assert whole(one) == b""


def test_a_message_of_the_page_that_does_not_come_is_an_error_in_words(page):
    token = f"X-Token: {page.token}\r\nContent-Length: 9\r\n\r\n"
    with page.stranger(f"POST /api/ask HTTP/1.1\r\n{{host}}{token}") as one:
        heard = whole(one)
    assert heard.startswith(b"HTTP/1.1 408 ")
    assert b"was not whole after 0.3 seconds; send it again" in heard


def test_pages_alone_may_use_all_connections(page, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 4)
    owners = [page.owner() for _ in range(4)]
    assert [page.ask(owner) for owner in owners] == [400] * 4
    with page.stranger() as one:
        assert whole(one).startswith(b"HTTP/1.1 503 ")
    assert [page.ask(owner) for owner in owners] == [400] * 4
    for owner in owners:
        owner.close()


# Output -------------------------------------------------------------------------------------------
@pytest.fixture
def pipe():
    """A pipe that is full."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while os.write(writer, bytes(4096)):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_what_a_full_pipe_does_not_take_is_dropped(pipe):
    reader, writer = pipe
    stream = DroppingStream(writer)
    print("dropped", file=stream)
    assert not os.read(reader, 1 << 20).strip(b"\0")
    print("näher", file=stream, flush=True)
    assert os.read(reader, 100) == "näher\n".encode()
    assert (stream.fileno(), stream.isatty(), stream.writable()) == (writer, False, True)


def test_streams_are_as_before_afterwards(pipe, monkeypatch):
    _, writer = pipe
    with open(writer, "w", closefd=False) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(sys, "stdout", io.StringIO())  # of no file
        with output_that_never_waits():
            assert sys.stderr is not stream
            sys.stderr.write("dropped\n" * 100_000)
            if Path("/proc/self/fd").exists():  # children and libraries, too
                with pytest.raises(BlockingIOError):
                    os.write(writer, b"x")
        assert sys.stderr is stream
        assert not fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK


def test_a_server_goes_on_when_nobody_reads_what_it_prints(tmp_path, monkeypatch, pipe):
    def broken(file):
        raise KeyError("a mistake of ours, whose traceback is printed")

    monkeypatch.setattr(server, "choices", broken)
    _, writer = pipe
    with open(writer, "w", closefd=False) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with served(tmp_path / "runs", monkeypatch) as page:
            for _ in range(3):
                owner = page.owner()
                owner.request("POST", "/api/choices", b"{}", {"X-Token": page.token})
                assert owner.getresponse().status == 500
                owner.close()
            owner = page.owner()
            assert page.ask(owner) == 400
            owner.close()
