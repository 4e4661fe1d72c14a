"""The server of the page: it serves files, passes questions on, and sends events."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from npformer.core import a_type
from npformer.learn.play.checker import Checker
from npformer.learn.play.export import finite
from npformer.learn.play.folder import Folder
from npformer.learn.play.output import output_that_never_waits
from npformer.learn.play.remote import MISTAKES
from npformer.learn.play.runs import Runs
from npformer.learn.play.tasks import choices

FILES = {path.name: path for path in Path(__file__).with_name("static").iterdir()}

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; "
    "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}

ASKED = ("choices", "start", "control", "ask", "gradcheck", "export")

CLOSE = (b"connection", b"close")

FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

MOST_BYTES = 1 << 20
"""The largest message."""

MOST_CONNECTIONS = 64

MOST_UNKNOWN = 32
"""Connections that have not shown the token, of `MOST_CONNECTIONS`."""

MOST_WAITING = 1000
"""Events that a page may be behind; one further behind is cut off, and connects again."""

SILENT = 5.0
"""Seconds after which a connection that has sent no request is closed, and, after twice as many,
one that has not shown the token, whatever it waits for."""

SLOW = 60.0
"""Seconds that the body of a message may take."""

KEPT = 120
"""Seconds that the connection of a page is kept open for its next question."""

ALIVE = 15.0
"""Seconds without an event after which a line is sent, so that a page that is gone is noticed."""


def written(values: Any) -> str:
    """Return values as JSON of ASCII letters alone, which every browser reads."""
    return json.dumps(finite(values))


class Connection(H11Protocol):
    """A connection. One that has not shown the token is closed after its first answer.

    If there is no room for a new one, the oldest of those without the token makes room: that of a
    page shows its token at once. Pages keep theirs, so beyond `MOST_CONNECTIONS` of pages a new one
    is refused. uvicorn's own limit refuses requests, even those of open pages, while connections
    that send nothing stay.
    """

    known = False
    """Whether it has shown the token."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.began = self.loop.time()
        self._page, self.app = self.app, self._answer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room or somebody makes room."""
        unknown = [other for other in self.connections if not other.known]  # type: ignore[union-attr]
        super().connection_made(transport)
        if len(unknown) >= MOST_UNKNOWN or (unknown and len(self.connections) > MOST_CONNECTIONS):
            min(unknown, key=lambda other: other.began).refuse()  # type: ignore[union-attr]
        if len(self.connections) > MOST_CONNECTIONS:
            self.refuse()
            return
        self.loop.call_later(SILENT, self._close_if_silent)
        self.loop.call_later(2.0 * SILENT, self._close_if_unknown)

    def refuse(self) -> None:
        """End the connection; who waits for an answer is told that there is no room."""
        self.connections.discard(self)
        if self.cycle is None:
            self.transport.write(FULL)
            self.transport.close()
        else:
            self.transport.abort()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Let the page answer; what has not shown the token by then is closed."""

        async def send_and_close(message: Any) -> None:
            if message["type"] == "http.response.start" and not self.known:
                headers = [*message.get("headers", ())]
                if CLOSE not in headers:
                    message = message | {"headers": [*headers, CLOSE]}
            await send(message)

        await self._page({**scope, "connection": self}, receive, send_and_close)

    def _close_if_silent(self) -> None:
        if self.cycle is None:  # no request has come, or not the whole of its headers
            self.transport.close()

    def _close_if_unknown(self) -> None:
        if not self.known:  # it does not read its answer, for one
            self.transport.abort()


