"""The hub through its own library, against a hub of our own: the configuration and the header, never the weights."""

import http.server
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hub_bed import serving

pytest.importorskip("huggingface_hub")

CONFIG = json.dumps({"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 7168}).encode()
TENSORS = {
    "fc.weight": {"dtype": "BF16", "shape": [7168, 21504], "data_offsets": [0, 308281344]},
    "d2t": {"dtype": "I64", "shape": [32000], "data_offsets": [308281344, 308537344]},
}
HEADER = json.dumps(TENSORS).encode()
FILES = {"config.json": CONFIG, "model.safetensors": struct.pack("<Q", len(HEADER)) + HEADER}
WEIGHTS_BYTES = 308537344


class Hub(http.server.BaseHTTPRequestHandler):
    """One repository; `sent_bytes` counts what it gave away of the weights."""

    sent_bytes = 0

    def do_HEAD(self) -> None:
        self.answer(False)

    def do_GET(self) -> None:
        self.answer(True)

    def answer(self, whole: bool) -> None:
        name = self.path.rpartition("/")[2]
        body = FILES.get(name) if "/owner/drafter/" in self.path else None
        if body is None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        total = len(body) + (WEIGHTS_BYTES if name == "model.safetensors" else 0)
        wanted = self.headers.get("Range", "")
        end = min(int(wanted.rpartition("-")[2]) + 1, total) if wanted else total
        piece = (body + bytes(200_000))[:end] if wanted else body
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(piece) if whole else total))
        self.send_header("ETag", '"0123456789abcdef0123456789abcdef01234567"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.end_headers()
        if whole:
            type(self).sent_bytes += len(piece)
            self.wfile.write(piece)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub() -> Iterator[str]:
    Hub.sent_bytes = 0
    with serving(Hub) as url:
        yield url


ASK = """
import json, sys, time
begun = time.monotonic()
from specbench.checkpoints.read import read_checkpoint
one = read_checkpoint(sys.argv[1])
shapes = {name: list(shape) for name, shape in (one.tensors or {}).items()}
took = time.monotonic() - begun
print(json.dumps([one.unknown, one.config, shapes, one.weight_bytes, took]))
"""


def asked(name: str, endpoint: str, home: Path, **more: str) -> Any:
    """In a process of its own: the library reads its settings when it is imported."""
    environ = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"} | more
    done = subprocess.run(
        [sys.executable, "-c", ASK, name], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_configuration_and_the_header_are_read_and_no_weight(hub: str, tmp_path: Path) -> None:
    unknown, config, shapes, weight_bytes, _ = asked("owner/drafter", hub, tmp_path)
    assert unknown == ""
    assert config["hidden_size"] == 7168
    assert shapes == {"fc.weight": [7168, 21504], "d2t": [32000]}
    assert weight_bytes == WEIGHTS_BYTES
    assert Hub.sent_bytes < 300_000


def test_offline_the_cache_is_asked(hub: str, tmp_path: Path) -> None:
    asked("owner/drafter", hub, tmp_path)
    unknown, config, shapes, _, _ = asked("owner/drafter", "http://127.0.0.1:9", tmp_path, HF_HUB_OFFLINE="1")
    assert config["hidden_size"] == 7168
    assert unknown == "weights: offline (HF_HUB_OFFLINE)"
    assert shapes == {}


def test_a_hub_that_can_not_be_reached_is_not_waited_for(tmp_path: Path) -> None:
    unknown, config, _, _, took_s = asked("owner/drafter", "http://127.0.0.1:9", tmp_path)
    assert unknown == "127.0.0.1 can't be reached (Connection refused), and not in the cache"
    assert config is None
    assert took_s < 10


def test_a_repository_that_is_not_there_is_unknown(hub: str, tmp_path: Path) -> None:
    unknown, config, _, _, _ = asked("owner/nothing", hub, tmp_path)
    assert unknown.startswith("the hub gave no answer (")
    assert config is None
