"""llama.cpp's server, found or built once from a pinned source package (MIT), which holds llama.cpp itself.

    python -m tests.realengine.llama_server          prints the path of llama-server

In this order: the program that SPECBENCH_LLAMA_SERVER names, `llama-server` on the PATH, the one in specbench's cache
folder, one that is built there: a download of 77 MB and about 10 minutes on two cores. Building needs a C++ compiler;
cmake and ninja come from the package index. llama-quantize, which `tests.realengine.gguf_models` needs, is built beside it.

Exit codes: 0; 75 when the source could not be downloaded, or there is no compiler; 1 when the build failed, with the last
lines that it said.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from specbench.engines.llamacpp import BINARY, BINARY_VARIABLE
from specbench.models import cache_folder

VERSION: Final = "0.3.36"
SHA256: Final = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
REQUIREMENT: Final = f"llama-cpp-python=={VERSION} --hash=sha256:{SHA256}\n"
TOOLS: Final = ("cmake>=3.28,<5", "ninja>=1.11")
PROGRAMS: Final = (BINARY, "llama-quantize")
OPTIONS: Final = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",  # AVX2, never AMX: what was built on one machine runs on the next that finds this cache
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_OPENSSL=OFF",
)
JOBS_COUNT: Final = 2
LACKING: Final = 75
"""As sysexits has it: try again later."""
TOLD_LINES: Final = 15


class LackingError(Exception):
    """What is needed can't be had on this machine now."""


def found() -> Path | None:
    """Named, or on the PATH; None where neither. Raises SystemExit where the named one can't be run."""
    named = os.environ.get(BINARY_VARIABLE)
    program = shutil.which(os.path.expanduser(named or BINARY))  # noqa: PTH111  Path makes `./x` an `x`
    if named and program is None:
        raise SystemExit(f"{BINARY_VARIABLE} names {named}, which is not there or can't be run")
    return Path(program).absolute() if program else None


def kept_folder() -> Path:
    """Named by all that decides about the programs."""
    digest = hashlib.sha256(" ".join((SHA256, *OPTIONS, platform.machine())).encode()).hexdigest()
    return cache_folder() / f"llama-server-{VERSION}-{digest[:8]}"


def ensure() -> Path:
    """The program. A half-built one never gets its name. Raises LackingError, or SystemExit with a sentence."""
    if (program := found()) is not None:
        return program
    folder = kept_folder()
    if not folder.is_dir():
        if shutil.which("c++") is None:
            raise LackingError(f"no {BINARY} on the PATH and no C++ compiler (c++) to build one; install either")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".llama-") as scratch:
            build(Path(scratch)).rename(folder)
    return folder / BINARY


def build(scratch: Path) -> Path:
    """A folder with the programs. Raises LackingError, or SystemExit when the build fails."""
    noted(f"llama.cpp's source, 77 MB: llama-cpp-python {VERSION}")
    source, tools = fetch(scratch), scratch / "tools" / "bin"
    noted(f"building {', '.join(PROGRAMS)}, about 10 minutes on two cores")
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    made = scratch / "build"
    ask((tools / "cmake", "-G", "Ninja", "-S", source, "-B", made, *OPTIONS), environment)
    ask((tools / "cmake", "--build", made, "-j", JOBS_COUNT, "--target", *PROGRAMS), environment)
    kept = scratch / "kept"
    kept.mkdir()
    for name in PROGRAMS:
        shutil.move(made / "bin" / name, kept / name)
    shutil.copy(source / "LICENSE", kept / "LICENSE")
    return kept


def fetch(scratch: Path) -> Path:
    """llama.cpp's folder, checked by its sum, and cmake and ninja in `tools`. Raises LackingError."""
    pip, wanted = scratch / "tools" / "bin" / "pip", scratch / "wanted.txt"
    wanted.write_text(REQUIREMENT, encoding="ascii")
    subprocess.run((sys.executable, "-m", "venv", scratch / "tools"), check=True)
    try:
        ask((pip, "install", "--quiet", *TOOLS))
        options = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes")
        ask((pip, "install", "--quiet", "scikit-build-core"))  # pip asks the source for its name before it keeps it
        ask((pip, "download", "--quiet", *options, "--dest", scratch, "-r", wanted))
    except SystemExit as reason:
        raise LackingError(str(reason)) from None
    with tarfile.open(next(scratch.glob("llama_cpp_python-*.tar.gz"))) as packed:
        packed.extractall(scratch / "source", filter="data")
    return next((scratch / "source").glob("*/vendor/llama.cpp"))


def ask(command: Sequence[object], environment: dict[str, str] | None = None) -> None:
    """Raises SystemExit with the last lines that it said."""
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        told = "\n".join(done.stdout.splitlines()[-TOLD_LINES:])
        raise SystemExit(f"{Path(str(command[0])).name} ended with {done.returncode}:\n{told}")


def noted(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> int:
    """The exit code."""
    try:
        sys.stdout.write(f"{ensure()}\n")
    except LackingError as reason:
        noted(str(reason))
        return LACKING
    return 0


if __name__ == "__main__":
    sys.exit(main())
