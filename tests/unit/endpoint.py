"""A webhook's other end, on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

SECRET = "T000-very-secret"


class Endpoint:
    """Answers each request with `status`, or not at all."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.status: int | None = 200
        self.ended = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                endpoint.bodies.append((self.path, self.headers["content-type"], json.loads(raw)))
                if endpoint.status is None:
                    endpoint.ended.wait(20)
                    return
                self.send_response(endpoint.status)
                self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Not on the test's output."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self._serving = threading.Thread(target=self.server.serve_forever)
        self._serving.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/{SECRET}"

    def close(self) -> None:
        """Answers nobody any more."""
        self.ended.set()
        self.server.shutdown()
        self._serving.join()
        self.server.server_close()
