"""Both event loops, and certificates for TLS."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.unit.execution.transport.bed import Drive, Handler, Scenario, meet


@pytest.fixture(params=["asyncio", "uvloop"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """drive(handler, scenario): runs both on one loop and returns what the scenario returns."""
    runner = asyncio.run if request.param == "asyncio" else uvloop.run

    def run(
        handler: Handler, scenario: Scenario, tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None, **options: Any
    ) -> Any:
        return runner(meet(handler, scenario, tls, **options))

    return run


@pytest.fixture(scope="session")
def tls_contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's and the client's context, around a certificate made for this session."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder: Path = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run([*command.split(), "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))


@pytest.fixture
def closed_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
