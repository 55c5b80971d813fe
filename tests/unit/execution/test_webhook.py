"""A webhook is told once; what goes wrong with it is a sentence without its address."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from specbench.errors import SpecbenchError
from specbench.execution.webhook import Webhook
from tests.unit.endpoint import SECRET, Endpoint


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Endpoint()
    yield found
    found.close()


def test_it_is_told_once_as_json(endpoint: Endpoint) -> None:
    assert Webhook(endpoint.url).tell('{"text": "−4.8 %"}') is None
    assert endpoint.bodies == [(f"/services/{SECRET}", "application/json", {"text": "−4.8 %"})]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_refusal_is_a_sentence_and_no_redirect_is_followed(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status
    assert Webhook(endpoint.url).tell("{}") == f"the webhook at 127.0.0.1 answered {status}"
    assert len(endpoint.bodies) == 1


def test_one_that_does_not_answer_is_not_waited_for(endpoint: Endpoint) -> None:
    endpoint.status = None
    assert Webhook(endpoint.url).tell("{}", timeout_s=0.2) == "the webhook at 127.0.0.1 did not answer within 0.2 s"


def test_one_that_answers_byte_by_byte_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        done = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                for _ in range(100):
                    if not done.wait(0.05):
                        connection.sendall(b"x-more: yes\r\n")
                connection.sendall(b"content-length: 0\r\n\r\n")

        pool.submit(drip)
        told = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/").tell("{}", timeout_s=0.3)
        done.set()
    assert told == "the webhook at 127.0.0.1 did not answer within 0.3 s"


def test_one_that_is_not_there(endpoint: Endpoint) -> None:
    gone = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    port = gone.server_port
    gone.server_close()
    told = Webhook(f"http://127.0.0.1:{port}/{SECRET}").tell("{}")
    assert told == "the webhook at 127.0.0.1 can't be reached (ConnectError)"


@pytest.mark.parametrize("url", [f"ftp://host/{SECRET}", SECRET, f"https:///{SECRET}", f"http://[::1/{SECRET}", ""])
def test_what_is_no_address_is_not_repeated(url: str) -> None:
    with pytest.raises(SpecbenchError) as caught:
        Webhook(url)
    assert SECRET not in str(caught.value)


def test_its_own_text_holds_no_secret() -> None:
    assert repr(Webhook(f"https://hooks.slack.com/{SECRET}")) == "Webhook(hooks.slack.com)"
