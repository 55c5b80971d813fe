"""What the run ran on."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from specbench.execution import sources
from specbench.execution.environment import environment
from specbench.execution.sources import checkout, engine_sources
from specbench.execution.unreadable import UnreadableError


def test_every_null_has_its_reason() -> None:
    found = environment()
    reasons = found.pop("reasons")
    assert found["cpu_count"] >= 1
    assert found["memory_bytes"] > 2**20
    assert {name for name, value in found.items() if value is None} == set(reasons)
    assert all(reasons.values())


def interpreter(folder: Path, told: object) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(told)}\nEND\n")
    path.chmod(0o755)
    return str(path)


def test_where_an_engine_came_from(tmp_path: Path) -> None:
    commit = {"url": "https://github.com/sgl-project/sglang", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    folder = {"url": f"file://{tmp_path}/no%20checkout", "dir_info": {"editable": True}}
    found = engine_sources(interpreter(tmp_path, {"sglang": commit, "vllm": folder}))
    assert found["sglang"] == {"url": commit["url"], "commit": "abc", "editable": False}
    assert found["vllm"] == {"url": folder["url"], "commit": None, "editable": True}


@pytest.mark.parametrize(("told", "reason"), [({}, "came from an index"), ("x", "does not tell")])
def test_where_it_can_not_be_told_the_reason_is(tmp_path: Path, told: object, reason: str) -> None:
    python = interpreter(tmp_path, told) if told == {} else str(tmp_path / "none")
    with pytest.raises(UnreadableError, match=reason):
        engine_sources(python)


def test_a_checkout_tells_its_commit_and_whether_it_was_changed(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    (tmp_path / "file").write_text("1")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    clean = checkout(tmp_path) or ""
    assert len(clean) == 40
    (tmp_path / "file").write_text("2")
    assert checkout(tmp_path) == f"{clean}-dirty"


def test_the_container_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*sources.VARIABLES.values(), "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    mark = tmp_path / "containerenv"
    monkeypatch.setattr(sources, "MARKS", {"podman": mark})
    with pytest.raises(UnreadableError, match="no sign of a container"):
        sources.container()
    mark.write_text('engine="podman-4"\nimage="docker.io/lmsys/sglang:dev"\nimageid="9f8e"\n')
    assert sources.container() == {"kind": "podman", "image": "docker.io/lmsys/sglang:dev 9f8e"}
    monkeypatch.setenv("APPTAINER_CONTAINER", "/images/sglang.sif")
    assert sources.container() == {"kind": "apptainer", "image": "/images/sglang.sif"}
