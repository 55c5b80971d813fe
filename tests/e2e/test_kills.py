"""SIGKILL at seeded random instants, 20 of them; `SPECBENCH_KILLS=20` does 100, `tests/bench/kills.py` 200 by hand."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from specbench import models
from tests.e2e.killing import MODEL, Killing, Kind, Victim

COUNT: Final = int(os.environ.get("SPECBENCH_KILLS", "4"))
SIDE_BY_SIDE: Final = 4
CASES: Final[tuple[tuple[Victim, Kind], ...]] = (
    ("harness", "simulated"),
    ("harness", "daemons"),
    ("server", "simulated"),
    ("watcher", "daemons"),
    ("everything", "daemons"),
)


@pytest.mark.timeout(60 + 60 * COUNT)
@pytest.mark.parametrize(("victim", "kind"), CASES)
def test_nothing_is_lost_and_nobody_stays(tmp_path: Path, victim: Victim, kind: Kind) -> None:
    """Some at a time: a killed run waits more than it works."""
    folders = [tmp_path / str(seed) for seed in range(COUNT)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        kills = [pool.submit(Killing(folder, seed, victim, kind).run) for seed, folder in enumerate(folders)]
    wrong = [figures for kill in kills if (figures := kill.result()).faults]
    assert not wrong, wrong


@pytest.mark.openvino
@pytest.mark.skipif("SPECBENCH_KILLS" not in os.environ, reason="takes minutes; SPECBENCH_KILLS=1 does it")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", ["harness", "server", "watcher"])
@pytest.mark.parametrize("seed", range(COUNT))
def test_a_real_engine_too(tmp_path: Path, victim: Victim, seed: int) -> None:
    pytest.importorskip("openvino_genai", reason="the extra `openvino` is not installed")
    if not models.is_made(MODEL):
        pytest.skip(f"{MODEL} is not on this machine; a run of the quickstart makes it")
    figures = Killing(tmp_path, seed, victim, "openvino").run()
    assert figures.faults == 0, figures
