"""Nights whose runs are stated instead of launched: everything after the launches is the real thing."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from specbench.cli.main import main
from specbench.errors import SpecbenchError
from specbench.execution.runner import Outcome
from specbench.nights import History
from specbench.nights.folder import NightFolder
from specbench.suite import Suite
from tests.unit.analysis.comparing.bed import ALIKE, write_result

NOISE = ((1, -1, 0.5, -0.5, 0), (-0.5, 0.5, 0, 1, -1), (0, 1, -1, -0.5, 0.5))
SUITE = """\
name: small
engine: sglang
model: org/model
variants: [{name: baseline}]
baseline: baseline
workloads: [{name: chat}]
"""


def paces(by: float, night: int) -> tuple[float, ...]:
    """Five launches, so many times as slow; no two nights are the same."""
    return tuple(pace * by * (1 + 0.001 * sign) for pace, sign in zip(ALIKE, NOISE[night % 3], strict=True))


class Nights:
    """One suite's, a call a night."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.suite = folder / "small.yaml"
        self.suite.write_text(SUITE)
        self.count = 0
        self._launch_count = 5
        self._tonight: tuple[float, Mapping[tuple[str, int], str], Mapping[str, Any]] = (1.0, {}, {})
        self._trouble: SpecbenchError | None = None
        monkeypatch.chdir(folder)
        monkeypatch.setattr("specbench.cli.run.launch", self._launch)
        # Drawing takes seconds; the pages themselves are tested elsewhere.
        monkeypatch.setattr("specbench.cli.page.write_page", lambda stored, judgement, page: page.write_text("a page"))
        monkeypatch.setattr("specbench.render.plots.canvas.drawn", lambda plots: iter(()))

    def spend(
        self,
        *words: str,
        by: float = 1.0,
        count: int = 5,
        failing: Mapping[tuple[str, int], str] | None = None,
        **fields: Any,
    ) -> int:
        """The exit code of a night whose servers are so many times as slow, launched so often."""
        self._tonight = (by, failing or {}, fields)
        self._launch_count = count
        return main(["nightly", str(self.suite), *words])

    def fail(self, *words: str, trouble: SpecbenchError) -> int:
        """The exit code of a night that can't even start."""
        self._trouble = trouble
        try:
            return main(["nightly", str(self.suite), *words])
        finally:
            self._trouble = None

    def _launch(self, args: argparse.Namespace, suite: Suite, text: str, results: Path) -> Outcome:
        if self._trouble is not None:
            raise self._trouble
        by, failing, fields = self._tonight
        self.count += 1
        day = f"{self.count:02d}"
        write_result(
            results / f"small-202611{day}-020000",
            {
                "baseline": paces(1.0, self.count)[: self._launch_count],
                "head": paces(by, self.count)[: self._launch_count],
            },
            started_utc=f"2026-11-{day}T02:00:00Z",
            failing=failing,
            **fields,
        )
        failed = tuple(f"{variant}: CUDA error" for (variant, _), how in failing.items() if how == "launch")
        return Outcome(folder=results / f"small-202611{day}-020000", failed=failed)

    @property
    def place(self) -> Path:
        """Where they lie."""
        return self.folder / "results" / "nightly" / "small"

    @property
    def history(self) -> History:
        """As it is now."""
        return NightFolder(self.place, "small").history()

    @property
    def statuses(self) -> list[str]:
        """Of every night."""
        return [one.status for one in self.history.nights]

    def latest(self, name: str) -> str:
        """One form of tonight's answer."""
        return (self.place / "latest" / name).read_text()

    def runs(self) -> Sequence[str]:
        """On the disk."""
        return NightFolder(self.place, "small").runs()

    def page(self) -> str:
        """The page."""
        return (self.place / "index.html").read_text()
