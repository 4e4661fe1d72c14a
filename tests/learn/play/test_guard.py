"""Who reaches the page's server: this machine's browser with the token, and nobody else."""

import http.client
import json
import socket

import pytest


def test_without_the_right_token_nothing_is_answered(client):
    for path in ("/", "/events"):
        for query in ("", "?token=", "?token=wrong", "?token=%C3%A4"):
            status, answer = client.request("GET", path + query)
            assert status == 403
            assert "the token is wrong" in answer["error"]
    for token in ("", "wrong", client.token[:-1], client.token + "x"):
        status, answer = client.request("POST", "/api/choices", b"{}", X_Token=token)
        assert (status, "the token is wrong" in answer["error"]) == (403, True)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1"])
def test_another_host_is_refused(client, host):
    for method, path in (("GET", f"/?token={client.token}"), ("POST", "/api/choices")):
        status, answer = client.request(method, path, b"{}", Host=host)
        assert status == 403
        assert "Host" in answer["error"]
    assert client.request("GET", "/static/main.js", Host=host)[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", ""])
def test_another_origin_is_refused(client, origin):
    status, answer = client.request("POST", "/api/choices", b"{}", Origin=origin)
    assert status == 403
    assert "Origin" in answer["error"]
    page = f"http://{client.host}"
    assert client.request("POST", "/api/choices", b"{}", Origin=page)[0] == 200


def test_only_the_files_of_the_page_are_served(client):
    assert client.request("GET", "/static/main.js")[0] == 200
    for path in (
        "/static/..%2fserver.py",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/static/server.json",
        "/server.json",
        "/static/",
    ):
        assert client.request("GET", path)[0] == 404, path


def test_a_message_that_is_too_large_is_refused(client):
    status, answer = client.request("POST", "/api/start", b" " * (1 << 20) + b"{}")
    assert (status, answer["error"]) == (413, "the message is larger than 1048576 bytes")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "the message is a list; expected an object"),
        (b"null", "the message is None; expected an object"),
    ],
    ids=range(5),
)
def test_a_malformed_message_is_refused(client, body, words):
    status, answer = client.request("POST", "/api/start", body)
    assert status == 400
    assert words in answer["error"]


def test_a_message_that_is_nested_too_deeply_is_refused(client):
    client.begin(epochs=1)
    for depth in (300, 600, 900):
        image = json.loads("[" * depth + "]" * depth)
        body = {"run": client.runs()[0]["run"], "question": "digit", "image": image}
        status, answer = client.request("POST", "/api/ask", json.dumps(body).encode())
        assert (status, "expected" in answer["error"]) == (400, True), answer
    assert answer["error"] == "the message is nested too deeply; expected an object of a few levels"


def test_an_unknown_address_is_refused(client):
    status, answer = client.request("POST", "/api/nothing", b"{}")
    assert (status, "expected one of choices, start" in answer["error"]) == (404, True)


def test_who_leaves_in_the_middle_of_a_message_is_no_error(client, live):
    head = f"POST /api/start HTTP/1.1\r\nHost: {client.host}\r\nX-Token: {client.token}\r\n"
    for rest in ("Content-Length: 99\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\nz\r\n"):
        place = "127.0.0.1", client.server.known["port"]
        with socket.create_connection(place, timeout=20) as one:
            one.sendall(f"{head}{rest}".encode())
    assert client.post("choices")
    assert "Traceback" not in live.log


@pytest.mark.slow
def test_beyond_64_connections_open_pages_go_on(client, live):
    client.begin(epochs=1000)
    events = client.events(seconds=20.0)
    assert next(events)["kind"] == "runs"
    page = http.client.HTTPConnection(client.host, timeout=30)
    state_of(page, client)
    opened = []
    try:
        for _ in range(1000):
            one = socket.create_connection(("127.0.0.1", client.server.known["port"]), timeout=20)
            opened.append(one)
        assert state_of(page, client) == "told"  # the page that was there is answered,
        while next(events)["kind"] != "points":  # and goes on
            pass
        heard = [one.recv(100) for one in opened]
        refused = sum(connection.startswith(b"HTTP/1.1 503 ") for connection in heard)
        assert refused >= 1000 - 64
        assert heard.count(b"") == 1000 - refused  # those that asked nothing are closed
        assert client.post("control", run="all", action="stop")
    finally:
        for connection in (*opened, page):
            connection.close()


def state_of(page, client):
    """Ask on a connection that stays open, as a browser does."""
    body = json.dumps({"run": "all", "action": "go"})
    page.request("POST", "/api/control", body, {"X-Token": client.token})
    answer = page.getresponse()
    assert answer.status == 200
    return json.loads(answer.read())["state"]
