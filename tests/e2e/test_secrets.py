"""A secret planted in the environment, the arguments, a URL and the log is found nowhere: not in the results, not on the
terminal. Only the key's owner gets it: the server."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.bed import ROOT, SUITE, Bed

PLANTED: Final = "pl4nted"
SERVER: Final = """\
server:
  args: [--leak, --api-key, pl4nted-key-1]
  env: {HF_TOKEN: pl4nted-token-2, MINE: pl4nted-mine-3, HF_ENDPOINT: "https://ann:pl4nted-password-4@hub.example/x"}
"""
SHELL: Final = {
    "SHELL_SECRET": "pl4nted-shell-5",
    "HF_OTHER": "pl4nted-listed-6",
    "SPECBENCH_SECRETS": "HF_OTHER",
    "HF_SHAPED": "hf_PL4NTEDabcdefghijklmnop",
    "VLLM_API_KEY": "pl4nted-key-8",
    "NCCL_PROXY": "https://ann:pl4nted-password-9@hub.example/",
    "APPTAINER_CONTAINER": "docker://ann:pl4nted-password-10@hub.example/image",
}


def leaking(bed: Bed, *variants: str) -> Path:
    text = SUITE.replace("server:\n", SERVER).replace("name: small\n", "# pl4nted-key-1\nname: small\nsecrets: [MINE]\n")
    return bed.suite(*variants, text=text)


def found_in(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    return [str(path) for path in files if PLANTED in path.read_text(errors="replace").lower()]


def test_a_planted_secret_is_found_nowhere(bed: Bed) -> None:
    path = leaking(bed, "name: plain", "name: dies, args: [--die-after, 3]", "name: late, args: [--die-loading]")
    done = bed.run(str(path), env=SHELL)
    assert done.returncode == 1, done.stderr
    assert PLANTED not in (done.stdout + done.stderr).lower()
    page = subprocess.run(
        [sys.executable, "-m", "specbench.cli.main", "report", bed.stored().folder],
        env={**os.environ, **SHELL, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert PLANTED not in (page.stdout + page.stderr).lower()
    assert (Path(bed.stored().folder) / "report.html").is_file()
    assert found_in(bed.folder / "results") == []
    plain, dies, late = bed.stored().trials
    assert dies.record.failure is not None
    assert late.record.failure is not None
    served = [one for one in plain.requests if one.error is None]
    assert len(served) == 6, "the key was sent: else each request would have got 401"
    assert "(hidden)" in served[0].output_text
    (refused,) = (one.error for one in plain.requests if one.error)
    assert refused.startswith("HTTP 500: no access with ")
    assert "(hidden)" in refused
    assert "ServerArgs(" in (Path(plain.folder) / "server.log").read_text()
    assert plain.record.argv[-2:] == ("--api-key", "(hidden)")
    assert plain.record.env["HF_ENDPOINT"] == "https://(hidden)@hub.example/x"


def test_a_rehearsal_keeps_secrets_too(bed: Bed) -> None:
    done = bed.run(str(leaking(bed, "name: plain")), "--rehearse", env=SHELL)
    assert done.returncode == 0, done.stderr
    assert PLANTED not in (done.stdout + done.stderr).lower()
    assert found_in(bed.folder / "results") == []


@pytest.mark.parametrize(
    "mistake", ["  - {name: plain, args: ['--api-key pl4nted-key-7']}\n", "  - {name: plain, zzz: 1}\n"]
)
def test_a_mistake_in_the_suite_shows_no_secret(bed: Bed, mistake: str) -> None:
    path = leaking(bed)
    path.write_text(path.read_text() + mistake)
    done = bed.run(str(path), env=SHELL)
    assert done.returncode == 2
    assert done.stderr.startswith("specbench: ")
    assert PLANTED not in (done.stdout + done.stderr).lower()
