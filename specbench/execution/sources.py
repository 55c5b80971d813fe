"""Where an engine was installed from, and which container specbench runs in."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from specbench.execution.unreadable import UnreadableError

ASK: Final = (
    "import importlib.metadata as m, json, sys; "
    "f = {n: m.distribution(n).read_text('direct_url.json') for n in sys.argv[1:] "
    "if any(d.metadata['Name'] == n for d in m.distributions(name=n))}; "
    "print(json.dumps({n: json.loads(t) for n, t in f.items() if t}))"
)
ASK_TIMEOUT_S: Final = 60.0
GIT_TIMEOUT_S: Final = 10.0
ENGINES: Final = ("sglang", "vllm", "openvino-genai", "specbench")
MARKS: Final = {"docker": Path("/.dockerenv"), "podman": Path("/run/.containerenv")}
VARIABLES: Final = {"apptainer": "APPTAINER_CONTAINER", "singularity": "SINGULARITY_CONTAINER", "enroot": "ENROOT_ROOTFS"}


@cache
def engine_sources(python: str) -> dict[str, Any]:
    """By package: the address or folder, the commit where it is known, whether it is an editable checkout.

    Raises UnreadableError, also where all came from an index: then the version says all.
    """
    try:
        words = (str(Path(python).expanduser()), "-c", ASK, *ENGINES)
        done = subprocess.run(words, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=False)
        told: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UnreadableError(f"{python} does not tell where its packages came from: {error}") from None
    if not told:
        raise UnreadableError("the engines came from an index: their versions say which they are")
    return {name: _source(one) for name, one in sorted(told.items())}


def _source(told: Mapping[str, Any]) -> dict[str, Any]:
    address = str(told.get("url", ""))
    commit = (told.get("vcs_info") or {}).get("commit_id")
    editable = bool((told.get("dir_info") or {}).get("editable"))
    if commit is None and editable and address.startswith("file:"):
        commit = checkout(Path(unquote(urlsplit(address).path)))
    return {"url": address, "commit": commit, "editable": editable}


def checkout(folder: Path) -> str | None:
    """The commit of a git checkout, with `-dirty` where tracked files were changed; None where it is none."""
    git = shutil.which("git")
    words = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    try:
        done = git and subprocess.run(
            [git, "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done and done.returncode == 0 else None


def container() -> dict[str, str]:
    """Its kind, and its image where that can be told: not from inside Docker. Raises UnreadableError outside of one."""
    for kind, name in VARIABLES.items():
        if os.environ.get(name):
            return {"kind": kind, "image": os.environ[name]}
    cluster = {"cluster": "kubernetes"} if os.environ.get("KUBERNETES_SERVICE_HOST") else {}
    for kind, mark in MARKS.items():
        if mark.exists():
            image = re.findall(r'^(?:image|imageid)="(.*)"$', mark.read_text(errors="replace"), re.MULTILINE)
            return {"kind": kind, **cluster, **({"image": " ".join(image)} if image else {})}
    if cluster:
        return {"kind": "unknown", **cluster}
    raise UnreadableError("no sign of a container")
