"""Who reaches the page's server: this machine's browser with the token, and nobody else."""

import socket
import time

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
    own = f"http://{client.host}"
    assert client.request("POST", "/api/choices", b"{}", Origin=own)[0] == 200


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


def test_too_large_and_malformed_messages_are_errors_in_words(client):
    status, answer = client.request("POST", "/api/start", b" " * (1 << 20) + b"{}")
    assert (status, answer["error"]) == (413, "the message is larger than 1048576 bytes")
    for body, words in (
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[1]", "the message is a list; expected an object"),
        (b"null", "the message is a NoneType; expected an object"),
    ):
        status, answer = client.request("POST", "/api/start", body)
        assert status == 400
        assert words in answer["error"]
    status, answer = client.request("POST", "/api/nothing", b"{}")
    assert (status, "expected one of choices, start" in answer["error"]) == (404, True)


def test_beyond_64_connections_open_pages_go_on(client, live):
    client.begin(epochs=1000)
    events = client.events()
    assert next(events)["kind"] == "runs"
    port, opened, refused = live.known["port"], [], 0
    try:
        for k in range(1000):
            one = socket.create_connection(("127.0.0.1", port), timeout=5)
            opened.append(one)
            if k % 50 == 49:
                one.sendall(b"GET /?token=%s HTTP/1.1\r\n" % client.token.encode())
                one.sendall(b"Host: %s\r\n\r\n" % client.host.encode())
                refused += b" 503 " in one.recv(100).splitlines()[0]
        assert refused >= 18  # those beyond the 64
        began = time.monotonic()
        while next(events)["kind"] != "points":  # the page that was there goes on
            assert time.monotonic() - began < 5
    finally:
        for each in opened:
            each.close()
    time.sleep(0.5)
    assert client.post("control", run="all", action="stop")
