"""Guard: who may talk to the page's server. Only this machine's browser, with the token."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

MOST_BYTES = 1 << 20
"""The largest message."""

MOST_CONNECTIONS = 64


class Guard:
    """Checks requests: their host, their origin, and their token.

    A page of another site may send requests to this address, but with its own Origin; a name that
    is made to point here (DNS rebinding) shows in Host. Neither knows the token.
    """

    def __init__(self, port: int, token: str) -> None:
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.token = token

    def refusal(self, headers: Mapping[str, str], token: str | None) -> str | None:
        """Return why a request is refused, or None. `token` is None where none is needed."""
        if headers.get("host") not in self.hosts:
            return "the Host is not this server's; expected its own address"
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins:
            return "the Origin is another page; expected this server's own page"
        if token is not None and not secrets.compare_digest(token.encode(), self.token.encode()):
            return "the token is wrong; expected the address that `npformer play` printed"
        return None