class Server(uvicorn.Server):
    """The page's server: its routes, and what they do. When it ends, so do runs and streams."""

    def __init__(self, folder: Folder, port: int, token: str, file: str | None, first: Any) -> None:
        self.runs, self.file, self.first = Runs(folder), file, first
        self.checker = Checker()
        self.hosts, self.token = (f"127.0.0.1:{port}", f"localhost:{port}"), token
        routes = [
            Route("/", self.page),
            Route("/static/{name}", self.static),
            Route("/events", self.events),
            Route("/api/{name}", self.api, methods=["POST"]),
        ]
        wrong = dict.fromkeys((HTTPException, ClientDisconnect, *MISTAKES), _wrong)
        config = uvicorn.Config(
            Starlette(routes=routes, exception_handlers=wrong),
            log_level="error",
            http=Connection,
            ws="none",  # it would take connections out of the count
            headers=[*HEADERS.items()],
            timeout_keep_alive=KEPT,
            timeout_graceful_shutdown=1,
            access_log=False,
            lifespan="off",
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, with the runs that are wanted at once."""
        self.runs.begin()
        if self.first:
            await asyncio.to_thread(self.runs.start, self.first, [])
        await super().startup(sockets=sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, and all open streams and runs with it."""
        self.checker.end()
        self.runs.tell_all()  # so that each stream notices
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # of what is cut off now
        await super().shutdown(sockets=sockets)
        await asyncio.to_thread(self.runs.end)

    # Routes ---------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """The page itself."""
        self._check(request, request.query_params.get("token", ""))
        return FileResponse(FILES["index.html"])

    async def static(self, request: Request) -> Response:
        """A file of the page, by its name."""
        self._check(request, None)
        if (path := FILES.get(request.path_params["name"])) is None:
            raise HTTPException(404, "there is no such file")
        return FileResponse(path)

    async def events(self, request: Request) -> Response:
        """Events, as they come."""
        self._check(request, request.query_params.get("token", ""))
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    def _check(self, request: Request, token: str | None) -> None:
        """Refuse all but this machine's browser with the token; it is None where none is needed.

        A page of another site may send requests to this address, but with its own Origin; a name
        that is made to point here (DNS rebinding) shows in Host. Neither knows the token.
        """
        host, origin = map(request.headers.get, ("host", "origin"))
        if host not in self.hosts:
            why = "the Host is not this server's; expected its own address"
        elif origin not in (None, *(f"http://{host}" for host in self.hosts)):
            why = "the Origin is another page; expected this server's own page"
        elif token is not None and not secrets.compare_digest(token.encode(), self.token.encode()):
            why = "the token is wrong; expected the address that `npformer play` printed"
        else:
            if token is not None:
                request.scope["connection"].known = True
            return
        raise HTTPException(403, why, {"Connection": "close"})  # no room for strangers

    async def _stream(self) -> AsyncIterator[str]:
        waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MOST_WAITING)

        def listener(event: dict[str, Any]) -> None:
            if not waiting.full():  # else the page is behind, and is cut off
                waiting.put_nowait(event)

        self.runs.listeners.add(listener)
        try:
            for event in self.runs.so_far():
                yield f"data: {written(event)}\n\n"
            while not (waiting.full() or self.should_exit):
                try:
                    event = await asyncio.wait_for(waiting.get(), ALIVE)
                    yield f"data: {written(event)}\n\n"
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            self.runs.listeners.discard(listener)

    async def api(self, request: Request) -> Response:
        """A question or a command."""
        self._check(request, request.headers.get("x-token", ""))
        body = await _body(request)
        try:
            values = json.loads(body or b"{}")
            json.dumps(values, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:  # a lone surrogate, too, is no UTF-8
            raise ValueError(f"the message is not JSON ({error}); expected an object") from error
        if not isinstance(values, dict):
            raise TypeError(f"the message is {a_type(values)}; expected an object")
        return _send_file(await self._answer(request.path_params["name"], values))

    async def _answer(self, name: str, values: dict[str, Any]) -> Any:
        """Return what the page asks for."""
        match name:
            case "choices":
                found = await asyncio.to_thread(choices, values.get("file") or self.file)
                return found | {"folder": str(self.runs.folder.path)}
            case "start":
                settings, ends = values.get("runs"), values.get("ends", [])
                return {"runs": await asyncio.to_thread(self.runs.start, settings, ends)}
            case "control":
                await asyncio.to_thread(self.runs.control, values.get("run"), values.get("action"))
                return {"state": "told"}
            case "ask":
                return await self.runs.ask(values.pop("run", None), values)
            case "gradcheck":
                return await asyncio.to_thread(self.checker.ask, values.get("bug"))
            case "export":
                run = self.runs.run(values.get("run"))
                return await self.runs.ask(run.name, {"question": name, "points": run.points})
        raise HTTPException(404, f"{name!r} is unknown; expected one of {', '.join(ASKED)}")


async def _body(request: Request) -> bytes:
    """Return a message, unless it is too large or does not come."""
    body = bytearray()
    try:
        async with asyncio.timeout(SLOW):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, f"the message is larger than {MOST_BYTES} bytes")
    except TimeoutError as error:
        why = f"the message was not whole after {SLOW:g} seconds; send it again"
        raise HTTPException(408, why, {"Connection": "close"}) from error
    return bytes(body)


def _send_file(
    values: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(written(values), status, headers, "application/json")


async def _wrong(request: Request, error: Exception) -> Response:
    """Return a sentence on what is wrong with a request."""
    status, words, headers = 400, str(error) or type(error).__name__, None
    if isinstance(error, TimeoutError):
        status, words = 504, "the run has not answered in time; its steps may take long"
    elif isinstance(error, RecursionError):
        words = "the message is nested too deeply; expected an object of a few levels"
    elif isinstance(error, HTTPException):
        status, words, headers = error.status_code, error.detail, error.headers
    return _send_file({"error": words}, status, headers)


def serve(
    folder: Path, port: int | None, file: str | None, first: Any, ready: Callable[[str], None]
) -> None:
    """Serve the page of a folder until Ctrl-C; `ready` is called with its address.

    `first` are settings of runs to start at once, if any.
    """
    place = Folder(folder)
    chosen, token = place.address(port)
    with (
        _bind(chosen, fixed=port is not None) as bound,
        output_that_never_waits(),
        suppress(KeyboardInterrupt),
    ):
        port = bound.getsockname()[1]
        place.keep_address(port, token)
        ready(f"http://127.0.0.1:{port}/?token={token}")  # who comes now waits a moment
        asyncio.run(Server(place, port, token, file, first).serve([bound]))


def _bind(port: int, fixed: bool) -> socket.socket:
    """Return what listens on this machine only: at a port, or at any if that one is taken."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        if not fixed and port:
            return _bind(0, fixed)
        raise OSError(
            f"port {port} cannot be used ({os.strerror(error.errno or 0)}); pass a free --port"
        ) from error
