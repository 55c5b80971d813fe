"""The known-truth server as a process of its own, while a `with` block lasts."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx
import msgspec

from specbench.errors import LaunchError
from specbench.execution.truth import Sent

COMMAND: Final = (sys.executable, "-P", "-m", "specbench.execution.truth")


@contextmanager
def truth_server() -> Iterator[str]:
    """Its base URL. Raises LaunchError when it does not start."""
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port:
                raise LaunchError("truth_server", "the server of the self-test did not start")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


async def take_dump(client: httpx.AsyncClient) -> list[Sent]:
    """What it has sent since it was last asked."""
    response = await client.get("/dump")
    return msgspec.json.decode(response.content, type=list[Sent])
