"""A suite's nights: what became of each, in one folder under `results/nightly/`.

    results/nightly/<suite>/
      index.html            the page, made again every night
      history.json          a row a night; outlives the runs
      reference             names the pinned run, if one is pinned
      latest/               tonight's answer in every form
      <suite>-<utc>/        the runs

      night.lock            while a night runs

`folder` reads and writes it. A row holds figures because its run may be deleted;
while the run is there, it is the truth.
"""

from typing import Final, Literal

from msgspec import Struct

NIGHTS_SCHEMA_VERSION: Final = 1

Status = Literal["running", "pass", "fail", "inconclusive", "refused", "failed", "first"]
"""`first`: there was no reference, and this night becomes it. `failed`: it did not run, or not to its end."""
GOOD: Final = ("pass", "first")
"""Nights that a later one may be compared with."""


class Figures(Struct, frozen=True, kw_only=True):
    """One variant in one night: geometric means over its levels and launches. None: not measured."""

    variant: str
    launch_count: int
    output_tps: float | None = None
    accept_length: float | None = None
    is_baseline: bool = False


class Worse(Struct, frozen=True, kw_only=True):
    """One metric that is worse than the margin."""

    variant: str
    metric: str
    change_ratio: float
    """Over the reference, less 1."""


class Night(Struct, frozen=True, kw_only=True):
    """One row of the history."""

    started_utc: str
    ended_utc: str | None = None
    status: Status
    run: str = ""
    """Name of the run's folder in this one; empty when none was begun."""
    reference: str = ""
    """Folder of the run it was compared with."""
    pinned: bool = False
    """Whether the reference was pinned, rather than the last good night."""
    headlines: tuple[str, ...] = ()
    """What is to be said of it, the worst first."""
    worse: tuple[Worse, ...] = ()
    """Metrics that are worse than the margin."""
    figures: tuple[Figures, ...] = ()
    simulated: bool = False
    engines: tuple[str, ...] = ()
    """With their versions."""
    exit_code: int = 0

    @property
    def is_good(self) -> bool:
        """Whether a later night may be compared with it."""
        return self.status in GOOD and bool(self.run)


class History(Struct, frozen=True, kw_only=True):
    """All nights, oldest first."""

    schema_version: int = NIGHTS_SCHEMA_VERSION
    suite_name: str
    nights: tuple[Night, ...] = ()

    @property
    def last_good(self) -> Night | None:
        """None before the first."""
        return next((one for one in reversed(self.nights) if one.is_good), None)
